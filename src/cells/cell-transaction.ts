/** A transaction over cells that lives across awaits: an explicit handle, since what runs after an await has no context. */

import { LINK_HOPS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { asLink, type DocumentRef } from "../store/document.ts";
import type { Transaction } from "../store/transaction.ts";
import type { Cell } from "./cell.ts";

export class CellTransaction implements Disposable {
  readonly transaction: Transaction;
  readonly #space: string;

  constructor(transaction: Transaction, space: string) {
    this.transaction = transaction;
    this.#space = space;
  }

  /** The value as this transaction sees it, its own writes included. */
  get<T>(cell: Cell<T>): T | undefined {
    const { ref, path } = this.#resolve(cell, true);
    return this.transaction.read(ref, path) as T | undefined;
  }

  set<T>(cell: Cell<T>, value: T): void {
    const { ref, path } = this.#resolve(cell, false);
    this.transaction.write(ref, path, value);
  }

  delete(cell: Cell<unknown>): void {
    const { ref, path } = this.#resolve(cell, false);
    this.transaction.remove(ref, path);
  }

  /** Applies everything at once; resolves when it is durable, or was rejected. */
  commit(): Promise<CommitOutcome> {
    return this.transaction.commit().outcome;
  }

  abort(): void {
    this.transaction.abort();
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  /** Follows links along the path and, for a read, at its end. */
  #resolve(cell: Cell<unknown>, last: boolean): { ref: DocumentRef; path: Path } {
    const { document, replica } = cell.address.home;
    if (replica.space !== this.#space) {
      throw new Error(`a transaction is of space "${this.#space}" alone, and ${cell} is in "${replica.space}"`);
    }
    let ref: DocumentRef = document;
    let path: Path = cell.address.path;
    for (let hops = 0; hops <= LINK_HOPS_MAX; hops++) {
      const found = this.#firstLink(ref, path, last);
      if (!found) return { ref, path };
      ref = found.ref;
      path = found.path;
    }
    throw new Error(`the links from ${cell} go around in a circle, or over more than ${LINK_HOPS_MAX} hops`);
  }

  #firstLink(ref: DocumentRef, path: Path, last: boolean): { ref: DocumentRef; path: Path } | undefined {
    const steps = last ? path.length : path.length - 1;
    for (let length = 0; length <= steps; length++) {
      const value: Json | undefined = this.transaction.glance(ref, path.slice(0, length));
      const link = asLink(value);
      if (!link) continue;
      this.transaction.read(ref, path.slice(0, length), "shallow");
      if (link.space !== undefined && link.space !== this.#space) {
        throw new Error(`a transaction is of space "${this.#space}" alone, and a link leads to "${link.space}"`);
      }
      return { ref: link, path: [...link.path, ...path.slice(length)] };
    }
    return undefined;
  }
}
