/**
 * The checksum of a patch or a snapshot. The engine does not checksum its pages: a changed byte inside a text passes its own
 * check. The sum starts from the row's place, so that two rows that swapped their texts are found as well.
 */
import { crc32 } from "node:zlib";

export function checksum(text: string, document: number, sequence: number): number {
  return crc32(text, (document * 0x9e3779b1 + sequence) >>> 0);
}
