/**
 * Randomness for both hosts: a stream of 32-bit words and values derived from it. SPEC: H10.
 */

import { requireLength } from "./host.ts";

export interface RandomSource {
  /** A whole number from 0 to 2^32 - 1, uniformly distributed. */
  uint32(): number;
}

/** A number in [0, 1) with all 53 bits that a double can hold below 1. */
export function randomUnit(source: RandomSource): number {
  const high = source.uint32() >>> 5;
  const low = source.uint32() >>> 6;
  return (high * 0x400_0000 + low) / 0x20_0000_0000_0000;
}

export function randomBytes(source: RandomSource, length: number): Uint8Array<ArrayBuffer> {
  requireLength(length);
  const bytes = new Uint8Array(length);
  let word = 0;
  for (let index = 0; index < length; index++) {
    word = index % 4 === 0 ? source.uint32() : word >>> 8;
    bytes[index] = word;
  }
  return bytes;
}
