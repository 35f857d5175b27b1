/**
 * Something for each document of a space. By scope, then by id: two look-ups of names whose hashes are known are cheaper than making one
 * name of both, which would have to be hashed anew for every look-up.
 */
import type { DocumentRef } from "./document.ts";

export class DocumentMap<T> {
  readonly #scopes = new Map<string, Map<string, T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get({ scope, id }: DocumentRef): T | undefined {
    return this.#scopes.get(scope)?.get(id);
  }

  /** Adds what is not there yet. */
  add({ scope, id }: DocumentRef, value: T): void {
    let ids = this.#scopes.get(scope);
    if (ids === undefined) {
      ids = new Map();
      this.#scopes.set(scope, ids);
    }
    ids.set(id, value);
    this.#size++;
  }

  delete({ scope, id }: DocumentRef): void {
    const ids = this.#scopes.get(scope);
    if (ids?.delete(id) !== true) return;
    this.#size--;
    if (ids.size === 0) this.#scopes.delete(scope);
  }

  *values(): IterableIterator<T> {
    for (const ids of this.#scopes.values()) yield* ids.values();
  }
}
