/**
 * The checksum of a text in the database. The engine does not checksum its pages: a changed byte inside a text passes its own
 * check. The sum starts from the text's place, so that two rows that swapped their texts are found as well.
 */
import { crc32 } from "node:zlib";

/** Odd, so that no two numbers of 32 bits times it are the same. */
const FACTOR = 0x9e3779b1;

/** `owner` and `sequence` are the text's place: a document or a space, and what of it. */
export function checksum(text: string, owner: number, sequence: number): number {
  return crc32(text, (owner * FACTOR + sequence) >>> 0);
}
