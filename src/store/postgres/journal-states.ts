/**
 * States of journal rows for operations that are rare: loaded and locked, changed by the functions that the memory
 * backend uses, and stored again. The hot path settles in `settle_v1`.
 */
import type { Delivery, JournalRow } from "../journal.ts";
import { type JournalState, PARKED_MS } from "../memory/journal-record.ts";
import { journalRow } from "../sqlite/journal-entry.ts";
import type { DatabaseLink, Row } from "./link.ts";

export interface StoredState {
  readonly id: number;
  state: JournalState;
  /** By subscriber. */
  readonly deliveries: Map<string, Delivery>;
}

const SAID = ["nothing", "begun", "left"] as const;

/** Loads and locks the rows with these ids; rows that do not exist are left out. In the order of the ids given. */
export async function loadStates(link: DatabaseLink, m: string, ids: readonly number[]): Promise<StoredState[]> {
  await link.query(`SELECT 1 FROM ${m}.open WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE`, [[...ids]]);
  const rows = await link.query(
    `SELECT j.id, coalesce(o.status, 'done') AS status, coalesce(o.attempts, d.attempts, 0) AS attempts,
       coalesce(o.deaths, 0) AS deaths, coalesce(o.said, 0) AS said, o.lease, o.next_at, coalesce(o.processed_at, d.processed_at) AS processed_at,
       coalesce(o.error, d.error) AS error, d.outcome, d.reason, coalesce(o.deliveries, d.deliveries) AS deliveries
     FROM ${m}.journal j LEFT JOIN ${m}.open o ON o.id = j.id LEFT JOIN ${m}.done d ON d.id = j.id
     WHERE j.id = ANY ($1::bigint[])`,
    [[...ids]],
  );
  const byId = new Map(rows.map((row) => [Number(row["id"]), row]));
  return [...new Set(ids)].flatMap((id) => {
    const row = byId.get(id);
    return row === undefined ? [] : [storedState(row)];
  });
}

function storedState(row: Row): StoredState {
  const { outcome, reason, lease, next_at, processed_at, error } = row;
  const state = {
    status: row["status"],
    attempts: Number(row["attempts"]),
    deaths: Number(row["deaths"]),
    said: SAID[Number(row["said"])],
    lease: lease === null ? undefined : Number(lease),
    nextAttemptAtMs: next_at === null ? undefined : Number(next_at),
    processedAtMs: processed_at === null ? undefined : Number(processed_at),
    error: error === null ? undefined : String(error),
    ending: outcome === null ? undefined : { outcome, reason: String(reason ?? "") },
  } as JournalState;
  return { id: Number(row["id"]), state, deliveries: new Map(deliveriesOf(row).map((one) => [one.subscriber, one])) };
}

/** Stores the states in place of those that were loaded. */
export async function putStates(link: DatabaseLink, m: string, records: readonly StoredState[]): Promise<void> {
  if (records.length === 0) return;
  const ids = records.map(({ id }) => id);
  await link.query(`DELETE FROM ${m}.open WHERE id = ANY ($1::bigint[])`, [ids]);
  await link.query(`DELETE FROM ${m}.done WHERE id = ANY ($1::bigint[])`, [ids]);
  const rows = JSON.stringify(
    records.map(({ id, state, deliveries }) => ({
      id,
      status: state.status,
      lease: state.lease,
      attempts: state.attempts,
      deaths: state.deaths,
      said: SAID.indexOf(state.said),
      next: state.nextAttemptAtMs === PARKED_MS ? "Infinity" : state.nextAttemptAtMs,
      done: state.processedAtMs,
      error: state.error,
      outcome: state.ending?.outcome,
      reason: state.ending?.reason,
      deliveries: deliveries.size === 0 ? null : Object.fromEntries(deliveries),
    })),
  );
  const columns = `x (id bigint, status text, lease bigint, attempts integer, deaths integer, said smallint, next float8,
    done float8, error text, outcome text, reason text, deliveries jsonb)`;
  await link.query(
    `INSERT INTO ${m}.open (id, kind, topic, status, lease, attempts, deaths, said, next_at, processed_at, error, deliveries, awaits)
     SELECT x.id, j.kind, j.topic, x.status, x.lease, x.attempts, x.deaths, x.said, x.next, x.done, x.error, x.deliveries,
       CASE WHEN x.status = 'pending' THEN ${m}.awaits_v1(x.deliveries) END
     FROM json_to_recordset($1) AS ${columns} JOIN ${m}.journal j ON j.id = x.id WHERE x.status <> 'done'`,
    [rows],
  );
  await link.query(
    `INSERT INTO ${m}.done (id, processed_at, attempts, outcome, reason, error, deliveries)
     SELECT x.id, x.done, x.attempts, x.outcome, x.reason, x.error, x.deliveries
     FROM json_to_recordset($1) AS ${columns} WHERE x.status = 'done'`,
    [rows],
  );
}

/** A row of the view `event_journal`. */
export function rowOfView(row: Row): JournalRow {
  const lane = Number(row["lane"]);
  const read = journalRow(row as Parameters<typeof journalRow>[0], deliveriesOf(row));
  return lane === 0 ? read : { ...read, lane };
}

/** The column has an object by subscriber. */
export function deliveriesOf(row: Row): Delivery[] {
  const stored = row["deliveries"] as Readonly<Record<string, Delivery>> | null;
  if (stored === null) return [];
  const names = Object.keys(stored).sort();
  return names.map((name) => stored[name] as Delivery);
}
