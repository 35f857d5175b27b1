/**
 * Lists that mostly hold nothing or one thing; every commit makes half a dozen of them. An array that begins empty gets room for 17 with
 * its first element, one that begins with it has room for that alone.
 */

/** What such a list is while there is nothing in it. Not frozen: loops over frozen arrays take the slow way. */
export const NONE: readonly never[] = [];

/** The list with one more element: the same list, or the first of its own. */
export function withOne<T>(list: readonly T[], item: T): readonly T[] {
  if (list.length === 0) return [item];
  (list as T[]).push(item);
  return list;
}
