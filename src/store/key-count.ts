/**
 * How many keys a wide object has, counted once: listing 10,000 keys takes a millisecond, as long as all else that comparing two
 * such objects takes. Whoever adds or removes a key in place says so (`patch.ts`); a copy is another object and is counted anew.
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
