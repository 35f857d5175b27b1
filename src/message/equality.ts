/**
 * Structural equality of JSON values, `Object.is` at the leaves. SPEC: M21.
 *
 * Shared references are equal without a comparison of their contents, so comparing a value with a changed copy costs
 * only the changed path and its siblings. A list of pairs replaces recursion, so no depth overflows the stack. The
 * order of keys does not count.
 */

/** Whether two JSON values are equal, in any order of their keys. */
export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!areContainers(a, b)) return false;
  /** Pairs of containers still to compare: a, b, a, b, ... */
  const pending: object[] = [];
  if (!compare(a as object, b as object, pending)) return false;
  while (pending.length > 0) {
    const right = pending.pop()!;
    const left = pending.pop()!;
    if (!compare(left, right, pending)) return false;
  }
  return true;
}

/** Compares kind, size and leaves, and leaves the pairs of inner containers in `pending`. */
function compare(a: object, b: object, pending: object[]): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && compareArrays(a, b, pending);
  return !Array.isArray(b) && compareObjects(a as { [key: string]: unknown }, b as { [key: string]: unknown }, pending);
}

function compareArrays(a: readonly unknown[], b: readonly unknown[], pending: object[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!compareChildren(a[i], b[i], pending)) return false;
  return true;
}

function compareObjects(a: { [key: string]: unknown }, b: { [key: string]: unknown }, pending: object[]): boolean {
  const keys = Object.keys(a);
  if (Object.keys(b).length !== keys.length) return false;
  for (const key of keys) {
    // Without the check for an own key, `__proto__` and `constructor` would be found on the prototype.
    if (!Object.hasOwn(b, key) || !compareChildren(a[key], b[key], pending)) return false;
  }
  return true;
}

function compareChildren(a: unknown, b: unknown, pending: object[]): boolean {
  if (Object.is(a, b)) return true;
  if (!areContainers(a, b)) return false;
  pending.push(a as object, b as object);
  return true;
}

function areContainers(a: unknown, b: unknown): boolean {
  return typeof a === "object" && typeof b === "object" && a !== null && b !== null;
}
