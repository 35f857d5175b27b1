/**
 * Patches since the last snapshots of documents, as far as this process has written them itself. A document that is written often gets
 * a snapshot often, and looking for each of its patches among the changes cost more than writing it. Bounded in size: what
 * is not here is read back. SPEC: S92.
 */
import type { PathOperation } from "../path-operation.ts";
import type { StoredDocument } from "./stored-document.ts";

/** Characters kept, over all documents. */
const LENGTH_MAX = 4_194_304;

export class RecentPatches {
  /** Lists of operations, each with a comma before it. */
  readonly #texts = new Map<StoredDocument, string>();
  #length = 0;

  /** A snapshot was made: from here on its patches are kept. */
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

  /** All patches since the snapshot, oldest first; undefined when they are not known here. */
  of(document: StoredDocument): readonly (readonly PathOperation[])[] | undefined {
    const text = this.#texts.get(document);
    return text === undefined ? undefined : JSON.parse(`[${text.slice(1)}]`);
  }

  clear(): void {
    this.#texts.clear();
    this.#length = 0;
  }
}
