/**
 * Removing settled rows. SPEC: J30. A removed range leaves a _gap_ row that carries the hash across it, so that the chain can
 * still be walked from end to end; ranges that touch become one. It works in small steps, each a job of its own, so that a
 * journal of millions does not hold the event loop.
 */
import type { Retention } from "../journal.ts";
import type { Connection, Row } from "./connection.ts";
import { GENESIS } from "./journal-hash.ts";

/** Rows looked at in one step. */
const STEP_ROWS = 500;
/**
 * Rows in a row that were created after the bound before the search for old ones ends: later ones were settled later still,
 * unless the clock was set back by more than it took to write this many.
 */
const YOUNG_ROWS_MAX = 2_000;

/** Where a retention run stands; `next` is the id to look at next. */
export interface RetentionRun {
  readonly retention: Retention;
  /** Settled rows below this id are over the number to keep. */
  keepFrom: number;
  next: number;
  removed: number;
  young: number;
  state: "running" | "finished";
}

/** `found`: the oldest of the rows to keep; `on`: the step ended before it; `fewer`: there are not so many. */
export type Passed =
  | { readonly kind: "found"; readonly id: number }
  | { readonly kind: "on"; readonly before: number; readonly count: number }
  | { readonly kind: "fewer" };

export class JournalRetention {
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = statements(connection);
  }

  /** Goes backwards through the rows below `before` until `count` settled ones are passed, as far as one step reaches. */
  passSettled(before: number, count: number): Passed {
    const rows = this.#sql.newest.all(before, STEP_ROWS);
    const settled = rows.filter(isSettled);
    const last = settled[count - 1];
    if (last !== undefined) return { kind: "found", id: Number(last["id"]) };
    const end = rows.at(-1);
    return end === undefined
      ? { kind: "fewer" }
      : { kind: "on", before: Number(end["id"]), count: count - settled.length };
  }

  /** Looks at the next rows and removes those that may go. */
  step(run: RetentionRun): void {
    const { limit, settledBeforeMs } = run.retention;
    const rows = this.#sql.oldest.all(run.next, STEP_ROWS);
    let range: Row[] = [];
    for (const row of rows) {
      if (run.removed + range.length >= limit) break;
      const id = Number(row["id"]);
      run.next = id + 1;
      if (mayGo(row, run)) {
        // A hole that no gap explains stays a hole: it is for `verify` to find.
        if (range.length > 0 && Number(range.at(-1)?.["id"]) !== id - 1) {
          this.#remove(range, run);
          range = [];
        }
        range.push(row);
        continue;
      }
      this.#remove(range, run);
      range = [];
      const isYoung = settledBeforeMs === undefined || Number(row["created_at"]) * 1_000 >= settledBeforeMs;
      run.young = isYoung && id >= run.keepFrom ? run.young + 1 : 0;
    }
    this.#remove(range, run);
    const isPastCount = settledBeforeMs === undefined && run.next > run.keepFrom;
    const isThrough = rows.length < STEP_ROWS || run.young >= YOUNG_ROWS_MAX || isPastCount;
    if (isThrough || run.removed >= limit) run.state = "finished";
  }

  /** Removes rows whose ids follow each other. */
  #remove(range: readonly Row[], run: RetentionRun): void {
    const first = Number(range[0]?.["id"]);
    const last = Number(range.at(-1)?.["id"]);
    if (range.length === 0) return;
    this.#putGap(first, last, this.#hashAt(last));
    this.#sql.removeDeliveries.run(first, last);
    this.#sql.removeRows.run(first, last);
    run.removed += range.length;
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

function isSettled({ status }: Row): boolean {
  return status === "done" || status === "failed";
}

function mayGo(row: Row, { retention, keepFrom }: RetentionRun): boolean {
  if (!isSettled(row)) return false;
  const { id, processed_at } = row;
  if (Number(id) < keepFrom) return true;
  const { settledBeforeMs } = retention;
  // A row that was settled by hand may have no time; it counts as settled long ago.
  return settledBeforeMs !== undefined && Math.round(Number(processed_at) * 1_000) < settledBeforeMs;
}

function statements(connection: Connection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    newest: prepare("SELECT id, status FROM event_journal WHERE id < ? ORDER BY id DESC LIMIT ?"),
    oldest: prepare("SELECT id, status, processed_at, created_at FROM event_journal WHERE id >= ? ORDER BY id LIMIT ?"),
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
