/**
 * Verifies a store: walks the journal's hash chain, checks the sum of every block, base and snapshot, evaluates every
 * document, parses every due row (they have no sum), and runs the engine's own check. SPEC: S26, S87. It uses its own
 * connection with one snapshot while writers continue, and yields often (except for the engine's check).
 */

import type { Host } from "../../host/host.ts";
import { thrownText } from "../../message/error-data.ts";
import { Findings, PROBLEMS_MAX } from "../findings.ts";
import type { VerifyReport } from "../journal.ts";
import { BLOCK_COLUMNS, readBlock } from "./change-table.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import { DocumentTable } from "./document-table.ts";
import { DUE_COLUMNS, dueRow } from "./due-table.ts";
import { GENESIS, RowHasher, type SignedColumns, UNKNOWN_HASH } from "./journal-hash.ts";
import { READ_HEAD, ROW_COLUMNS } from "./journal-statements.ts";

const STEP_ROWS = 500;

/** The connection is inside a read transaction. */
export async function verifyStore(connection: SqliteConnection, host: Host): Promise<VerifyReport> {
  const scrub = new Scrub(connection, host);
  try {
    scrub.structure();
    await scrub.journal();
    await scrub.documents();
    await scrub.changes();
    await scrub.due();
  } catch (error) {
    // An unreadable page ends the walk; earlier findings are reported.
    scrub.note(`The walk ended early: ${thrownText(error)}.`);
  }
  return scrub.report();
}

class Scrub extends Findings {
  readonly #connection: SqliteConnection;
  readonly #host: Host;

  constructor(connection: SqliteConnection, host: Host) {
    super();
    this.#connection = connection;
    this.#host = host;
  }

  structure(): void {
    for (const { quick_check } of this.#connection.prepare(`PRAGMA quick_check(${PROBLEMS_MAX})`).all()) {
      if (quick_check !== "ok") this.note(`SQLite: ${quick_check}.`);
    }
  }

  async journal(): Promise<void> {
    const page = this.#connection.prepare(`SELECT ${ROW_COLUMNS} FROM event_journal WHERE id > ? ORDER BY id LIMIT ?`);
    const gaps = this.#connection.prepare("SELECT first_id, last_id, hash FROM journal_gap ORDER BY first_id").all();
    const chain = new ChainWalk(gaps, (problem) => this.note(problem));
    for (let rows = page.all(0, STEP_ROWS); rows.length > 0; rows = page.all(chain.lastId, STEP_ROWS)) {
      for (const row of rows) {
        this.rowCount++;
        if (row["hash"] === null) this.unsignedCount++;
        chain.visit(row);
      }
      await this.#host.yield();
    }
    chain.end(this.#connection.prepare(READ_HEAD).get());
  }

  async documents(): Promise<void> {
    const page = this.#connection.prepare(
      "SELECT document.id AS id, space.name AS space, space.id AS space_id, scope, document.name AS name, " +
        "document.sequence AS sequence FROM document " +
        "JOIN space ON space.id = document.space WHERE document.id > ? ORDER BY document.id LIMIT ?",
    );
    const documents = new DocumentTable(this.#connection);
    let last = 0;
    for (let rows = page.all(last, STEP_ROWS); rows.length > 0; rows = page.all(last, STEP_ROWS)) {
      for (const row of rows) this.#document(documents, row);
      last = Number(rows.at(-1)?.["id"]);
      documents.trim();
      await this.#host.yield();
    }
  }

  #document(documents: DocumentTable, row: Row): void {
    const { space, space_id, scope, name } = row;
    if (Number(row["sequence"]) > 0) this.documentCount++;
    try {
      // The walk has its own snapshot, so sequence and floor of the space are not used.
      const of = { id: Number(space_id), name: String(space), sequence: 0, floor: 0 };
      const document = documents.find(of, { scope: String(scope), id: String(name) });
      if (document) documents.value(document);
    } catch (error) {
      this.note(`Document ${scope}/${name} of space ${space}: ${thrownText(error)}`);
    }
  }

