/**
 * The writes of one open transaction to one document, and how its own reads see them.
 *
 * A few writes stay a list that reads scan, so that writing some keys of a wide document copies no container. With more
 * writes, or when a read needs a container that was written into, the document is materialised once: containers along
 * the written paths are copied (once each, and again after a reader got them) and later writes go there directly.
 */
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import { isHandedOut } from "./admit.ts";
import { applyOperation, type Container, copyOnce, PatchError } from "./patch.ts";
import { isPrefix, overlap, type PathOperation } from "./path-operation.ts";
import { StoreError } from "./store.ts";

/** Up to this many writes are scanned linearly before the document is materialised. */
const LISTED_MAX = 8;

const NONE: readonly PathOperation[] = [];

/** The value below the draft. */
export interface DraftBase {
  readonly value: Json | undefined;
}

export class Draft {
  /** In order of writing; a second write to the path of the last one replaces it. */
  operations: readonly PathOperation[] = NONE;
  readonly #base: DraftBase;
  /** The replica's tick at the only write; undefined after a second write, which was compared with the first. */
  #writtenAt: number | undefined;
  /** Exists once the document is materialised. */
  #view: View | undefined;

  constructor(base: DraftBase) {
    this.#base = base;
  }

  /**
   * The replica's tick at which the document is seen through this draft. A view stays at its tick: later writes to the
   * document may or may not show in it.
   */
  seenAt(now: number): number {
    return this.#view ? this.#view.tick : now;
  }

  /**
   * Whether there was one write and no change to the replica since: then the written value was compared with the
   * current one.
   */
  isFresh(now: number): boolean {
    return this.#writtenAt === now;
  }

  /** Whether the value at the path was written by the transaction, independent of the document. */
  covers(path: Path): boolean {
    if (this.#view) return this.#view.covers(path);
    return this.operations.some((operation) => operation.op !== "splice" && isPrefix(operation.path, path));
  }

  read(path: Path, now: number): Json | undefined {
    if (!this.#view) {
      const last = this.#lastAt(path);
      if (!last) return at(this.#base.value, path);
      if (last.op === "set" && isPrefix(last.path, path)) return getAt(last.value, below(last.path, path));
      if (last.op === "delete" && isPrefix(last.path, path)) return undefined;
    }
    return at(this.#materialised(now).value, path);
  }

  /** The last write that the value at the path depends on. */
  #lastAt(path: Path): PathOperation | undefined {
    const { operations } = this;
    for (let i = operations.length - 1; i >= 0; i--) {
      const operation = operations[i] as PathOperation;
      if (overlap(operation.path, path)) return operation;
    }
    return undefined;
  }

  /**
   * The container at the path for a write into it: an object without the writes below it, an array with its current
   * length. So two writes to one wide object do not materialise it.
   */
  container(path: Path, now: number): Json | undefined {
    if (this.#view) return at(this.#view.value, path);
    let writtenBelow = false;
    for (let i = this.operations.length - 1; i >= 0; i--) {
      const operation = this.operations[i] as PathOperation;
      if (!overlap(operation.path, path)) continue;
      if (operation.path.length > path.length) {
        writtenBelow = true;
        continue;
      }
      if (operation.op === "delete") return undefined;
      if (operation.op === "splice") return this.read(path, now);
      const container = getAt(operation.value, path.slice(operation.path.length));
      return writtenBelow && Array.isArray(container) ? this.read(path, now) : container;
    }
    const container = at(this.#base.value, path);
    return writtenBelow && Array.isArray(container) ? this.read(path, now) : container;
  }

  write(operation: PathOperation, now: number): void {
    this.#writtenAt = this.operations === NONE ? now : undefined;
    this.#list(operation);
    if (this.#view) this.#view.apply(operation);
    else if (this.operations.length > LISTED_MAX) this.#materialised(now);
  }

  /** Restores an earlier list of operations. */
  backTo(operations: readonly PathOperation[]): void {
    this.operations = operations;
    this.#view = undefined;
    this.#writtenAt = undefined;
  }

  #list(operation: PathOperation): void {
    // An array that is created with one element reserves no further room; most stay that small.
    if (this.operations === NONE) {
      this.operations = [operation];
      return;
    }
    const operations = this.operations as PathOperation[];
    const last = operations[operations.length - 1];
    if (last?.op === "set" && operation.op === "set" && samePath(last.path, operation.path))
      operations[operations.length - 1] = operation;
    else operations.push(operation);
  }

  #materialised(now: number): View {
    if (!this.#view) {
      this.#view = new View(this.#base.value, now);
      for (const operation of this.operations) this.#view.apply(operation);
    }
    return this.#view;
  }
}

/** The rest of a path that begins with another. */
function below(above: Path, path: Path): Path {
  return above.length === 0 ? path : path.slice(above.length);
}

/** The document as the transaction sees it, once a scan of the list is not enough. */
class View {
  value: Json | undefined;
  readonly tick: number;
  /** Containers copied for this view that may be written until a reader gets them. */
  readonly #fresh = new Set<Container>();
  /** The paths that were set or deleted. */
  readonly #covered = new Set<string>();

  constructor(value: Json | undefined, tick: number) {
    this.value = value;
    this.tick = tick;
  }

  covers(path: Path): boolean {
    for (let length = path.length; length >= 0; length--) {
      if (this.#covered.has(JSON.stringify(path.slice(0, length)))) return true;
    }
    return false;
  }

  apply(operation: PathOperation): void {
    try {
      this.value = applyOperation(this.value, operation, (container) => this.#own(container)).root;
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      const message = "what the transaction had written into has been replaced meanwhile; run it again";
      throw new StoreError("STORE_STALE", message, { cause: error });
    }
    if (operation.op !== "splice") this.#covered.add(JSON.stringify(operation.path));
  }

  #own(container: Container): Container {
    if (isHandedOut(container)) this.#fresh.delete(container);
    return copyOnce(container, this.#fresh);
  }
}

function at(value: Json | undefined, path: Path): Json | undefined {
  return value === undefined ? undefined : getAt(value, path);
}

function samePath(a: Path, b: Path): boolean {
  return a.length === b.length && isPrefix(a, b);
}
