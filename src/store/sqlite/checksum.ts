/**
 * The checksum of a patch or a snapshot. The engine does not checksum its pages: a changed byte inside a text passes its own
 * check. The sum starts from the row's place, so that two rows that swapped their texts are found as well.
 */
import { crc32 } from "node:zlib";

export interface Place {
  readonly document: number;
  readonly sequence: number;
  /** Of the change before; 0 where there is none. */
  readonly previous: number;
}

/** Odd, so that no two numbers of 32 bits times it are the same. `schema.ts` multiplies by it too. */
const FACTOR = 0x9e3779b1;

export function checksum(text: string, { document, sequence, previous }: Place): number {
  const sum = crc32(text, (document * FACTOR + sequence) >>> 0);
  return previous === 0 ? sum : (sum + Math.imul(previous, FACTOR)) >>> 0;
}
