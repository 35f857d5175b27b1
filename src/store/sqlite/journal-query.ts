/**
 * Queries of the journal: matching rows, and the number of rows per status. SPEC: J28, J29. Conditions are fixed SQL
 * fragments; values from the query are always bound.
 */
import type { SQLInputValue } from "node:sqlite";
import type { JournalQuery, JournalRow, JournalStatus } from "../journal.ts";
import type { GoneRows, JournalPage, JournalPosition } from "../journal-position.ts";
import { passedIn, withinPosition } from "../journal-position.ts";
import { AT_MOST, type SqliteConnection } from "./connection.ts";
import { deliveriesOf } from "./delivery-rows.ts";
import { journalRow } from "./journal-entry.ts";
import { ROW_COLUMNS } from "./journal-statements.ts";

type Condition = readonly [sql: string, value: SQLInputValue];

export function queryJournal(connection: SqliteConnection, query: JournalQuery): JournalRow[] {
  const conditions = conditionsOf(query);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.map(([sql]) => sql).join(" AND ")}`;
  const order = query.order === "descending" ? "DESC" : "ASC";
  const sql = `SELECT ${ROW_COLUMNS} FROM event_journal ${where} ORDER BY id ${order} ${AT_MOST}`;
  const rows = connection.cached(sql).all(...conditions.map(([, value]) => value), query.limit);
  const deliveries = deliveriesOf(connection, rows);
  return rows.map((row) => journalRow(row, deliveries.get(Number(row["id"])) ?? []));
}

/** The greatest id ever in the journal, counted like the writer does (`journal-table.ts`). */
export function lastJournalId(connection: SqliteConnection): number {
  const sql =
    "SELECT max((SELECT coalesce(max(id), 0) FROM event_journal), " +
    "(SELECT coalesce(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name IN ('event_journal', 'journal_head'))) AS id";
  return Number(connection.cached(sql).get()?.["id"]);
}

export function countJournal(connection: SqliteConnection): Record<JournalStatus, number> {
  const counts: Record<JournalStatus, number> = { pending: 0, processing: 0, done: 0, failed: 0 };
  // Unsettled rows are counted by their small indexes; the rest of the table is done.
  const total = connection.cached("SELECT count(*) AS n FROM event_journal").get();
  counts.done = Number(total?.["n"]);
  const unsettled = ["pending", "processing", "failed"]
    .map((status) => `SELECT '${status}' AS status, count(*) AS n FROM event_journal WHERE status = '${status}'`)
    .join(" UNION ALL ");
  for (const { status, n } of connection.cached(unsettled).all()) {
    counts[status as JournalStatus] = Number(n);
    counts.done -= Number(n);
  }
  return counts;
}

/** SQLite uses the partial index of a status only if its condition is written out. */
const WITH_STATUS: Readonly<Record<JournalStatus, string>> = {
  pending: "status = 'pending' AND status = ?",
  processing: "status = 'processing' AND status = ?",
  failed: "status = 'failed' AND status = ?",
  done: "status = ?",
};

function conditionsOf(query: JournalQuery): Condition[] {
  const conditions: Condition[] = [];
  const add = (sql: string, value: SQLInputValue | undefined) => {
    if (value !== undefined) conditions.push([sql, value]);
  };
  const { cursor, createdFromMs, createdBeforeMs } = query;
  add("id = ?", query.id);
  add("message_id = ?", query.messageId);
  if (query.status !== undefined) add(WITH_STATUS[query.status], query.status);
  add("topic = ?", query.topic);
  // One value for both columns: a row without a type is known by its topic only.
  add("? IN (topic, type)", query.named);
  add("kind = ?", query.kind);
  add("correlation_id = ?", query.correlation);
  add("causation_id = ?", query.causation);
  add("created_at >= ?", createdFromMs === undefined ? undefined : createdFromMs / 1_000);
  add("created_at < ?", createdBeforeMs === undefined ? undefined : createdBeforeMs / 1_000);
  add(query.order === "descending" ? "id < ?" : "id > ?", cursor);
  return conditions;
}

const LANE = 0;

/**
 * Pages of the journal for followers. A file has one lane, and the writer gives ids without gaps, so a gap between two
 * rows shows that rows were removed. SPEC: J171-J175.
 */
export function journalEnd(connection: SqliteConnection, history: string): JournalPosition {
  return positionAt(history, lastJournalId(connection));
}

export function followJournal(
  connection: SqliteConnection,
  history: string,
  after: JournalPosition,
  { limit, topic }: { readonly limit: number; readonly topic: string | undefined },
): JournalPage {
  if (after.history !== "" && after.history !== history)
    return { rows: [], end: withinPosition(after, journalEnd(connection, history)), isFull: true, gone: [] };
  const passed = passedIn(after, LANE);
  const rows = queryJournal(connection, { cursor: passed, limit, ...(topic === undefined ? {} : { topic }) });
  const isFull = rows.length === limit;
  const newest = rows.at(-1)?.id ?? passed;
  const end = isFull ? newest : Math.max(newest, lastJournalId(connection));
  return {
    rows,
    end: positionAt(history, end),
    isFull,
    gone: topic === undefined ? goneBetween(passed, rows, end) : [],
  };
}

function goneBetween(passed: number, rows: readonly JournalRow[], end: number): readonly GoneRows[] {
  const gone: GoneRows[] = [];
  let previous = passed;
  for (const [before, { id }] of rows.entries()) {
    if (id > previous + 1) gone.push({ before, lane: LANE, through: id - 1 });
    previous = id;
  }
  if (end > previous) gone.push({ before: rows.length, lane: LANE, through: end });
  return gone;
}

function positionAt(history: string, id: number): JournalPosition {
  return { history, lanes: new Map(id === 0 ? [] : [[LANE, id]]) };
}
