/**
 * A map from documents to values, by scope and then by id: two lookups with cached string hashes are cheaper than
 * hashing a combined key each time. Callers often look up one document several times in a row, so the last result is
 * cached.
 */
import type { DocumentRef } from "./document.ts";

export class DocumentMap<T> {
  readonly #scopes = new Map<string, Map<string, T>>();
  #size = 0;
  /** The ids of the last scope; almost all documents share one. */
  #scope = "";
  #ids: Map<string, T> | undefined;
  /** The last result in that scope. */
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

  /** Adds an entry that must not exist yet. */
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

  *entries(): IterableIterator<[DocumentRef, T]> {
    for (const [scope, ids] of this.#scopes) for (const [id, value] of ids) yield [{ scope, id }, value];
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
