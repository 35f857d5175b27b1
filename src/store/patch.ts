/**
 * Applying path operations to whole values, for whoever holds no replica: a backend that loads or compacts a document, a
 * tool that reads a file. Copies the containers along each path and shares the rest. A patch that does not fit its document
 * means that bytes were lost or changed, and says so.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { PathOperation } from "./path-operation.ts";

/** A container that may be written into, unlike the read-only ones of `Json`. */
export type Container = Json[] | { [key: string]: Json };

/** A patch that does not fit the document it belongs to. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

/** The value after the operations; undefined stands for no document. Never changes `value`. */
export function applyOperations(value: Json | undefined, operations: readonly PathOperation[]): Json | undefined {
  const fresh = new Set<object>();
  let root = value;
  for (const operation of operations) {
    if (operation.path.length === 0 && operation.op !== "splice") {
      root = operation.op === "set" ? operation.value : undefined;
      continue;
    }
    if (operation.op === "splice") {
      root = ownedAlong(root, operation.path, fresh);
      const array = containerAt(root, operation.path);
      if (!Array.isArray(array) || operation.index + operation.remove > array.length) throw doesNotFit(operation);
      array.splice(operation.index, operation.remove, ...operation.insert);
      continue;
    }
    const parentPath = operation.path.slice(0, -1);
    root = ownedAlong(root, parentPath, fresh);
    applyAt(containerAt(root, parentPath), operation.path.at(-1) as string, operation);
  }
  return root;
}

function applyAt(parent: Container, key: string, operation: PathOperation & { op: "set" | "delete" }): void {
  if (Array.isArray(parent)) {
    const index = Number(key);
    if (operation.op === "delete" || !Number.isInteger(index) || index < 0 || index > parent.length)
      throw doesNotFit(operation);
    parent[index] = operation.value;
  } else if (operation.op === "delete") {
    if (!Object.hasOwn(parent, key)) throw doesNotFit(operation);
    delete parent[key];
  } else {
    setOwn(parent, key, operation.value);
  }
}

/** Makes the containers from the root down to the path private copies, once each. */
function ownedAlong(root: Json | undefined, path: Path, fresh: Set<object>): Json {
  const newRoot = owned(root, fresh, path);
  let container: Container = newRoot;
  for (const step of path) {
    const child: Container = owned(childOf(container, step), fresh, path);
    if (Array.isArray(container)) container[Number(step)] = child;
    else setOwn(container, step, child);
    container = child;
  }
  return newRoot;
}

function owned(value: Json | undefined, fresh: Set<object>, path: Path): Container {
  if (typeof value !== "object" || value === null) throw new PatchError(`nothing to write into at /${path.join("/")}`);
  if (fresh.has(value)) return value as Container;
  const copy = shallowCopy(value as Container);
  fresh.add(copy);
  return copy;
}

function containerAt(root: Json, path: Path): Container {
  let value: Json | undefined = root;
  for (const step of path) value = childOf(value as Container, step);
  return value as Container;
}

export function childOf(container: Container, step: string): Json | undefined {
  if (Array.isArray(container)) return container[Number(step)];
  return Object.hasOwn(container, step) ? container[step] : undefined;
}

/** A copy of the container that shares its children; a `__proto__` key stays data. */
export function shallowCopy(value: Container): Container {
  if (Array.isArray(value)) return value.slice();
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) setOwn(copy, key, value[key] as Json);
  return copy;
}

/** Assigns an own property, whatever its name. */
export function setOwn(target: { [key: string]: Json }, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

function doesNotFit(operation: PathOperation): PatchError {
  return new PatchError(`${operation.op} at /${operation.path.join("/")} does not fit the document`);
}
