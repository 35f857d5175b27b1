/**
 * Content ids: the id of a value is the hash of its canonical text, so equal values have one id on every machine and
 * runtime. SPEC: M20.
 */

import { canonicalJson } from "./canonical-json.ts";
import type { Json } from "./json.ts";
import { hashText } from "./sha256.ts";

/** 64 lower-case hex digits: SHA-256 of the canonical JSON of the value. */
export function contentId(value: Json): string {
  return hashText(canonicalJson(value));
}
