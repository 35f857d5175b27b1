/**
 * Removes done rows; dead letters stay. SPEC: J30. A removed range leaves a _gap_ row with the hash, so that the chain
 * can still be verified from end to end; adjacent ranges are merged. Works in small steps, each its own job, so that a
 * journal of millions of rows does not block the event loop.
 */
import type { RemovedRange, Retention } from "../journal.ts";
import { AT_MOST, type Row, type SqliteConnection } from "./connection.ts";
import { GENESIS, UNKNOWN_HASH } from "./journal-hash.ts";
import { READ_HEAD } from "./journal-statements.ts";

/** Rows per step, and steps per job: a journal of ordinary size takes one job. */
const STEP_ROWS = 500;
const JOB_STEPS = 8;
/**
 * Consecutive rows created after the time limit before the search ends: later rows were settled later still, unless the
 * clock was set back by more than the time of writing this many rows.
 */
const YOUNG_ROWS_MAX = 2_000;

/**
 * State of a retention run: it counts backwards to the oldest row to keep by number, then removes forward from the
 * oldest row. Immutable, so that a repeated job starts where the last one ended.
 */
export interface RetentionRun {
  readonly retention: Retention;
  readonly phase: "counting" | "removing" | "finished";
  /** Counting: rows below this id are still to be checked, and this many settled ones still to be found. */
  readonly before: number;
  readonly missing: number;
  /** Settled rows below this id exceed the number to keep. */
  readonly keepFrom: number;
  /** Removing: the next id to check, the number removed, and the number of consecutive young rows. */
  readonly next: number;
  readonly removed: number;
  readonly young: number;
}

export function startRetention(retention: Retention): RetentionRun {
  const { keepSettled } = retention;
  const counts = keepSettled !== undefined && keepSettled > 0;
  return {
    retention: { ...retention },
    phase: counts ? "counting" : "removing",
    before: Number.MAX_SAFE_INTEGER,
    missing: keepSettled ?? 0,
    keepFrom: keepSettled === 0 ? Number.MAX_SAFE_INTEGER : 0,
    next: 0,
    removed: 0,
    young: 0,
  };
}

export class JournalRetention {
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  /** The work of one job. */
  advance(run: RetentionRun): RetentionRun {
    let at = run;
    for (let step = 0; step < JOB_STEPS && at.phase !== "finished"; step++) {
      at = at.phase === "counting" ? this.#count(at) : this.#removeSome(at);
    }
    return at;
  }

  #count(run: RetentionRun): RetentionRun {
    const rows = this.#sql.newest.all(run.before, STEP_ROWS);
    const done = rows.filter(isDone);
    const oldestKept = done[run.missing - 1];
    if (oldestKept !== undefined) return { ...run, phase: "removing", keepFrom: Number(oldestKept["id"]) };
    const last = rows.at(-1);
    // There are fewer rows than may be kept.
    if (last === undefined) return { ...run, phase: "removing" };
    return { ...run, before: Number(last["id"]), missing: run.missing - done.length };
  }

  #removeSome(run: RetentionRun): RetentionRun {
    const { limit, settledBeforeMs } = run.retention;
    const rows = this.#sql.oldest.all(run.next, STEP_ROWS);
    let { next, removed, young } = run;
    let range: Row[] = [];
    const removeRange = () => {
      this.#remove(range);
      range = [];
    };
    for (const row of rows) {
      if (removed >= limit) break;
      const id = Number(row["id"]);
      next = id + 1;
      if (mayGo(row, run)) {
        // An unexplained hole stays a hole, for `verify` to find.
        if (Number(range.at(-1)?.["id"] ?? id - 1) !== id - 1) removeRange();
        range.push(row);
        removed++;
        young = 0;
      } else {
        removeRange();
        const isYoung = settledBeforeMs === undefined || Number(row["created_at"]) * 1_000 >= settledBeforeMs;
        young = isYoung && id >= run.keepFrom ? young + 1 : 0;
      }
    }
    removeRange();
    const isPastCount = settledBeforeMs === undefined && next > run.keepFrom;
    const isThrough = rows.length < STEP_ROWS || young >= YOUNG_ROWS_MAX || isPastCount || removed >= limit;
    return { ...run, phase: isThrough ? "finished" : "removing", next, removed, young };
  }

  /** Removes rows with consecutive ids. */
  #remove(range: readonly Row[]): void {
    if (range.length === 0) return;
    const first = Number(range[0]?.["id"]);
    const last = Number(range.at(-1)?.["id"]);
    this.#putGap(first, last, this.#hashAt(last));
    this.#sql.removeDeliveries.run(first, last);
    this.#sql.removeRows.run(first, last);
  }

  #putGap(first: number, last: number, hash: string): void {
    const before = this.#sql.gapBefore.get(first);
    const after = this.#sql.gapAt.get(last + 1);
    const touches = before !== undefined && Number(before["last_id"]) === first - 1;
    const from = touches ? Number(before["first_id"]) : first;
    const to = after ? Number(after["last_id"]) : last;
    this.#sql.dropGaps.run(from, to);
    this.#sql.putGap.run(from, to, after ? String(after["hash"]) : hash);
  }

  /** The hash of the last signed row up to an id, removed or not. */
  #hashAt(id: number): string {
    const row = this.#sql.signedUpTo.get(id);
    const gap = this.#sql.gapUpTo.get(id);
    if (gap && Number(gap["last_id"]) > Number(row?.["id"] ?? 0)) return String(gap["hash"]);
    return row ? String(row["hash"]) : GENESIS;
  }
}

