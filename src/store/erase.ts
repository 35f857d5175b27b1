/**
 * Erasing the data of a subject: request, result, and the values that take the place of erased ones. SPEC: S134-S137,
 * S145-S149, decision 0016.
 */

import { isJsonObject, type Json } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";

export interface EraseRequest {
  /** A whole word in names of documents and in messages. */
  readonly subject: string;
  /** False: only finds. */
  readonly apply: boolean;
  /** The id of the message that asks for it. Its row is not settled yet, and loses its payload too. */
  readonly askedBy?: string | undefined;
}

export interface Erased {
  /** Removed documents. */
  readonly documents: number;
  /** Journal rows whose payload is now a tombstone. */
  readonly rows: number;
  readonly receipts: number;
  readonly left: {
    /** Journal rows that are not handled yet. */
    readonly unsettled: number;
    readonly due: number;
    /** Names of documents that mention the subject in their values; at most `ERASE_LEFT_MAX`. */
    readonly documents: readonly string[];
  };
}

const KEY = "$erased";

/** The value of a receipt whose answer was erased. */
export const ERASED_RESULT: Json = Object.freeze({ [KEY]: true });

export function isErasedResult(value: Json | undefined): boolean {
  return isJsonObject(value) && value[KEY] === true;
}

/** In the place of erased data: the digest of their text. A tombstone stays as it is. */
export function tombstone(data: Json): Json {
  return digestIn(data) === undefined ? { [KEY]: hashText(JSON.stringify(data)) } : data;
}

/** The digest in a tombstone; undefined for other data. */
export function digestIn(data: Json): string | undefined {
  const digest = isJsonObject(data) ? data[KEY] : undefined;
  return typeof digest === "string" ? digest : undefined;
}

/** Whether a text contains the subject as a whole word, without an adjacent letter or digit. */
export function mentions(text: string, subject: string): boolean {
  for (let at = text.indexOf(subject); at >= 0; at = text.indexOf(subject, at + 1)) {
    const isWhole = !WORD.test(text[at - 1] ?? " ") && !WORD.test(text[at + subject.length] ?? " ");
    if (isWhole) return true;
  }
  return false;
}

const WORD = /[\p{L}\p{N}]/u;
