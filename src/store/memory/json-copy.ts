/**
 * Copies of plain data. What comes in and goes out is copied, as a file would, so that nobody can change what is stored by changing
 * an object he once gave or got (rule S16). Value by value: through JSON text it took three times as long for small commits.
 */

import type { Json } from "../../message/json.ts";
import { copyJson as copyPure } from "../../message/json-copy.ts";

const encoder = new TextEncoder();
/** Up to this many characters, counting bytes one by one is faster than encoding. */
const COUNTED_MAX = 256;

export function copyJson<T>(value: T): T {
  return copyPure(value as Json) as T;
}

/** Length of the value's JSON text in UTF-8. */
export function jsonBytes(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}

export function utf8Bytes(text: string): number {
  if (text.length > COUNTED_MAX) return encoder.encode(text).length;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return encoder.encode(text).length;
  return text.length;
}
