/** Queries of the journal and of due rows. SPEC: J28, J29. Values of a query are always bound. */
import type { Json } from "../../message/json.ts";
import type { DueRow } from "../due.ts";
import type { JournalQuery, JournalRow, JournalStatus } from "../journal.ts";
import { rowOfView } from "./journal-states.ts";
import type { Bound, Link, Row } from "./link.ts";

export async function queryJournal(link: Link, m: string, query: JournalQuery): Promise<JournalRow[]> {
  const conditions: string[] = [];
  const values: Bound[] = [];
  const add = (sql: (value: string) => string, value: Bound | undefined) => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(sql(`$${values.length}`));
  };
  const isDescending = query.order === "descending";
  add((value) => `id = ${value}`, query.id);
  add((value) => `message_id = ${value}`, query.messageId);
  // The small table of unsettled rows has the others.
  if (query.status === "done") conditions.push(`id NOT IN (SELECT id FROM ${m}.open)`);
  else add((value) => `id IN (SELECT id FROM ${m}.open WHERE status = ${value})`, query.status);
  add((value) => `topic = ${value}`, query.topic);
  add((value) => `${value} IN (topic, type)`, query.named);
  add((value) => `kind = ${value}`, query.kind);
  add((value) => `correlation_id = ${value}`, query.correlation);
  add((value) => `causation_id = ${value}`, query.causation);
  add((value) => `created_at >= ${value}`, query.createdFromMs === undefined ? undefined : query.createdFromMs / 1_000);
  add(
    (value) => `created_at < ${value}`,
    query.createdBeforeMs === undefined ? undefined : query.createdBeforeMs / 1_000,
  );
  add((value) => `id ${isDescending ? "<" : ">"} ${value}`, query.cursor);
  values.push(query.limit);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const sql = `SELECT * FROM ${m}.event_journal ${where} ORDER BY id ${isDescending ? "DESC" : "ASC"} LIMIT $${values.length}`;
  return (await link.query(sql, values)).map(rowOfView);
}

export async function countJournal(link: Link, m: string): Promise<Record<JournalStatus, number>> {
  const rows = await link.query(
    `SELECT status, count(*) AS n FROM ${m}.open GROUP BY status UNION ALL
     SELECT 'done', (SELECT count(*) FROM ${m}.journal) - (SELECT count(*) FROM ${m}.open)`,
  );
  const counts: Record<JournalStatus, number> = { pending: 0, processing: 0, done: 0, failed: 0 };
  for (const { status, n } of rows) counts[status as JournalStatus] = Number(n);
  return counts;
}

export function dueRowOf({ kind, key, due_at, data, place }: Row): DueRow {
  return {
    kind: String(kind),
    key: String(key),
    dueAtMs: Number(due_at),
    data: JSON.parse(String(data)) as Json,
    order: Number(place),
  };
}
