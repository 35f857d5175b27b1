/**
 * The checksum of a text in the database. The engine has no page checksums: a changed byte inside a text passes its
 * check. The sum includes the location, so that two rows with swapped texts are detected too.
 */
import { crc32 } from "node:zlib";

/** Odd, so that products with different 32-bit numbers differ modulo 2^32. */
const FACTOR = 0x9e3779b1;

/** `owner` and `sequence` are the location: a document or space, and the sequence within it. */
export function checksum(text: string, owner: number, sequence: number): number {
  return crc32(text, (owner * FACTOR + sequence) >>> 0);
}
