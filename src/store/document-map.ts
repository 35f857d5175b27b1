/**
 * Something for each document of a space. By scope, then by id: two look-ups of names whose hashes are known are cheaper than making one
 * name of both, which would have to be hashed anew for every look-up. Whoever works on a document asks for it several times in a row, so
 * what was found last is remembered.
 */
import type { DocumentRef } from "./document.ts";

export class DocumentMap<T> {
  readonly #scopes = new Map<string, Map<string, T>>();
  #size = 0;
  /** The ids of the scope that was asked for last; nearly all documents are in one. */
  #scope = "";
  #ids: Map<string, T> | undefined;
  /** Found last, in that scope. */
  #id = "";
  #found: T | undefined;

  get size(): number {
    return this.#size;
  }

  get({ scope, id }: DocumentRef): T | undefined {
    if (scope !== this.#scope) this.#enter(scope);
    else if (id === this.#id && this.#found !== undefined) return this.#found;
    const found = this.#ids?.get(id);
    if (found === undefined) return undefined;
    this.#id = id;
    this.#found = found;
    return found;
  }

  /** Adds what is not there yet. */
  add({ scope, id }: DocumentRef, value: T): void {
    if (scope !== this.#scope) this.#enter(scope);
    if (this.#ids === undefined) {
      this.#ids = new Map();
      this.#scopes.set(scope, this.#ids);
    }
    this.#ids.set(id, value);
    this.#size++;
  }

  delete({ scope, id }: DocumentRef): void {
    const ids = this.#scopes.get(scope);
    if (ids?.delete(id) !== true) return;
    this.#size--;
    if (ids.size === 0) this.#scopes.delete(scope);
    this.#enter(scope);
  }

  /** The entries of one scope, by id. */
  of(scope: string): ReadonlyMap<string, T> {
    return this.#scopes.get(scope) ?? new Map<string, T>();
  }

  *values(): IterableIterator<T> {
    for (const ids of this.#scopes.values()) yield* ids.values();
  }

  #enter(scope: string): void {
    this.#scope = scope;
    this.#ids = this.#scopes.get(scope);
    this.#found = undefined;
  }
}
