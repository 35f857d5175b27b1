/**
 * Paths into JSON values: reads, and writes that copy the changed path and share the rest. SPEC: M22-M25.
 *
 * A path is an array of strings, one per step: an own key of an object, or an index of an array in canonical decimal
 * ("0", "17"; not "01", "-1", "1e3" or "length"). So `["a","b"]` and `["a/b"]` are different paths, and no key is
 * special: `__proto__` and `constructor` name data. A write creates no parents and no holes.
 */

import { equal } from "./equality.ts";
import { isJsonObject, type Json, type JsonArray, type JsonObject } from "./json.ts";
import { MillraceError } from "./millrace-error.ts";
import { show } from "./problem.ts";

/** A place in a JSON value: the keys from its root. */
export type Path = readonly string[];

export type PathErrorCode = "PATH_NO_PARENT" | "PATH_BAD_INDEX" | "PATH_UNDELETABLE";

/** A write at a path that cannot be written. */
export class PathError extends MillraceError<PathErrorCode> {
  override readonly name = "PathError";

  constructor(code: PathErrorCode, path: Path, problem: string) {
    super(code, `cannot write at ${showPath(path)}: ${problem}`);
  }
}

/**
 * For people: `/a/b`. `/` and `~` in a step are escaped as in JSON Pointer, so that different paths read differently.
 */
export function pathText(path: Path): string {
  return path.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** For people: a place in a document; only the document if the path is empty. */
export function placeText(document: string, path: Path): string {
  return path.length === 0 ? document : `${document} ${pathText(path)}`;
}

/** The largest index that an array can have. */
const INDEX_MAX = 2 ** 32 - 2;

/** The value at the path; undefined if there is none. */
export function getAt(value: Json, path: Path): Json | undefined {
  let at: Json | undefined = value;
  for (let i = 0; i < path.length && at !== undefined; i++) at = child(at, path[i]!);
  return at;
}

/**
 * Whether the value reaches the path: every step before the last leads to an object or array. The last step may be
 * absent; every value reaches the empty path.
 */
export function reaches(value: Json, path: Path): boolean {
  const steps = path.length - 1;
  return steps < 0 || stepsToDeepestContainer(value, path) >= steps;
}

/** The last object or array along the path; undefined if the value itself is neither. */
export function deepestContainer(value: Json, path: Path): JsonObject | JsonArray | undefined {
  const steps = stepsToDeepestContainer(value, path);
  const container = steps < 0 ? undefined : getAt(value, path.slice(0, steps));
  return isContainer(container) ? container : undefined;
}

/**
 * The value with `next` at the path. Returns `value` itself if an equal value was there, and shares every subtree
 * beside the path. An array grows by one at the index equal to its length.
 */
export function setAt(value: Json, path: Path, next: Json): Json {
  const parents = parentsOf(value, path);
  const before = getAt(value, path);
  if (before !== undefined && equal(before, next)) return value;
  const last = parents.at(-1);
  if (Array.isArray(last)) checkIndex(last, path);
  return rebuild(parents, path, next);
}

/**
 * The value without the object key at the path; `value` itself if the key is absent. Array elements cannot be deleted.
 */
export function deleteAt(value: Json, path: Path): Json {
  const parents = parentsOf(value, path);
  const last = parents.at(-1);
  if (last === undefined) throw new PathError("PATH_UNDELETABLE", path, "a value cannot be deleted from itself");
  if (!isJsonObject(last)) {
    throw new PathError("PATH_UNDELETABLE", path, "an array element cannot be deleted; set the array without it");
  }
  const key = path.at(-1)!;
  if (!Object.hasOwn(last, key)) return value;
  const copy: Record<string, Json> = { ...last };
  delete copy[key];
  return rebuild(parents.slice(0, -1), path.slice(0, -1), copy);
}

/** The index that a step names in an array; undefined if it is not canonical. */
export function arrayIndex(step: string): number | undefined {
  const length = step.length;
  if (length === 0 || length > 10 || (length > 1 && step.charCodeAt(0) === 0x30)) return undefined;
  let index = 0;
  for (let i = 0; i < length; i++) {
    const digit = step.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    index = index * 10 + digit;
  }
  return index <= INDEX_MAX ? index : undefined;
}

function child(container: Json, step: string): Json | undefined {
  if (typeof container !== "object" || container === null) return undefined;
  if (Array.isArray(container)) {
    const index = arrayIndex(step);
    return index === undefined ? undefined : (container as JsonArray)[index];
  }
  return Object.hasOwn(container, step) ? (container as JsonObject)[step] : undefined;
}

/** How many steps along the path lead to a container; -1 if the value is not one itself. */
function stepsToDeepestContainer(value: Json, path: Path): number {
  let steps = -1;
  let at: Json | undefined = value;
  while (isContainer(at)) {
    steps++;
    const step = path[steps];
    if (step === undefined) break;
    at = child(at, step);
  }
  return steps;
}

function isContainer(value: Json | undefined): value is JsonObject | JsonArray {
  return typeof value === "object" && value !== null;
}

/** The containers along the path, outermost first, one per step; all must exist. */
function parentsOf(value: Json, path: Path): (JsonObject | JsonArray)[] {
  const parents: (JsonObject | JsonArray)[] = [];
  let at: Json | undefined = value;
  for (let i = 0; i < path.length; i++) {
    if (!isContainer(at)) {
      const found = at === undefined ? "nothing" : show(at);
      throw new PathError("PATH_NO_PARENT", path, `there is ${found} at ${showPath(path.slice(0, i))}; set that first`);
    }
    parents.push(at);
    at = child(at, path[i]!);
  }
  return parents;
}

function checkIndex(array: JsonArray, path: Path): void {
  const index = arrayIndex(path.at(-1)!);
  if (index !== undefined && index <= array.length) return;
  throw new PathError("PATH_BAD_INDEX", path, `an array of ${array.length} takes the indexes 0 to ${array.length}`);
}

/** Copies the parents, innermost first, each with its new child. */
function rebuild(parents: readonly (JsonObject | JsonArray)[], path: Path, next: Json): Json {
  let result = next;
  for (let i = parents.length - 1; i >= 0; i--) result = withChild(parents[i]!, path[i]!, result);
  return result;
}

function withChild(parent: JsonObject | JsonArray, step: string, next: Json): Json {
  if (!isJsonObject(parent)) {
    const copy = parent.slice();
    copy[Number(step)] = next;
    return copy;
  }
  const copy: Record<string, Json> = { ...parent };
  if (step === "__proto__") {
    // Assignment would set the prototype.
    Object.defineProperty(copy, step, { value: next, enumerable: true, configurable: true, writable: true });
  } else {
    copy[step] = next;
  }
  return copy;
}

function showPath(path: Path): string {
  return path.length === 0 ? "the root" : path.map((step) => show(step)).join(" / ");
}