  /** Every block, also those that no document needs: the feed may still return them. */
  async changes(): Promise<void> {
    const page = this.#connection.prepare(`SELECT ${BLOCK_COLUMNS} FROM change WHERE id > ? ORDER BY id LIMIT ?`);
    let last = 0;
    for (let rows = page.all(last, STEP_ROWS); rows.length > 0; rows = page.all(last, STEP_ROWS)) {
      for (const row of rows) this.#block(row);
      last = Number(rows.at(-1)?.["id"]);
      await this.#host.yield();
    }
    for (const space of this.#connection.prepare("SELECT id, name, sequence, floor FROM space").all())
      await this.#feed(space);
  }

  /** Each commit within the feed must be in a block. */
  async #feed({ id, name, sequence, floor }: Row): Promise<void> {
    const page = this.#connection.prepare(
      "SELECT first, last FROM change WHERE space = ? AND last > ? ORDER BY first LIMIT ?",
    );
    let seen = Number(floor);
    for (
      let rows = page.all(Number(id), seen, STEP_ROWS);
      rows.length > 0;
      rows = page.all(Number(id), seen, STEP_ROWS)
    ) {
      for (const { first, last } of rows) {
        if (Number(first) > seen + 1) this.#missing(name, seen + 1, Number(first) - 1);
        seen = Number(last);
      }
      await this.#host.yield();
    }
    if (seen < Number(sequence)) this.#missing(name, seen + 1, Number(sequence));
  }

  #missing(space: unknown, from: number, to: number): void {
    this.note(`Changes of space ${space}: those of sequences ${from} to ${to} are missing.`);
  }

  #block(row: Row): void {
    try {
      readBlock(row);
    } catch (error) {
      this.note(`Changes of space row ${row["space"]}: ${thrownText(error)}`);
    }
  }

  async due(): Promise<void> {
    const page = this.#connection.prepare(`SELECT ${DUE_COLUMNS} FROM due WHERE ord > ? ORDER BY ord LIMIT ?`);
    let last = 0;
    for (let rows = page.all(last, STEP_ROWS); rows.length > 0; rows = page.all(last, STEP_ROWS)) {
      for (const row of rows) this.#dueRow(row);
      last = Number(rows.at(-1)?.["ord"]);
      await this.#host.yield();
    }
  }

  #dueRow(row: Row): void {
    try {
      dueRow(row);
    } catch (error) {
      this.note(thrownText(error));
    }
  }
}

/** Walks ids and hashes from the first row to the head. */
class ChainWalk {
  readonly #gaps: readonly Row[];
  readonly #report: (problem: string) => void;
  readonly #hasher = new RowHasher();
  #nextGap = 0;
  #hash = GENESIS;
  lastId = 0;

  constructor(gaps: readonly Row[], report: (problem: string) => void) {
    this.#gaps = gaps;
    this.#report = report;
  }

  visit(row: Row): void {
    const id = Number(row["id"]);
    this.#stepTo(id);
    this.lastId = id;
    const stored = row["hash"];
    if (stored === null) return;
    const isLinked = this.#hash !== UNKNOWN_HASH;
    if (isLinked && stored !== this.#hasher.hash(this.#hash, id, signedColumns(row))) {
      this.#report(`Journal row ${id} is not what was written, or the row before it is not.`);
    }
    // Continuing from the stored hash reports each damaged place once.
    this.#hash = String(stored);
  }

  end(head: Row | undefined): void {
    const last = Number(head?.["last_id"] ?? 0);
    if (this.lastId < last) this.#stepTo(last + 1);
    if (this.#hash !== UNKNOWN_HASH && this.#hash !== head?.["hash"])
      this.#report(`The journal does not end with row ${last} as it was written.`);
  }

  /** Passes the ids between the last row and this one: each of them must lie in a gap. */
  #stepTo(id: number): void {
    let expected = this.lastId + 1;
    while (expected < id) {
      const gap = this.#gaps[this.#nextGap];
      if (!gap || Number(gap["first_id"]) !== expected || Number(gap["last_id"]) >= id) break;
      this.#nextGap++;
      expected = Number(gap["last_id"]) + 1;
      this.#hash = String(gap["hash"]);
    }
    if (expected >= id) return;
    const remedy = 'If they were removed by hand, run "millrace verify --accept-removed" to take note of it';
    this.#report(`Journal rows ${expected} to ${id - 1} are missing, and retention did not remove them. ${remedy}.`);
    // The row after them cannot be compared.
    this.#hash = UNKNOWN_HASH;
  }
}

function signedColumns(row: Row): SignedColumns {
  const text = (name: string) => (row[name] === null ? null : String(row[name]));
  return {
    createdAt: Number(row["created_at"]),
    topic: String(row["topic"]),
    source: String(row["source"]),
    payload: String(row["payload"]),
    messageId: String(row["message_id"]),
    kind: String(row["kind"]),
    type: String(row["type"]),
    correlation: text("correlation_id"),
    causation: text("causation_id"),
    timestamp: row["timestamp"] === null ? null : Number(row["timestamp"]),
    metadata: text("metadata"),
  };
}
