/**
 * Caches the number of keys of wide objects: listing 10,000 keys takes a millisecond, as long as the rest of a
 * comparison of two such objects. `patch.ts` reports keys added or removed in place; a copy is a new object and is
 * counted again.
 */
import { NARROW_FROM_CHILDREN } from "../limits.ts";
import type { JsonObject } from "../message/json.ts";

const counts = new WeakMap<object, number>();

export function keyCount(object: JsonObject): number {
  const known = counts.get(object);
  if (known !== undefined) return known;
  const count = Object.keys(object).length;
  if (count >= NARROW_FROM_CHILDREN) counts.set(object, count);
  return count;
}

export function keyCameOrWent(object: object): void {
  counts.delete(object);
}
