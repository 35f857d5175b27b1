/**
 * Small lists that mostly hold zero or one element; every commit makes half a dozen. V8 gives an array that begins
 * empty room for 17 elements with its first push; one created with an element has room for that only.
 */

/** The shared empty list. Not frozen: loops over frozen arrays are slow. */
export const NONE: readonly never[] = [];

/** Appends an element: to the same list, or to a new one if the list is empty. */
export function withOne<T>(list: readonly T[], item: T): readonly T[] {
  if (list.length === 0) return [item];
  (list as T[]).push(item);
  return list;
}
