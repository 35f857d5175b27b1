/**
 * Path operations: the unit of change of a document on disk, in the feed and in conflict detection. Paths are compared
 * step by step, so `["a","b"]` and `["a/b"]` never conflict.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";

/** How much of the value at a path a read depended on. `path-operation.ts` has the conflicts of each depth. */
export type ReadDepth = "deep" | "shallow" | "reach";

export type PathOperation =
  /** Sets the value at the path. Its parent exists; the empty path sets the whole document. */
  | { readonly op: "set"; readonly path: Path; readonly value: Json }
  /** Removes a key of an object; at the empty path it leaves a tombstone. */
  | { readonly op: "delete"; readonly path: Path }
  /** Replaces `remove` elements of the array at the path, from `index` on, by `insert`. */
  | {
      readonly op: "splice";
      readonly path: Path;
      readonly index: number;
      readonly remove: number;
      readonly insert: readonly Json[];
    };

const WHOLE: Path = [];

/** Copies a path that is stored, because the caller may reuse its own. */
export function ownPath(path: Path): Path {
  return path.length === 0 ? WHOLE : path.slice();
}

/**
 * Whether a splice moves elements that it neither removes nor inserts. Later reads and writes use the new indexes, but
 * the backend compares paths with the old ones, so such a splice depends on the whole array. A splice at the end moves
 * no element and depends only on the length.
 */
export function movesElements(
  array: readonly unknown[],
  index: number,
  remove: number,
  insert: readonly unknown[],
): boolean {
  return insert.length !== remove && index + remove < array.length;
}

export function isPrefix(prefix: Path, path: Path): boolean {
  if (prefix.length > path.length) return false;
  for (let i = 0; i < prefix.length; i++) if (prefix[i] !== path[i]) return false;
  return true;
}

/** Whether a write at `written` can have changed the result of a read of that depth at `read`. */
export function writeTouchesRead(written: Path, read: Path, depth: ReadDepth): boolean {
  if (isPrefix(written, read)) return true;
  if (depth === "reach" || !isPrefix(read, written)) return false;
  return depth === "deep" || written.length === read.length + 1;
}

export function overlap(a: Path, b: Path): boolean {
  return a.length <= b.length ? isPrefix(a, b) : isPrefix(b, a);
}

/** Steps of the paths that are kept so far; a path ends where there are no further steps. */
type Steps = Map<string, Steps>;

/**
 * The paths without those at or below another of them, shortest first; in linear time, since a commit may have
 * thousands.
 */
export function outermost(paths: readonly Path[]): Path[] {
  const result: Path[] = [];
  const root: Steps = new Map();
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    if (isBelowAny(root, path, result.length > 0)) continue;
    let steps = root;
    for (const step of path) {
      const next: Steps = steps.get(step) ?? new Map();
      steps.set(step, next);
      steps = next;
    }
    result.push(path);
  }
  return result;
}

function isBelowAny(root: Steps, path: Path, hasAny: boolean): boolean {
  let steps = root;
  for (const step of path) {
    if (hasAny && steps.size === 0) return true;
    const next = steps.get(step);
    if (next === undefined) return false;
    steps = next;
  }
  // Longer paths come later, so a path that ends inside of the kept ones is one of them.
  return hasAny;
}
