/**
 * Path operations: the unit of change of a document, on disk, in the feed and in conflict detection.
 * Paths are compared step by step, so `["a","b"]` and `["a/b"]` never meet.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { ReadDepth } from "./commit.ts";

export type PathOperation =
  /** Puts a value at the path. Its parent is there; at the empty path it makes the whole document. */
  | { readonly op: "set"; readonly path: Path; readonly value: Json }
  /** Removes an object's key; at the empty path it leaves a tombstone. */
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

/** A path that is kept: whoever gave it may go on from there with his own. */
export function ownPath(path: Path): Path {
  return path.length === 0 ? WHOLE : path.slice();
}

/**
 * Whether a splice moves what it neither removes nor inserts. Whoever reads or writes below the array afterwards names elements by where they are now, and the
 * backend compares paths as they were: so such a splice rests on the whole array. One at the end moves nothing, and rests on where the end is.
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

/** Whether a write at `written` can have changed what a read of that depth at `read` saw. */
export function writeTouchesRead(written: Path, read: Path, depth: ReadDepth): boolean {
  if (isPrefix(written, read)) return true;
  if (depth === "reach" || !isPrefix(read, written)) return false;
  return depth === "deep" || written.length === read.length + 1;
}

export function overlap(a: Path, b: Path): boolean {
  return a.length <= b.length ? isPrefix(a, b) : isPrefix(b, a);
}
