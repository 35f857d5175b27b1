/**
 * The limit: bare `node:sqlite` with hand-written statements for the durable work of a workload. Tables and indexes are
 * copied from a file of our store, so the two cannot differ. It encodes the payload; it does not check, hash, count
 * attempts or answer, and it settles by ranges because it knows its rows.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { JournalEntry } from "../../src/store/journal.ts";
import { DEFAULT_TUNING } from "../../src/store/sqlite/options.ts";
import { type Durability, SYNCHRONOUS } from "./durability.ts";
import { openMillrace } from "./millrace.ts";

/** A range of rows that one statement settles. */
export interface Rows {
  readonly first: number;
  readonly last: number;
}

const LEASE = 1;
/** The receipt of a handler without a result. */
const NO_RESULT = JSON.stringify([{ op: "set", path: [], value: {} }]);
/** As long as a real one. */
const HASH = "mRbYh1Bq3Zk0Vt8Wc5Xn7Lp2Ds9Fg4Ja6Ke_Ti-UoQw";

export class BareSqlite implements Disposable {
  readonly #database: DatabaseSync;
  readonly #sql;
  #lastId = 0;
  /** Of the documents. */
  #commits = 0;
  #unsettled: Rows | undefined;

  private constructor(database: DatabaseSync) {
    this.#database = database;
    this.#sql = statements(database);
  }

  static async open(directory: string, durability: Durability): Promise<BareSqlite> {
    const definitions = await copyOfDefinitions(directory, durability);
    const database = new DatabaseSync(join(directory, "bare.db"));
    for (const pragma of pragmas(durability)) database.exec(`PRAGMA ${pragma}`);
    for (const sql of definitions) database.exec(sql);
    return new BareSqlite(database);
  }

  /** Inserts rows as pending, in one transaction. */
  append(entries: readonly JournalEntry[]): void {
    this.#sql.begin.run();
    this.#insert(entries, "pending", null);
    this.#sql.commit.run();
  }

  /** Inserts rows as claimed and settles those of the last call, in one transaction. */
  appendClaimedAndSettleLast(entries: readonly JournalEntry[]): void {
    this.#sql.begin.run();
    const last = this.#unsettled;
    this.#unsettled = this.#insert(entries, "processing", LEASE);
    if (last) this.#sql.settle.run(Date.now() / 1000, last.first, last.last, LEASE);
    this.#sql.commit.run();
  }

  /**
   * Inserts rows as claimed; and of those of the last call writes a document each, of `books` in turn, leaves a receipt
   * each and settles them: all in one transaction. Documents that several of them write are written once.
   */
  appendClaimedAndHandleLast(entries: readonly JournalEntry[], books: number): void {
    this.#sql.begin.run();
    const last = this.#unsettled;
    this.#unsettled = entries.length === 0 ? undefined : this.#insert(entries, "processing", LEASE);
    if (last) this.#handle(last, books);
    this.#sql.commit.run();
  }

  #handle({ first, last }: Rows, books: number): void {
    const firstCommit = this.#commits + 1;
    const values = new Map<number, string>();
    const changes: string[] = [];
    for (let id = first; id <= last; id++) {
      const sequence = ++this.#commits;
      const value = JSON.stringify([{ op: "set", path: [], value: { last: id } }]);
      values.set(id % books, value);
      this.#sql.receipt.run(
        `receipt:36:${String(id).padStart(36, "0")}:bench`,
        sequence,
        sequence,
        NO_RESULT.length,
        NO_RESULT,
      );
      changes.push(`@${sequence} ${value} ${NO_RESULT}`);
    }
    for (const [book, value] of values) {
      const [sequence, bytes] = [this.#commits, value.length];
      this.#sql.document.run(`book-${book}`, sequence, sequence, bytes, value);
    }
    this.#sql.patch.run(firstCommit, this.#commits, changes.join("\n"));
    this.#sql.settle.run(Date.now() / 1000, first, last, LEASE);
  }

  settleLast(): void {
    if (this.#unsettled) this.settle(this.#unsettled);
    this.#unsettled = undefined;
  }

  /** Claims pending rows, reads and decodes them, in one transaction. */
  claim(limit: number): Rows {
    this.#sql.begin.run();
    const rows = this.#sql.claimable.all(limit);
    for (const row of rows) JSON.parse(String(row["payload"]));
    const range = { first: Number(rows[0]?.["id"]), last: Number(rows.at(-1)?.["id"]) };
    this.#sql.claim.run(LEASE, range.first, range.last);
    this.#sql.commit.run();
    return range;
  }

  settle({ first, last }: Rows): void {
    this.#sql.begin.run();
    this.#sql.settle.run(Date.now() / 1000, first, last, LEASE);
    this.#sql.commit.run();
  }

  /** A row for each patch of a document, as many in one transaction as there are. */
  appendPatches(document: number, patches: readonly string[]): void {
    this.#sql.begin.run();
    for (const patch of patches) {
      const sequence = ++this.#lastId;
      this.#sql.patch.run(sequence, sequence, `\n@${sequence} 1 ${sequence}\n${document} 0 ${patch}`);
    }
    this.#sql.commit.run();
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #insert(entries: readonly JournalEntry[], status: string, lease: number | null): Rows {
    const first = this.#lastId + 1;
    const createdAt = Date.now() / 1000;
    for (const { topic, source, message } of entries) {
      const { id, timestamp, correlation = null } = message.metadata;
      const payload = JSON.stringify(message.data);
      this.#sql.insert.run(
        ++this.#lastId,
        correlation,
        topic,
        source,
        payload,
        status,
        createdAt,
        id,
        message.kind,
        message.type,
        timestamp,
        lease,
        HASH,
      );
    }
    return { first, last: this.#lastId };
  }
}

