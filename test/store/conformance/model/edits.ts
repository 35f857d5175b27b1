/** Turns an edit of an action into a path operation that fits the session's value, and the reads that keep it valid. */
import type { Json } from "../../../../src/message/json.ts";
import type { Path } from "../../../../src/message/path.ts";
import type { PathOperation } from "../../../../src/store/path-operation.ts";
import type { Edit } from "./actions.ts";

/** A small set, so that sessions meet at the same paths. */
export const KEYS = ["a", "b", "a/b", "0"] as const;

const VALUES: readonly Json[] = [
  1,
  "text",
  null,
  {},
  { a: { b: 1, "0": [] }, "a/b": 2 },
  [1, 2, { a: 1 }],
  { a: [1], b: { a: {} }, "0": {} },
  { "0": [0], "a/b": { a: 1, b: 2 } },
  // Long enough that a few patches outgrow the document.
  "long ".repeat(400),
];

export interface PlannedEdit {
  readonly operation: PathOperation;
  /** The path at which the parent, or the removed value, must be unchanged. */
  readonly reach: Path | undefined;
}

export function planEdit(edit: Edit, seen: Json | undefined): PlannedEdit {
  const value = VALUES[edit.value]!;
  const key = KEYS[edit.key]!;
  const innerKey = KEYS[edit.innerKey]!;
  const child = childOf(seen, key);
  switch (edit.op) {
    case "delete-root":
      return { operation: { op: "delete", path: [] }, reach: undefined };
    case "set-child":
      return setBelow([], seen, key, value) ?? setRoot(value);
    case "set-grandchild":
      return setBelow([key], child, innerKey, value) ?? setBelow([], seen, key, value) ?? setRoot(value);
    case "delete-child":
      if (child === undefined || Array.isArray(seen)) return setRoot(value);
      return { operation: { op: "delete", path: [key] }, reach: [key] };
    case "splice":
      return spliceAt([], seen, edit) ?? spliceAt([key], child, edit) ?? setRoot([1, [2]]);
    case "set-root":
      return setRoot(value);
  }
}

function setRoot(value: Json): PlannedEdit {
  return { operation: { op: "set", path: [], value }, reach: undefined };
}

function setBelow(path: Path, container: Json | undefined, key: string, value: Json): PlannedEdit | undefined {
  if (typeof container !== "object" || container === null) return undefined;
  const step = Array.isArray(container) ? String(container.length > 0 && key === "0" ? 0 : container.length) : key;
  return { operation: { op: "set", path: [...path, step], value }, reach: path };
}

function spliceAt(path: Path, array: Json | undefined, edit: Edit): PlannedEdit | undefined {
  if (!Array.isArray(array)) return undefined;
  const index = Math.min(edit.key, array.length);
  const remove = Math.min(edit.innerKey, array.length - index);
  const insert = edit.value % 2 === 0 ? [] : [VALUES[edit.value]!, edit.value];
  return { operation: { op: "splice", path, index, remove, insert }, reach: path };
}

function childOf(container: Json | undefined, key: string): Json | undefined {
  if (typeof container !== "object" || container === null) return undefined;
  return Object.entries(container).find(([name]) => name === key)?.[1];
}
