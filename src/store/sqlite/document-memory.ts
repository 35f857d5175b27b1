/**
 * Cache of documents that this process has looked up, found or not, valid until another process writes.
 */
import type { DocumentRef } from "../document.ts";
import type { PathOperation } from "../path-operation.ts";
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

/** Limit of characters over all documents. */
const LENGTH_MAX = 4_194_304;

/**
 * Cache of the patches since the last snapshot, for documents that this process writes. A frequently written document
 * gets frequent snapshots, and reading its patches back cost more than writing it. Limited in size: missing patches are
 * read from the changes. SPEC: S92.
 */
export class RecentPatches {
  /** Lists of operations, each preceded by a comma. */
  readonly #texts = new Map<StoredDocument, string>();
  #length = 0;

  /** A snapshot was made: later patches are cached. */
  begin(document: StoredDocument): void {
    this.drop(document);
    this.#texts.set(document, "");
  }

  add(document: StoredDocument, text: string): void {
    const before = this.#texts.get(document);
    if (before === undefined) return;
    if (this.#length + text.length > LENGTH_MAX) {
      this.drop(document);
      return;
    }
    this.#texts.set(document, `${before},${text}`);
    this.#length += text.length + 1;
  }

  drop(document: StoredDocument): void {
    this.#length -= this.#texts.get(document)?.length ?? 0;
    this.#texts.delete(document);
  }

  /** All patches since the snapshot, oldest first; undefined if they are not cached. */
  of(document: StoredDocument): readonly (readonly PathOperation[])[] | undefined {
    const text = this.#texts.get(document);
    return text === undefined ? undefined : JSON.parse(`[${text.slice(1)}]`);
  }

  clear(): void {
    this.#texts.clear();
    this.#length = 0;
  }
}
