/**
 * Ids: UUIDv7 (RFC 9562), strictly increasing within one minter. SPEC: H8, H9.
 *
 *     tttttttt-tttt-7ccc-Vccc-cccc rrrrrrrr       t  48 bits: wall milliseconds
 *                   \high/ \--low--/               7  version, V  variant (binary 10) and the first 2 bits of low
 *                                                  c  42 bits: counter, `high` 12 bits and `low` 30 bits
 *                                                  r  32 bits: new random bits in every id
 *
 * A new millisecond starts the counter at random. Within a millisecond, and while the clock is behind the last id's
 * time, the counter increases by one and the time field stays. A full counter borrows the next millisecond.
 */

import type { RandomSource } from "./random-source.ts";

const HIGH_COUNT = 0x1000;
const LOW_COUNT = 0x4000_0000;

/** Three digits each: an id takes four of them. */
const HEX = Array.from({ length: 0x1000 }, (_, value) => value.toString(16).padStart(3, "0"));

export class UuidV7Minter {
  readonly #now: () => number;
  readonly #random: RandomSource;

  /** The time field of the last id; it never decreases. -1 before the first id. */
  #ms = -1;
  /** The counter of the last id. With `#ms` above it, it never decreases. */
  #high = 0;
  #low = 0;
  /** The text before the last 16 bits of the counter, which consecutive ids mostly share. */
  #prefix = "";

  constructor(now: () => number, random: RandomSource) {
    this.#now = now;
    this.#random = random;
  }

  /** Pass `now` if the same clock was just read. */
  mint(now: number = this.#now()): string {
    if (now > this.#ms) this.#startAt(now);
    else this.#increment();
    const low = this.#low;
    const chance = this.#random.uint32();
    return this.#prefix + (hex3(low >>> 4) + hex3((low << 8) | (chance >>> 24)) + (hex3(chance >>> 12) + hex3(chance)));
  }

  #startAt(ms: number): void {
    this.#ms = ms;
    this.#high = this.#random.uint32() >>> 20;
    this.#low = this.#random.uint32() >>> 2;
    this.#writePrefix();
  }

  #increment(): void {
    this.#low += 1;
    if ((this.#low & 0xffff) !== 0) return;
    if (this.#low < LOW_COUNT) return this.#writePrefix();
    this.#low = 0;
    this.#high += 1;
    if (this.#high < HIGH_COUNT) return this.#writePrefix();
    this.#startAt(this.#ms + 1);
  }

  #writePrefix(): void {
    // The field has 48 bits, and bitwise operators see only 32.
    const time = [hex4(this.#ms / 0x1_0000_0000) + hex4(this.#ms / 0x1_0000), hex4(this.#ms % 0x1_0000)];
    // `join` creates a flat string. Concatenation would create a rope that the first reader flattens: a quarter of the
    // time.
    this.#prefix = [...time, hex4(0x7000 | this.#high), hex4(0x8000 | (this.#low >>> 16)), ""].join("-");
  }
}

/** The last 16 bits. */
function hex4(value: number): string {
  return (value & 0xffff).toString(16).padStart(4, "0");
}

/** The last 12 bits. */
function hex3(value: number): string {
  return HEX[value & 0xfff]!;
}
