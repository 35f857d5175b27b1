/**
 * The names of the documents in a store file, for `millrace ls documents`. Reads only the file, also while a kernel
 * has it open. The store tells whether a document still exists and its value.
 */
import { DatabaseSync } from "node:sqlite";
import type { DocumentRef } from "../store/document.ts";

export interface NameQuery {
  readonly space: string;
  readonly prefix: string;
  /** Continues after this document; default: from the beginning. */
  readonly after: DocumentRef | undefined;
  readonly limit: number;
}

/** Receipts are as many as messages, so they are listed only if the prefix asks for them. */
const RECEIPT = "receipt";

export class DocumentNames implements Disposable {
  readonly #database: DatabaseSync;

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true });
  }

  spaces(): string[] {
    const rows = this.#database.prepare("SELECT name FROM space ORDER BY name").all();
    return rows.map(({ name }) => String(name));
  }

  /** In the order of scope and name. */
  page({ space, prefix, after, limit }: NameQuery): DocumentRef[] {
    const rows = this.#database
      .prepare(
        `SELECT scope, document.name AS id FROM document JOIN space ON space.id = document.space
         WHERE space.name = ? AND document.sequence > 0 AND (scope, document.name) > (?, ?)
           AND substr(document.name, 1, length(?)) = ?
           AND (? OR (document.name NOT LIKE 'receipt/%' AND document.name NOT LIKE 'receipt:%'))
         ORDER BY scope, document.name LIMIT ?`,
      )
      .all(
        ...[space, after?.scope ?? "", after?.id ?? "", prefix, prefix],
        ...[prefix.startsWith(RECEIPT) ? 1 : 0, limit],
      );
    return rows.map(({ scope, id }) => ({ scope: String(scope), id: String(id) }));
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}
