/**
 * Copies of plain data. Values are copied in and out, as with a file, so that callers cannot change stored data through
 * an object that they passed or received (S16). Copying through JSON text took three times as long for small commits.
 */

import type { Json } from "../../message/json.ts";
import { copyJson as copyPure } from "../../message/json-copy.ts";
import type { Path } from "../../message/path.ts";
import type { PathOperation } from "../path-operation.ts";

const encoder = new TextEncoder();
/** Up to this many characters, counting bytes one by one is faster than encoding. */
const COUNTED_MAX = 256;
/** The path of a whole document, shared by most operations. */
const WHOLE: Path = Object.freeze([]);

export function copyStored<T>(value: T): T {
  return copyPure(value as Json) as T;
}

/** Avoids listing the keys of records with a known shape. */
export function copyOperations(operations: readonly PathOperation[]): PathOperation[] {
  return operations.length === 1 ? [copyOperation(operations[0] as PathOperation)] : operations.map(copyOperation);
}

function copyOperation(operation: PathOperation): PathOperation {
  const path = operation.path.length === 0 ? WHOLE : [...operation.path];
  switch (operation.op) {
    case "set":
      return { op: "set", path, value: copyPure(operation.value) };
    case "delete":
      return { op: "delete", path };
    case "splice":
      return {
        op: "splice",
        path,
        index: operation.index,
        remove: operation.remove,
        insert: copyPure(operation.insert),
      };
  }
}

/** Length of the value's JSON text in UTF-8. */
export function jsonBytes(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}

/** Bytes of the path and the written value; small values are not serialized. */
export function operationBytes(operation: PathOperation): number {
  let bytes = 0;
  for (let i = 0; i < operation.path.length; i++) bytes += utf8Bytes(operation.path[i] as string);
  if (operation.op === "delete") return bytes;
  return bytes + (operation.op === "set" ? valueBytes(operation.value) : jsonBytes(operation.insert));
}

function valueBytes(value: Json): number {
  if (typeof value === "number" && Number.isInteger(value)) return integerBytes(value);
  return isEmptyObject(value) ? 2 : jsonBytes(value);
}

/** Digits and sign, counted without a string for small numbers. */
function integerBytes(value: number): number {
  if (value < 0 || value > 999_999) return String(value).length;
  let bytes = 1;
  for (let bound = 10; value >= bound; bound *= 10) bytes++;
  return bytes;
}

/** Most receipts are empty objects. */
function isEmptyObject(value: Json): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  for (const _ in value) return false;
  return true;
}

export function utf8Bytes(text: string): number {
  if (text.length > COUNTED_MAX) return encoder.encode(text).length;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return encoder.encode(text).length;
  return text.length;
}
