/**
 * What one open transaction has written to one document, and how its own reads see it.
 *
 * Few writes stay a list that reads look through: writing one key of a wide document copies nothing. With more writes, or
 * when a read needs a container that was written into, the document is materialised once: containers along the
 * written paths are copied (each once per transaction) and further writes go there directly.
 */
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import { applyOperation, type Container, copyOnce, PatchError } from "./patch.ts";
import { isPrefix, overlap, type PathOperation } from "./path-operation.ts";
import { StoreError } from "./store.ts";

/** Writes that are looked through one by one before the document is materialised. */
const LISTED_MAX = 8;

export class Draft {
  /** In the order written; a second write to the path of the last one replaces it. */
  readonly operations: PathOperation[] = [];
  readonly #base: () => Json | undefined;
  /** The document as the transaction sees it, once materialised. */
  #view: Json | undefined;
  #materialised = false;
  /** Containers of the view that this draft has copied and may write into. */
  readonly #fresh = new Set<Container>();

  constructor(base: () => Json | undefined) {
    this.#base = base;
  }

  read(path: Path): Json | undefined {
    if (!this.#materialised) {
      const last = this.operations.findLast((operation) => overlap(operation.path, path));
      if (!last) return at(this.#base(), path);
      if (last.op === "set" && isPrefix(last.path, path)) return getAt(last.value, path.slice(last.path.length));
      if (last.op === "delete" && isPrefix(last.path, path)) return undefined;
      this.#materialise();
    }
    return at(this.#view, path);
  }

  write(operation: PathOperation): void {
    const last = this.operations.at(-1);
    if (last && operation.op === "set" && last.op === "set" && samePath(last.path, operation.path))
      this.operations.pop();
    this.operations.push(operation);
    if (this.#materialised) this.#apply(operation);
    else if (this.operations.length > LISTED_MAX) this.#materialise();
  }

  #materialise(): void {
    this.#materialised = true;
    this.#view = this.#base();
    for (const operation of this.operations) this.#apply(operation);
  }

  #apply(operation: PathOperation): void {
    try {
      this.#view = applyOperation(this.#view, operation, (container) => copyOnce(container, this.#fresh)).root;
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      const message = "what the transaction had written into has been replaced meanwhile; run it again";
      throw new StoreError("STORE_STALE", message, { cause: error });
    }
  }
}

function at(value: Json | undefined, path: Path): Json | undefined {
  return value === undefined ? undefined : getAt(value, path);
}

function samePath(a: Path, b: Path): boolean {
  return a.length === b.length && isPrefix(a, b);
}