/** A failed row is a dead letter: it stays until it is requeued or discarded. */
function isDone({ status }: Row): boolean {
  return status === "done";
}

function mayGo(row: Row, { retention, keepFrom }: RetentionRun): boolean {
  if (!isDone(row)) return false;
  const { id, processed_at } = row;
  if (Number(id) < keepFrom) return true;
  const { settledBeforeMs } = retention;
  // A row that was settled by hand may have no time; it counts as old.
  return settledBeforeMs !== undefined && Math.round(Number(processed_at) * 1_000) < settledBeforeMs;
}

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    newest: prepare(`SELECT id, status FROM event_journal WHERE id < ? ORDER BY id DESC ${AT_MOST}`),
    oldest: prepare(
      `SELECT id, status, processed_at, created_at FROM event_journal WHERE id >= ? ORDER BY id ${AT_MOST}`,
    ),
    removeRows: prepare("DELETE FROM event_journal WHERE id BETWEEN ? AND ?"),
    removeDeliveries: prepare("DELETE FROM delivery WHERE event BETWEEN ? AND ?"),
    gapBefore: prepare("SELECT first_id, last_id FROM journal_gap WHERE first_id < ? ORDER BY first_id DESC LIMIT 1"),
    gapAt: prepare("SELECT last_id, hash FROM journal_gap WHERE first_id = ?"),
    gapUpTo: prepare("SELECT last_id, hash FROM journal_gap WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1"),
    dropGaps: prepare("DELETE FROM journal_gap WHERE first_id BETWEEN ? AND ?"),
    putGap: prepare("INSERT INTO journal_gap (first_id, last_id, hash) VALUES (?, ?, ?)"),
    signedUpTo: prepare(
      "SELECT id, hash FROM event_journal WHERE id <= ? AND hash IS NOT NULL ORDER BY id DESC LIMIT 1",
    ),
  };
}

/**
 * Records journal rows that were removed by hand, so that `verify` no longer reports them. Each missing range gets a
 * gap row, as with retention. The hash of the last removed row is unknown, so the chain restarts after the gap
 * (`UNKNOWN_HASH`). `journal_gap` shows that these rows were not removed by retention.
 *
 * Runs inside a transaction. Returns the ranges that were missing.
 */
export function acceptRemoved(connection: SqliteConnection): RemovedRange[] {
  const head = connection.prepare(READ_HEAD).get();
  const lastId = Number(head?.["last_id"] ?? 0);
  const missing = connection
    .prepare(
      "WITH known (first, last) AS (SELECT id, id FROM event_journal UNION ALL SELECT first_id, last_id FROM journal_gap " +
        "UNION ALL SELECT ?1 + 1, ?1 + 1), " +
        "step (first, before) AS (SELECT first, lag(last, 1, 0) OVER (ORDER BY first) FROM known WHERE first <= ?1 + 1) " +
        "SELECT before + 1 AS first, first - 1 AS last FROM step WHERE first > before + 1",
    )
    .all(lastId)
    .map(({ first, last }) => ({ first: Number(first), last: Number(last) }));
  const put = connection.prepare("INSERT INTO journal_gap (first_id, last_id, hash) VALUES (?, ?, ?)");
  for (const { first, last } of missing) put.run(first, last, last === lastId ? String(head?.["hash"]) : UNKNOWN_HASH);
  return missing;
}
