/**
 * Randomness from a seed: the small fast counter generator (sfc32), 128 bits of state. SPEC: H12.
 *
 * Not for secrets: a few words reveal the rest.
 */

import { HostError } from "./host.ts";
import type { RandomSource } from "./random-source.ts";

const WARM_UP_ROUNDS = 16;

export class SeededRandom implements RandomSource {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #drawn = 0;

  /** One seed has many independent streams. */
  constructor(seed: number, stream = 0) {
    if (!Number.isSafeInteger(seed)) {
      throw new HostError(
        "INVALID_SEED",
        `A seed must be a safe integer, so that it can be printed and given back, not ${seed}.`,
      );
    }
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = stream | 0;
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.#next();
  }

  /** Words drawn so far: two runs with the same number have made the same number of choices. */
  get drawn(): number {
    return this.#drawn;
  }

  uint32(): number {
    this.#drawn += 1;
    return this.#next();
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor((this.uint32() / 0x1_0000_0000) * count);
  }

  #next(): number {
    const word = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + word) | 0;
    return word >>> 0;
  }
}
