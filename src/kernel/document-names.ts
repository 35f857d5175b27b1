/**
 * The names of the documents in a store, for `millrace ls documents`. Reads only, also while kernels have it open. The
 * store tells whether a document still exists and its value.
 */
import { DatabaseSync } from "node:sqlite";
import type { DocumentRef } from "../store/document.ts";
import { databaseUrls, isDatabaseUrl } from "./open-store.ts";

export interface NameQuery {
  readonly space: string;
  readonly prefix: string;
  /** Continues after this document; default: from the beginning. */
  readonly after: DocumentRef | undefined;
  readonly limit: number;
}

/** Receipts are as many as messages, so they are listed only if the prefix asks for them. */
const RECEIPT = "receipt";

export interface DocumentNames extends AsyncDisposable {
  spaces(): Promise<readonly string[]>;
  /** In the order of scope and name. */
  page(query: NameQuery): Promise<readonly DocumentRef[]>;
}

/** `place`: a store file, or the URL of a database. */
export async function openDocumentNames(place: string): Promise<DocumentNames> {
  if (!isDatabaseUrl(place)) return new FileNames(place);
  const { DatabaseInspection } = await import("../store/postgres/inspect.ts");
  const database = await DatabaseInspection.open({ url: databaseUrls(place) });
  return {
    spaces: () => database.spaces(),
    page: ({ space, prefix, after, limit }) => database.names(space, prefix, after, limit),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

class FileNames implements DocumentNames {
  readonly #database: DatabaseSync;

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true });
  }

  async spaces(): Promise<string[]> {
    const rows = this.#database.prepare("SELECT name FROM space ORDER BY name").all();
    return rows.map(({ name }) => String(name));
  }

  async page({ space, prefix, after, limit }: NameQuery): Promise<DocumentRef[]> {
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database.close();
  }
}
