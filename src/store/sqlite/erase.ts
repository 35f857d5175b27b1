/**
 * Erases the data of a subject from a store file permanently. SPEC: S134-S137, S145.
 *
 * - Documents with the subject in their name are removed without a trace.
 * - Done and failed journal rows that mention the subject, and rows caused by them, keep their place in the hash chain
 *   and lose payload, metadata and error texts. Receipts of these messages lose their results.
 * - The feed of every space restarts at its head, and every document with patches gets a new base, because patches and
 *   snapshots contain old values.
 * - Every space moves on by one sequence that the feed does not have, so that replicas load their documents again.
 * - Freed pages are overwritten, the file is rebuilt, and the log is truncated.
 *
 * Pending rows, timers, and documents that mention the subject only in their values stay and are reported.
 */
import { ERASE_LEFT_MAX, ERASE_READERS_MS } from "../../limits.ts";
import { ERASED_RESULT, type Erased, type EraseRequest, mentions } from "../erase.ts";
import { eventOf, isReceiptName } from "../receipt-name.ts";
import { StoreError } from "../store.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import { configure, openConnection } from "./connection.ts";
import { DocumentBase } from "./document-base.ts";
import { DocumentTable } from "./document-table.ts";
import { erasedDigest, tombstoneOf } from "./erased-text.ts";
import type { SqliteStoreOptions } from "./options.ts";
import { resolveOptions } from "./options.ts";

/** Finds the data, and erases it if `apply` is true, in the caller's transaction. `rebuild` must follow the commit. */
export function eraseSubject(connection: SqliteConnection, request: EraseRequest): Erased {
  const erasure = new Erasure(connection, request);
  const erased = erasure.find();
  if (request.apply) erasure.apply();
  return erased;
}

/**
 * Removes pages that held erased text, from the file and its log. The copy in between is a file: the store may be
 * large.
 */
export const REBUILD = [
  `PRAGMA busy_timeout = ${ERASE_READERS_MS}`,
  "PRAGMA temp_store = 1",
  "VACUUM",
  "PRAGMA temp_store = 2",
] as const;
export const TRUNCATE_LOG = "PRAGMA wal_checkpoint(TRUNCATE)";

export function rebuild(connection: SqliteConnection): void {
  try {
    for (const sql of REBUILD) connection.exec(sql);
    requireTruncated(connection.prepare(TRUNCATE_LOG).get());
  } finally {
    connection.exec("PRAGMA busy_timeout = 0");
  }
}

/** `result` is the row of the statement that truncates the log. */
export function requireTruncated(result: { readonly busy?: unknown } | undefined): void {
  if (result?.busy === 0) return;
  throw new StoreError(
    "STORE_BUSY",
    "the data were erased, but a reader keeps the log with their text; end readers of the file and erase again",
  );
}

class Erasure {
  readonly #connection: SqliteConnection;
  readonly #subject: string;
  readonly #askedBy: string | undefined;
  readonly #documents: DocumentTable;
  readonly #bases: DocumentBase;
  readonly #named: number[] = [];
  readonly #rows = new Map<number, Row>();
  /** The row of the message that asks for the erasure. */
  #asking: Row | undefined;
  readonly #messages = new Set<string>();
  readonly #receipts: number[] = [];

  constructor(connection: SqliteConnection, { subject, askedBy }: EraseRequest) {
    this.#connection = connection;
    this.#subject = subject;
    this.#askedBy = askedBy;
    this.#documents = new DocumentTable(connection);
    this.#bases = new DocumentBase(connection);
  }

  find(): Erased {
    const unsettled = this.#findRows();
    const left = this.#findDocuments();
    const due = this.#all("SELECT key, data FROM due").filter((row) => this.#isIn(row, ["key", "data"])).length;
    return {
      documents: this.#named.length,
      rows: this.#rows.size,
      receipts: this.#receipts.length,
      left: { unsettled, due, documents: left },
    };
  }

  apply(): void {
    this.#eraseRows();
    this.#eraseReceipts();
    this.#removeDocuments();
    this.#rebase();
    this.#connection.exec("DELETE FROM change; UPDATE space SET sequence = sequence + 1, floor = sequence + 1");
  }

