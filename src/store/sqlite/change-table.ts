/**
 * The patches of documents, one row for each document of each commit, in the order of commits. SPEC: S20, S21, S87.
 *
 * New rows go to the end of the table, whichever document they belong to: keyed by document, every commit would touch a page for
 * each document it writes, and those pages were two fifths of all that a handling wrote. What a document's own order needs is in the
 * rows: each names the change before it, so that a document is read by walking back from its newest change. The walk checks
 * every row that it passes, and one that is missing or was altered ends it with an error.
 */

import type { DocumentRef } from "../document.ts";
import type { PathOperation } from "../path-operation.ts";
import { StoreError } from "../store.ts";
import { checksum } from "./checksum.ts";
import type { Connection, Row } from "./connection.ts";

/** Where a document's changes are. */
export interface ChangedDocument {
  readonly space: number;
  readonly row: number;
  /** Of its newest change. */
  readonly sequence: number;
}

export interface Patch {
  readonly sequence: number;
  readonly session: number;
  readonly operations: readonly PathOperation[];
}

export class ChangeTable {
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = statements(connection);
  }

  /** Adds a change of a document whose newest one, so far, is that of `document.sequence`. */
  append({ space, row, sequence: previous }: ChangedDocument, sequence: number, session: number, text: string): void {
    const sum = checksum(text, { document: row, sequence, previous });
    this.#sql.append.run(space, sequence, row, previous, session, text, sum);
  }

  /** The changes after a sequence, oldest first. */
  after(document: ChangedDocument, sequence: number): Patch[] {
    const end = Math.max(sequence, 0);
    const patches: Patch[] = [];
    let at = document.sequence;
    for (const row of this.#walkBack(document, end)) {
      patches.push({ sequence: at, session: Number(row["session"]), operations: operationsIn(row) });
      at = Number(row["previous"]);
    }
    if (at > end) throw damaged(document.row, at);
    return patches.reverse();
  }

  /** The rows after a sequence, newest first, as far as they are there. */
  #walkBack({ space, row, sequence }: ChangedDocument, end: number): Row[] {
    const newest = sequence > end ? this.#sql.change.get(space, sequence, row) : undefined;
    if (!newest) return [];
    // Most documents have one change to be read; where there are more, one statement finds them all.
    const previous = Number(newest["previous"]);
    return previous > end ? [newest, ...this.#sql.changesBack.all(space, previous, row, end)] : [newest];
  }

  /** What the commit of that sequence did to the document. */
  at(
    space: number,
    row: number,
    sequence: number,
  ): { ref: DocumentRef; operations: readonly PathOperation[] } | undefined {
    const change = this.#sql.namedChange.get(space, sequence, row);
    if (!change) return undefined;
    return { ref: { scope: String(change["scope"]), id: String(change["name"]) }, operations: operationsIn(change) };
  }

  drop({ space, row }: ChangedDocument, sequence: number): void {
    this.#sql.drop.run(space, sequence, row);
  }

  /** Drops the changes of commits after one sequence and up to another, but for those that loading a document, as it stands in its table, needs. */
  dropUnneeded(space: number, after: number, upTo: number): void {
    this.#sql.dropUnneeded.run(space, after, upTo);
  }
}

/** The operations of a row; throws when its bytes, or its place among the changes, are not those that were written. */
export function operationsIn(row: Row): readonly PathOperation[] {
  const text = String(row["patch"]);
  const [document, sequence] = [Number(row["document"]), Number(row["sequence"])];
  if (checksum(text, { document, sequence, previous: Number(row["previous"]) }) !== row["sum"]) {
    throw damaged(document, sequence);
  }
  return JSON.parse(text);
}

export function damaged(document: number, sequence: number): StoreError {
  const where = `document row ${document}, sequence ${sequence}`;
  return new StoreError("STORE_CORRUPT", `Stored bytes have changed (${where}). Run verify, then restore a copy.`);
}

function statements(connection: Connection) {
  const prepare = (sql: string) => connection.prepare(sql);
  const columns = "change.sequence AS sequence, document, previous, session, patch, sum";
  const key = "change.space = ? AND change.sequence = ? AND document = ?";
  return {
    append: prepare(
      "INSERT INTO change (space, sequence, document, previous, session, patch, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    change: prepare(`SELECT ${columns} FROM change WHERE ${key}`),
    // A row that names one after it is damaged; the walk must not go round in a circle.
    changesBack: prepare(
      "WITH RECURSIVE walk(sequence, document, previous, session, patch, sum) AS (" +
        "SELECT sequence, document, previous, session, patch, sum FROM change WHERE space = ?1 AND sequence = ?2 AND document = ?3 " +
        "UNION ALL SELECT change.sequence, change.document, change.previous, change.session, change.patch, change.sum " +
        "FROM walk CROSS JOIN change ON change.space = ?1 AND change.sequence = walk.previous AND change.document = ?3 " +
        "WHERE walk.previous > ?4 AND walk.previous < walk.sequence) SELECT * FROM walk",
    ),
    namedChange: prepare(
      `SELECT scope, name, ${columns} FROM change JOIN document ON document.id = change.document WHERE ${key}`,
    ),
    drop: prepare(`DELETE FROM change WHERE ${key}`),
    dropUnneeded: prepare(
      "DELETE FROM change WHERE space = ? AND sequence > ? AND sequence <= ? AND sequence < " +
        "(SELECT max(base_sequence, snapshot_sequence + 1) FROM document WHERE document.id = change.document)",
    ),
  };
}
