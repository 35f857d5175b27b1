/**
 * Cache of the patches since the last snapshot, for documents that this process writes. A frequently written document
 * gets frequent snapshots, and reading its patches back cost more than writing it. Limited in size: missing patches are
 * read from the changes. SPEC: S92.
 */
import type { PathOperation } from "../path-operation.ts";
import type { StoredDocument } from "./stored-document.ts";

/** Limit of characters over all documents. */
const LENGTH_MAX = 4_194_304;

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