const DOCUMENT_COLUMNS =
  "space, scope, name, sequence, patch_bytes, base_sequence, base_bytes, snapshot_sequence, base, base_sum, present";

function statements(database: DatabaseSync) {
  return {
    begin: database.prepare("BEGIN IMMEDIATE"),
    commit: database.prepare("COMMIT"),
    insert: database.prepare(
      "INSERT INTO event_journal (id, correlation_id, topic, source, payload, status, created_at, message_id, kind, type, " +
        "timestamp, lease, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    claimable: database.prepare(
      "SELECT * FROM event_journal WHERE status = 'pending' AND status <> 'done' AND next_attempt_at IS NULL " +
        "AND kind = 'event' ORDER BY id LIMIT ?",
    ),
    claim: database.prepare(
      "UPDATE event_journal SET status = 'processing', attempts = attempts + 1, lease = ? WHERE id BETWEEN ? AND ?",
    ),
    settle: database.prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, lease = NULL " +
        "WHERE id BETWEEN ? AND ? AND status = 'processing' AND lease = ?",
    ),
    receipt: database.prepare(
      `INSERT INTO document (${DOCUMENT_COLUMNS}) VALUES (1, 'shared', ?, ?, 0, ?, ?, 0, ?, 0, 1) ` +
        "ON CONFLICT (space, scope, name) DO NOTHING",
    ),
    document: database.prepare(
      `INSERT INTO document (${DOCUMENT_COLUMNS}) VALUES (1, 'shared', ?, ?, 0, ?, ?, 0, ?, 0, 1) ` +
        "ON CONFLICT (space, scope, name) DO UPDATE SET sequence = excluded.sequence, " +
        "base_sequence = excluded.base_sequence, base_bytes = excluded.base_bytes, base = excluded.base",
    ),
    patch: database.prepare("INSERT INTO change (space, first, last, needed, commits, sum) VALUES (1, ?, ?, 1, ?, 0)"),
  };
}

/**
 * The settings of the store's own connection. The engine copies the log inside a COMMIT, from the length at which the
 * store's thread begins to.
 */
function pragmas(durability: Durability): readonly string[] {
  return [
    "journal_mode = WAL",
    `synchronous = ${SYNCHRONOUS[durability]}`,
    `wal_autocheckpoint = ${DEFAULT_TUNING.checkpointPages}`,
    `cache_size = ${-Math.ceil(DEFAULT_TUNING.cacheBytes / 1024)}`,
    `journal_size_limit = ${64 * 1_048_576}`,
    "cell_size_check = ON",
    "temp_store = MEMORY",
  ];
}

async function copyOfDefinitions(directory: string, durability: Durability): Promise<readonly string[]> {
  const ours = await openMillrace(directory, durability);
  await ours.close();
  using database = new DatabaseSync(join(directory, "millrace.db"), { readOnly: true });
  const found = database
    .prepare(
      "SELECT sql FROM sqlite_master WHERE tbl_name IN ('event_journal', 'change', 'document') AND sql IS NOT NULL ORDER BY rowid",
    )
    .all();
  return found.map((row) => String(row["sql"]));
}
