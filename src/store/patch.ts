/**
 * Applies path operations to values, for all users: a replica that writes in place and may undo, a backend that loads
 * or compacts a document, a tool that reads a file. They differ only in which containers they may change (`Own`). An
 * operation that does not fit its document means damaged data and throws `PatchError`.
 */
import type { Json, JsonArray, JsonObject } from "../message/json.ts";
import { arrayIndex, type Path, pathText } from "../message/path.ts";
import { keyCameOrWent } from "./key-count.ts";
import type { PathOperation } from "./path-operation.ts";

/** A mutable container, unlike the read-only ones of `Json`. */
export type Container = Json[] | { [key: string]: Json };

/** Returns a container that may be changed in place of this one: itself, or a copy that shares its children. */
export type Own = (container: Container) => Container;

/** A patch that does not fit the document it belongs to. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

export interface Applied {
  /** The whole value afterwards; undefined if the document is absent. */
  readonly root: Json | undefined;
  /** Undoes the operation. */
  readonly inverse: PathOperation;
}

/** The value after the operations. `value` is not changed: containers along the paths are copied once each. */
export function applyOperations(value: Json | undefined, operations: readonly PathOperation[]): Json | undefined {
  const only = operations[0];
  // Most commits replace a small document whole.
  if (operations.length === 1 && only?.op === "set" && only.path.length === 0) return only.value;
  const fresh = new Set<Container>();
  let root = value;
  for (const operation of operations) {
    root = applyOperation(root, operation, (container) => copyOnce(container, fresh)).root;
  }
  return root;
}

/** An ownership rule: each container is copied when it is first written; `fresh` has the copies. */
export function copyOnce(container: Container, fresh: Set<Container>): Container {
  if (fresh.has(container)) return container;
  const copy = shallowCopy(container);
  fresh.add(copy);
  return copy;
}

export function applyOperation(root: Json | undefined, operation: PathOperation, own: Own): Applied {
  const { path } = operation;
  if (operation.op === "splice") {
    const { root: newRoot, container } = ownedAlong(root, path, path.length, own);
    return { root: newRoot, inverse: splice(container, operation) };
  }
  if (path.length === 0) {
    const inverse: PathOperation = root === undefined ? { op: "delete", path } : { op: "set", path, value: root };
    return { root: operation.op === "set" ? operation.value : undefined, inverse };
  }
  const { root: newRoot, container } = ownedAlong(root, path, path.length - 1, own);
  const key = path[path.length - 1] as string;
  if (operation.op === "delete") return { root: newRoot, inverse: remove(container, key, operation) };
  return { root: newRoot, inverse: put(container, key, operation) };
}

function put(container: Container, key: string, operation: PathOperation & { op: "set" }): PathOperation {
  const { path, value } = operation;
  const before = childAt(container, key);
  if (Array.isArray(container)) {
    const index = arrayIndex(key);
    if (index === undefined || index > container.length) throw doesNotFit(operation);
    container[index] = value;
    if (before === undefined) return { op: "splice", path: path.slice(0, -1), index, remove: 1, insert: [] };
  } else {
    if (before === undefined) keyCameOrWent(container);
    setOwn(container, key, value);
  }
  return before === undefined ? { op: "delete", path } : { op: "set", path, value: before };
}

function remove(container: Container, key: string, operation: PathOperation & { op: "delete" }): PathOperation {
  const before = childAt(container, key);
  if (Array.isArray(container) || before === undefined) throw doesNotFit(operation);
  keyCameOrWent(container);
  delete container[key];
  return { op: "set", path: operation.path, value: before };
}

function splice(container: Container, operation: PathOperation & { op: "splice" }): PathOperation {
  const { path, index, remove, insert } = operation;
  if (!Array.isArray(container) || !isRange(index, remove, container.length)) throw doesNotFit(operation);
  const removed = container.slice(index, index + remove);
  // Spreading `insert` into the call would overflow the stack with a hundred thousand arguments.
  const tail = container.slice(index + remove);
  container.length = index;
  for (const item of insert) container.push(item);
  for (const item of tail) container.push(item);
  return { op: "splice", path, index, remove: insert.length, insert: removed };
}

/** Whether the array has `count` elements from `index` on. */
export function isRange(index: number, count: number, length: number): boolean {
  return (
    Number.isSafeInteger(index) && Number.isSafeInteger(count) && index >= 0 && count >= 0 && index + count <= length
  );
}

/** Owns the containers along the first `depth` steps, from the root down, and returns the last of them. */
function ownedAlong(root: Json | undefined, path: Path, depth: number, own: Own): { root: Json; container: Container } {
  const newRoot = own(requireContainer(root, path));
  let container = newRoot;
  for (let i = 0; i < depth; i++) {
    const step = path[i] as string;
    const child = requireContainer(childAt(container, step), path);
    const owned = own(child);
    if (owned !== child) setChild(container, step, owned);
    container = owned;
  }
  return { root: newRoot, container };
}

function requireContainer(value: Json | undefined, path: Path): Container {
  if (typeof value === "object" && value !== null) return value as Container;
  throw new PatchError(`there is nothing to write into on the way to ${pathText(path)}`);
}

export function childAt(container: JsonArray | JsonObject, step: string): Json | undefined {
  if (Array.isArray(container)) {
    const index = arrayIndex(step);
    return index === undefined ? undefined : container[index];
  }
  const value: unknown = (container as JsonObject)[step];
  // Inherited properties are functions and `__proto__`; any other value is an own one.
  if (typeof value !== "function" && step !== "__proto__") return value as Json | undefined;
  return Object.hasOwn(container, step) ? (value as Json) : undefined;
}

function setChild(container: Container, step: string, value: Json): void {
  if (Array.isArray(container)) container[Number(step)] = value;
  else setOwn(container, step, value);
}

/** A copy of the container that shares its children. Copies a `__proto__` key as data. */
export function shallowCopy(container: Container): Container {
  // V8 copies a frozen array by memory when it is spread; `slice` copies element by element, a hundred times slower.
  return Array.isArray(container) ? [...container] : { ...container };
}

/** Assigns an own property of any name. */
export function setOwn(target: { [key: string]: Json }, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

function doesNotFit(operation: PathOperation): PatchError {
  return new PatchError(`${operation.op} at ${pathText(operation.path) || "the root"} does not fit the document`);
}