  /** Finds rows that mention the subject, and rows caused by them. Returns the number of unsettled ones. */
  #findRows(): number {
    let unsettled = 0;
    const columns = ["payload", "metadata", "correlation_id", "error", "reason"];
    const rows = this.#all(
      "SELECT id, message_id, causation_id, status, payload, metadata, correlation_id, error, reason FROM event_journal ORDER BY id",
    );
    for (const row of rows) {
      const isCaused = row["causation_id"] !== null && this.#messages.has(String(row["causation_id"]));
      if (!isCaused && !this.#isIn(row, columns)) continue;
      if (this.#askedBy !== undefined && row["message_id"] === this.#askedBy) this.#asking = row;
      else if (row["status"] !== "done" && row["status"] !== "failed") unsettled++;
      else {
        if (row["message_id"] !== null) this.#messages.add(String(row["message_id"]));
        if (erasedDigest(String(row["payload"])) === undefined) this.#rows.set(Number(row["id"]), row);
      }
    }
    return unsettled;
  }

  #findDocuments(): string[] {
    const left: string[] = [];
    const rows = this.#all(
      "SELECT document.id AS id, space.id AS space_id, space.name AS space, scope, document.name AS name FROM document JOIN space ON space.id = document.space",
    );
    for (const { id, space_id, space, scope, name } of rows) {
      const ref = { scope: String(scope), id: String(name) };
      const of = { id: Number(space_id), name: String(space), sequence: 0, floor: 0 };
      if (isReceiptName(ref.id)) {
        if (this.#isOfErased(ref.id) || this.#isInValue(of, ref)) this.#receipts.push(Number(id));
      } else if (mentions(ref.id, this.#subject) || mentions(ref.scope, this.#subject)) this.#named.push(Number(id));
      else if (left.length < ERASE_LEFT_MAX && this.#isInValue(of, ref)) left.push(`${space}/${scope}/${name}`);
      this.#documents.trim();
    }
    return left;
  }

  #isInValue(
    space: { id: number; name: string; sequence: number; floor: number },
    ref: { scope: string; id: string },
  ): boolean {
    const document = this.#documents.find(space, ref);
    const value = document && this.#documents.value(document);
    return value !== undefined && mentions(JSON.stringify(value), this.#subject);
  }

  /** Whether it is the receipt of a message that loses its payload. */
  #isOfErased(name: string): boolean {
    const event = eventOf(name);
    if (event !== undefined) return this.#messages.has(event.id);
    return this.#messages.has(name.slice(name.indexOf("/") + 1));
  }

  #eraseRows(): void {
    const update = this.#connection.prepare(
      "UPDATE event_journal SET payload = ?, metadata = ?, error = ?, reason = ? WHERE id = ?",
    );
    const deliveries = this.#connection.prepare(
      "UPDATE delivery SET error = 'erased' WHERE event = ? AND error IS NOT NULL",
    );
    if (this.#asking) this.#rows.set(Number(this.#asking["id"]), this.#asking);
    for (const [id, { payload, metadata, error, reason }] of this.#rows) {
      const further = metadata === null ? null : tombstoneOf(String(metadata));
      const [failure, why] = [error, reason].map((text) => (text === null ? null : "erased"));
      update.run(tombstoneOf(String(payload)), further, failure ?? null, why ?? null, id);
      deliveries.run(id);
    }
  }

  /** A receipt stays as proof that the request was handled; its answer is removed. */
  #eraseReceipts(): void {
    const sequence = this.#connection.prepare("SELECT sequence FROM document WHERE id = ?");
    for (const row of this.#receipts) this.#bases.put(row, Number(sequence.get(row)?.["sequence"]), ERASED_RESULT);
  }

  #removeDocuments(): void {
    const gone = new Set(this.#named);
    if (gone.size === 0) return;
    const rows = JSON.stringify(this.#named);
    for (const [table, column] of [
      ["document", "id"],
      ["snapshot", "document"],
      ["label", "document"],
    ])
      this.#connection.prepare(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`).run(rows);
    const unused = this.#connection.prepare("UPDATE path_set SET uses = uses - 1 WHERE id = ?");
    const forget = this.#connection.prepare("DELETE FROM node WHERE space = ? AND name = ?");
    for (const { space, name, inputs } of this.#all("SELECT space, name, inputs FROM node")) {
      const list = JSON.parse(String(inputs)) as number[];
      if (!list.some((value, at) => at % 3 === 0 && gone.has(value))) continue;
      for (let at = 2; at < list.length; at += 3) unused.run(list[at] as number);
      forget.run(Number(space), String(name));
    }
    this.#connection.exec("DELETE FROM path_set WHERE uses <= 0");
  }

  /** Every document whose value is not only in its base gets a new base. */
  #rebase(): void {
    const rows = this.#all(
      "SELECT document.id AS id, space.id AS space_id, space.name AS space, scope, document.name AS name FROM document " +
        "JOIN space ON space.id = document.space WHERE document.sequence > 0 AND (patch_bytes > 0 OR (base IS NULL AND snapshot_sequence = 0))",
    );
    const documents = new DocumentTable(this.#connection);
    for (const { id, space_id, space, scope, name } of rows) {
      const of = { id: Number(space_id), name: String(space), sequence: 0, floor: 0 };
      const document = documents.find(of, { scope: String(scope), id: String(name) });
      if (document) this.#bases.put(Number(id), document.sequence, documents.value(document));
      documents.trim();
    }
    this.#connection.exec(
      "DELETE FROM snapshot WHERE NOT EXISTS (SELECT 1 FROM document WHERE document.id = document AND snapshot_sequence = snapshot.sequence)",
    );
  }

  #isIn(row: Row, columns: readonly string[]): boolean {
    return columns.some((column) => row[column] !== null && mentions(String(row[column]), this.#subject));
  }

  #all(sql: string): Row[] {
    return this.#connection.prepare(sql).all();
  }
}

/**
 * Opens a file exclusively to erase a subject from it. `apply: false` only reports matches. The caller holds the lock
 * of the data directory; throws if the store is open elsewhere.
 */
export function eraseFromFile(options: SqliteStoreOptions, subject: string, apply: boolean): Erased {
  const resolved = resolveOptions(options);
  const connection = openConnection(resolved, !apply);
  try {
    configure(connection, resolved, !apply);
    if (!apply) return inTransaction(connection, "BEGIN", () => eraseSubject(connection, { subject, apply }));
    // Freed space is overwritten, even if the rebuild is interrupted.
    connection.exec("PRAGMA secure_delete = ON; PRAGMA locking_mode = EXCLUSIVE");
    const erased = inTransaction(connection, "BEGIN EXCLUSIVE", () => eraseSubject(connection, { subject, apply }));
    rebuild(connection);
    return erased;
  } finally {
    connection.close();
  }
}

function inTransaction<T>(connection: SqliteConnection, begin: string, work: () => T): T {
  connection.exec(begin);
  try {
    const result = work();
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  }
}
