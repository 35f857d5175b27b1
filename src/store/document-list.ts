/**
 * Lists of documents by a prefix of their ids. SPEC: S122-S126. Ids are ordered by UTF-8 bytes, which is the order of
 * code points. SQLite (`BINARY`) and Postgres (`COLLATE "C"`) index it; the order of JavaScript strings differs.
 */
import type { PathOperation } from "./path-operation.ts";

/** Negative if `a` comes first. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** A surrogate (half of a character above U+FFFF) sorts after every character below. */
function rank(unit: number): number {
  return unit >= SURROGATES_FROM && unit <= SURROGATES_TO ? unit + 0x1_0000 : unit;
}

const SURROGATES_FROM = 0xd800;
const SURROGATES_TO = 0xdfff;
const LAST_POINT = 0x10_ffff;

/** The least text after every text with the prefix; undefined if there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const points = [...prefix];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) as number;
    if (point === LAST_POINT) continue;
    const next = point === SURROGATES_FROM - 1 ? SURROGATES_TO + 1 : point + 1;
    return points.join("") + String.fromCodePoint(next);
  }
  return undefined;
}

/** Whether a document has a value after the operations; undefined if they do not decide it. */
export function presenceAfter(operations: readonly PathOperation[]): boolean | undefined {
  for (let at = operations.length - 1; at >= 0; at--) {
    const { op, path } = operations[at] as PathOperation;
    if (path.length === 0 && op !== "splice") return op === "set";
  }
  return undefined;
}
