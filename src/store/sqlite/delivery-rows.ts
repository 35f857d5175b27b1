/**
 * Deliveries per subscriber, read for many journal rows at once. SPEC: J25.
 */
import type { Delivery } from "../journal.ts";
import type { Row, SqliteConnection } from "./connection.ts";

/** The deliveries of rows, by row id; rows without any are left out. */
export function deliveriesOf(
  connection: SqliteConnection,
  rows: readonly Row[],
): ReadonlyMap<number, readonly Delivery[]> {
  const byEvent = new Map<number, Delivery[]>();
  if (rows.length === 0) return byEvent;
  const sql =
    "SELECT event, subscriber, status, attempts, error, next_attempt_at, awaits FROM delivery WHERE event IN (SELECT value FROM json_each(?))";
  for (const row of connection.cached(sql).all(JSON.stringify(rows.map(({ id }) => id)))) {
    const event = Number(row["event"]);
    const list = byEvent.get(event);
    if (list) list.push(deliveryOf(row));
    else byEvent.set(event, [deliveryOf(row)]);
  }
  return byEvent;
}

function deliveryOf({ subscriber, status, attempts, error, next_attempt_at, awaits }: Row): Delivery {
  return {
    subscriber: String(subscriber),
    status: status as Delivery["status"],
    attempts: Number(attempts),
    ...(error === null ? {} : { error: String(error) }),
    ...(next_attempt_at === null ? {} : { nextAttemptAtMs: Math.round(Number(next_attempt_at) * 1_000) }),
    ...(awaits === null ? {} : { awaits: String(awaits) }),
  };
}
