/** A copy of a replica's documents, built from notifications alone; it checks that they fit. */
import { equal } from "../../../src/message/equality.ts";
import type { Json } from "../../../src/message/json.ts";
import { getAt, type Path } from "../../../src/message/path.ts";
import type { Change } from "../../../src/store/change.ts";
import { applyOperations } from "../../../src/store/patch.ts";
import type { PathOperation } from "../../../src/store/path-operation.ts";

export class Mirror {
  readonly documents = new Map<string, Json>();

  apply({ id, path, before, after }: Change): void {
    const value = this.documents.get(id);
    if (!equal(at(value, path), before)) {
      throw new Error(
        `a change of ${id} /${path.join("/")} says it was ${JSON.stringify(before)}, it is ${JSON.stringify(at(value, path))}`,
      );
    }
    if (!equal(before, after)) {
      const next = applyOperations(value, [operationFor(value, path, after)]);
      if (next === undefined) this.documents.delete(id);
      else this.documents.set(id, next);
    }
  }
}

/**
 * A removed element was the last of its array: an operation that moves elements is told as a change of the whole array.
 */
function operationFor(value: Json | undefined, path: Path, after: Json | undefined): PathOperation {
  if (after !== undefined) return { op: "set", path, value: after };
  const arrayPath = path.slice(0, -1);
  const array = path.length === 0 ? undefined : at(value, arrayPath);
  if (!Array.isArray(array)) return { op: "delete", path };
  const index = Number(path.at(-1));
  return { op: "splice", path: arrayPath, index, remove: array.length - index, insert: [] };
}

function at(value: Json | undefined, path: Path): Json | undefined {
  return value === undefined ? undefined : getAt(value, path);
}
