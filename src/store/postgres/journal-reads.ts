/** Queries of the journal and of due rows. SPEC: J28, J29. Values of a query are always bound. */
import type { Json } from "../../message/json.ts";
import type { DueRow } from "../due.ts";
import type { JournalQuery, JournalRow, JournalStatus } from "../journal.ts";
import { type GoneRows, type JournalPage, type JournalPosition, withinPosition } from "../journal-position.ts";
import { rowOfView } from "./journal-states.ts";
import type { Bound, DatabaseLink, Row } from "./link.ts";

export async function queryJournal(link: DatabaseLink, m: string, query: JournalQuery): Promise<JournalRow[]> {
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

export async function countJournal(link: DatabaseLink, m: string): Promise<Record<JournalStatus, number>> {
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

/** The position after all rows, also those that were removed. */
export async function journalEnd(link: DatabaseLink, m: string): Promise<JournalPosition> {
  const [row] = await link.query(
    `SELECT history, (SELECT json_agg(json_build_array(lane, last_id)) FROM ${m}.lanes_v1()) AS lanes FROM ${m}.meta`,
  );
  return endOf(row);
}

function endOf(row: Row | undefined): JournalPosition {
  const lanes = (row?.["lanes"] ?? []) as [number, number][];
  return { history: String(row?.["history"] ?? ""), lanes: new Map(lanes) };
}

/** Rows that a follower has not passed, and the lanes, as of one moment: a row is in the page or after its end. */
export async function followJournal(
  link: DatabaseLink,
  m: string,
  after: JournalPosition,
  limit: number,
  topic: string | undefined,
): Promise<JournalPage> {
  const passed = JSON.stringify([...after.lanes].map(([lane, id]) => ({ lane, id })));
  const values: Bound[] = [passed, limit];
  if (topic !== undefined) values.push(topic);
  const rows = await link.query(
    `WITH end_of AS MATERIALIZED (SELECT lane, last_id FROM ${m}.lanes_v1()),
     passed AS MATERIALIZED (
       SELECT e.lane, coalesce(x.id, 0) AS id FROM end_of e
       LEFT JOIN json_to_recordset($1) AS x (lane integer, id bigint) ON x.lane = e.lane
     )
     SELECT t.history, (SELECT json_agg(json_build_array(lane, last_id)) FROM end_of) AS lanes, r.*
     FROM ${m}.meta t LEFT JOIN LATERAL (
       SELECT j.* FROM ${m}.event_journal j JOIN passed p ON p.lane = j.lane AND j.id > p.id
       WHERE j.id > (SELECT min(id) FROM passed) ${topic === undefined ? "" : "AND j.topic = $3"}
       ORDER BY j.id LIMIT $2
     ) r ON true ORDER BY r.id`,
    values,
    `${m} follow ${topic === undefined ? "all" : "topic"}`,
  );
  const end = endOf(rows[0]);
  if (after.history !== "" && after.history !== end.history)
    return { rows: [], end: withinPosition(after, end), isFull: true, gone: [] };
  const found = rows.filter(({ id }) => id !== null);
  const lanes = new Map(after.lanes);
  const gone: GoneRows[] = [];
  const noteGone = (before: number, lane: number, through: number) => {
    if (topic === undefined && through > (lanes.get(lane) ?? 0)) gone.push({ before, lane, through });
  };
  for (const [at, row] of found.entries()) {
    const lane = Number(row["lane"]);
    noteGone(at, lane, Number(row["previous"]));
    lanes.set(lane, Number(row["id"]));
  }
  const isFull = found.length === limit;
  if (!isFull) {
    for (const [lane, last] of end.lanes) {
      noteGone(found.length, lane, last);
      lanes.set(lane, last);
    }
  }
  return { rows: found.map(rowOfView), end: { history: end.history, lanes }, isFull, gone };
}
