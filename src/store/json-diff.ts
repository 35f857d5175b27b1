/**
 * Replaces the write of a large container by its few differences, so that the durable write is as small as the change.
 * Relies on `admit`, which keeps the identity of equal subtrees: only different references need a comparison.
 */
import { DOCUMENT_VALUES_MAX, NARROW_FROM_CHILDREN, NARROW_OPERATIONS_MAX } from "../limits.ts";
import { isCleanText, isJsonObject, type Json, type JsonArray, type JsonObject } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { admit } from "./admit.ts";
import { keyCount } from "./key-count.ts";
import { childAt } from "./patch.ts";
import type { PathOperation } from "./path-operation.ts";
import { StoreError } from "./store.ts";

/** The operations that turn `before` into `after` at the path, or undefined if writing `after` whole is as good. */
export function jsonDiff(path: Path, before: Json | undefined, after: Json): PathOperation[] | undefined {
  // Without an earlier container of this kind, no part can be left out.
  if (!isWide(after) || !isSameKind(before, after)) return undefined;
  const operations: PathOperation[] = [];
  return collect(path, before, after, operations) ? operations : undefined;
}

/**
 * The same for a wide object before `admit`, in one walk that copies only the differences. Also undefined for an
 * invalid value; `admit` then reports the problem.
 */
export function incomingDiff(path: Path, before: Json | undefined, value: unknown): PathOperation[] | undefined {
  if (!isJsonObject(before) || typeof value !== "object" || value === null) return undefined;
  if (Object.getPrototypeOf(value) !== Object.prototype || keyCount(before) < NARROW_FROM_CHILDREN) return undefined;
  const operations: PathOperation[] = [];
  let [keys, met] = [0, 0];
  // Listing and looking up the keys is the whole cost for a wide object; this loop saves a sixth of it.
  for (const key in value) {
    if (++keys > DOCUMENT_VALUES_MAX) return undefined;
    const now: unknown = (value as { readonly [key: string]: unknown })[key];
    const old = childAt(before, key);
    if (old !== undefined) met++;
    if (old !== undefined && Object.is(old, now)) continue;
    if (!isCleanText(key) || !collectIncoming([...path, key], old, now, operations)) return undefined;
  }
  if (keys < NARROW_FROM_CHILDREN) return undefined;
  if (met === keyCount(before)) return operations;
  return collectGone(path, before, value, operations) ? operations : undefined;
}

/** False if there are too many differences or an invalid value. */
function collectIncoming(path: Path, old: Json | undefined, now: unknown, out: PathOperation[]): boolean {
  let admitted: Json;
  try {
    admitted = admit(now, old, path.length);
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
  return Object.is(admitted, old) || collect(path, old, admitted, out);
}

/** Whether listing the differences may be worthwhile. */
export function isWide(value: Json): boolean {
  if (Array.isArray(value)) return value.length >= NARROW_FROM_CHILDREN;
  return isJsonObject(value) && Object.keys(value).length >= NARROW_FROM_CHILDREN;
}

function isSameKind(before: Json | undefined, after: Json): boolean {
  return Array.isArray(after) ? Array.isArray(before) : isJsonObject(before);
}

/** False if there are too many differences to list. */
function collect(path: Path, before: Json | undefined, after: Json, out: PathOperation[]): boolean {
  if (Array.isArray(before) && Array.isArray(after)) return collectArray(path, before, after, out);
  if (isJsonObject(before) && isJsonObject(after)) return collectObject(path, before, after, out);
  out.push({ op: "set", path, value: after });
  return out.length <= NARROW_OPERATIONS_MAX;
}

function collectObject(path: Path, before: JsonObject, after: JsonObject, out: PathOperation[]): boolean {
  for (const [key, value] of Object.entries(after)) {
    const old = childAt(before, key);
    if (Object.is(old, value)) continue;
    if (!collect([...path, key], old, value, out)) return false;
  }
  return collectGone(path, before, after, out);
}

function collectGone(path: Path, before: JsonObject, after: object, out: PathOperation[]): boolean {
  for (const key of Object.keys(before)) {
    if (Object.hasOwn(after, key)) continue;
    out.push({ op: "delete", path: [...path, key] });
    if (out.length > NARROW_OPERATIONS_MAX) return false;
  }
  return true;
}

function collectArray(path: Path, before: JsonArray, after: JsonArray, out: PathOperation[]): boolean {
  if (before.length === after.length) {
    for (let index = 0; index < after.length; index++) {
      if (Object.is(before[index], after[index])) continue;
      if (!collect([...path, String(index)], before[index], after[index] as Json, out)) return false;
    }
    return true;
  }
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && Object.is(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && Object.is(before.at(-1 - end), after.at(-1 - end))) end++;
  const insert = after.slice(start, after.length - end);
  const remove = before.length - end - start;
  // A splice that inserts most of the array is no smaller than the array.
  if (insert.length > after.length / 2) return false;
  out.push({ op: "splice", path, index: start, remove, insert });
  return out.length <= NARROW_OPERATIONS_MAX;
}
