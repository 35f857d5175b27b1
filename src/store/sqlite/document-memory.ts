/**
 * Cache of documents that this process has looked up, found or not, valid until another process writes.
 */
import type { DocumentRef } from "../document.ts";
import type { StoredDocument } from "./stored-document.ts";

const DOCUMENTS_MAX = 50_000;

export class DocumentMemory {
  /** By space row, scope and id: three lookups of existing strings are cheaper than building one key. */
  readonly #documents = new Map<number, Map<string, Map<string, StoredDocument>>>();
  #count = 0;

  get(space: number, { scope, id }: DocumentRef): StoredDocument | undefined {
    return this.#documents.get(space)?.get(scope)?.get(id);
  }

  add(document: StoredDocument): StoredDocument {
    const ofSpace = this.#documents.get(document.space) ?? new Map<string, Map<string, StoredDocument>>();
    const ofScope = ofSpace.get(document.scope) ?? new Map<string, StoredDocument>();
    this.#documents.set(document.space, ofSpace.set(document.scope, ofScope.set(document.id, document)));
    this.#count++;
    return document;
  }

  delete({ space, scope, id }: StoredDocument): void {
    if (this.#documents.get(space)?.get(scope)?.delete(id)) this.#count--;
  }

  /**
   * Bounds the cache: returns true if it was cleared. Only between transactions: inside one, a document must be one
   * object.
   */
  trim(): boolean {
    if (this.#count <= DOCUMENTS_MAX) return false;
    this.clear();
    return true;
  }

  clear(): void {
    this.#documents.clear();
    this.#count = 0;
  }
}
