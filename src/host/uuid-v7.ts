/**
 * Ids: UUIDv7 (RFC 9562), strictly increasing within one minter. SPEC: H8, H9.
 *
 *     tttttttt-tttt-7ccc-Vccc-cccc rrrrrrrr       t  48 bits: wall milliseconds
 *                   \high/ \--low--/               7  version, V  variant (binary 10) and the first 2 bits of low
 *                                                  c  42 bits: counter, `high` 12 bits and `low` 30 bits
 *                                                  r  32 bits: fresh chance in every id
 *
 * A new millisecond starts the counter at random. Within a millisecond, and while the clock stands before the last id's,
 * the counter goes up by one and the time field stays. A full counter borrows the next millisecond.
 */

import type { RandomSource } from "./random-source.ts";

const HIGH_COUNT = 0x1000;
const LOW_COUNT = 0x4000_0000;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export class UuidV7Minter {
  readonly #now: () => number;
  readonly #random: RandomSource;

  /** The time field of the last id; it never decreases. -1 before the first id. */
  #ms = -1;
  /** `#ms` as text, which most ids share with the one before. */
  #time = "";
  /** The counter of the last id. With `#ms` above it, it never decreases. */
  #high = 0;
  #low = 0;

  constructor(now: () => number, random: RandomSource) {
    this.#now = now;
    this.#random = random;
  }

  mint(): string {
    const now = this.#now();
    if (now > this.#ms) this.#startAt(now);
    else this.#increment();
    const counter = `${hex4(0x7000 | this.#high)}-${hex4(0x8000 | (this.#low >>> 16))}-${hex4(this.#low & 0xffff)}`;
    return `${this.#time}-${counter}${hex8(this.#random.uint32())}`;
  }

  #startAt(ms: number): void {
    this.#ms = ms;
    // The field has 48 bits, and bitwise operators see only 32.
    this.#time = `${hex8(Math.floor(ms / 0x1_0000))}-${hex4(ms % 0x1_0000)}`;
    this.#high = this.#random.uint32() >>> 20;
    this.#low = this.#random.uint32() >>> 2;
  }

  #increment(): void {
    this.#low += 1;
    if (this.#low < LOW_COUNT) return;
    this.#low = 0;
    this.#high += 1;
    if (this.#high < HIGH_COUNT) return;
    this.#startAt(this.#ms + 1);
  }
}

function hex8(word: number): string {
  return hex4(word >>> 16) + hex4(word & 0xffff);
}

function hex4(half: number): string {
  return HEX[half >>> 8]! + HEX[half & 0xff]!;
}
