/**
 * Journal, lease, consumer and due operations that are not on the hot path. Each runs in a transaction of the writer.
 */
import { CONSUMERS_MAX, EVENT_SUSPECT_DEATHS } from "../../limits.ts";
import {
  type Consumer,
  type ConsumerDeclaration,
  type ConsumerRemoval,
  type ConsumerTable,
  consumerKey,
  type RemovalResult,
} from "../consumer.ts";
import type { DueChange } from "../due.ts";
import type { Conclusion, RemovedRange, Retention } from "../journal.ts";
import { concluded, isRequeueable, requeued } from "../memory/journal-record.ts";
import { eventOf } from "../receipt-name.ts";
import { tooManyConsumers } from "../request-check.ts";
import { jsonText } from "../sqlite/json-text.ts";
import type { ForgetRequest, Forgotten, Lease, RequeueTarget } from "../store.ts";
import { loadStates, putStates } from "./journal-states.ts";
import type { DatabaseLink } from "./link.ts";

/** A greater lease also differs in these bits, so a failover that loses the counter gives no number twice. */
const LEASE_BITS = 2 ** 20;

export async function openLease(
  link: DatabaseLink,
  m: string,
  nowMs: number,
  durationMs: number,
  bits: number,
  running: readonly string[],
): Promise<Lease> {
  const [meta] = await link.query(`UPDATE ${m}.meta SET last_lease = last_lease + 1 RETURNING last_lease`);
  const lease = Number(meta?.["last_lease"]) * LEASE_BITS + Math.floor(bits * LEASE_BITS);
  const expiresAtMs = nowMs + durationMs;
  await link.query(`INSERT INTO ${m}.lease (id, expires_at, running) VALUES ($1, $2, $3)`, [
    lease,
    expiresAtMs,
    [...running],
  ]);
  return { lease, expiresAtMs };
}

export async function renewLease(link: DatabaseLink, m: string, lease: number, expiresAtMs: number): Promise<boolean> {
  const rows = await link.query(`UPDATE ${m}.lease SET expires_at = $2 WHERE id = $1 RETURNING id`, [
    lease,
    expiresAtMs,
  ]);
  return rows.length > 0;
}

export async function closeLease(link: DatabaseLink, m: string, lease: number): Promise<number> {
  await link.query(`DELETE FROM ${m}.lease WHERE id = $1`, [lease]);
  const rows = await link.query(
    `UPDATE ${m}.open SET status = 'pending', lease = NULL, awaits = ${m}.awaits_v1(deliveries)
     WHERE status = 'processing' AND lease = $1 RETURNING id`,
    [lease],
  );
  return rows.length;
}

export async function recover(link: DatabaseLink, m: string, nowMs: number): Promise<number> {
  await link.query(`DELETE FROM ${m}.lease WHERE expires_at <= $1`, [nowMs]);
  const rows = await link.query(
    `UPDATE ${m}.open SET status = 'pending', lease = NULL, awaits = ${m}.awaits_v1(deliveries),
       deaths = CASE WHEN said = 2 THEN greatest(deaths, 1) WHEN said = 1 OR deaths < $1 THEN deaths + 1 ELSE deaths END
     WHERE status = 'processing' AND NOT EXISTS (SELECT FROM ${m}.lease l WHERE l.id = lease) RETURNING id`,
    [EVENT_SUSPECT_DEATHS],
  );
  return rows.length;
}

export async function requeue(
  link: DatabaseLink,
  m: string,
  ids: readonly number[],
  onlyFor: RequeueTarget | undefined,
): Promise<number[]> {
  const records = (await loadStates(link, m, ids)).filter(({ state }) => isRequeueable(state, onlyFor && "done"));
  for (const record of records) {
    const { deliveries } = record;
    for (const { subscriber, status } of [...deliveries.values()]) {
      if (status !== "done" || onlyFor?.subscribers.includes(subscriber)) deliveries.delete(subscriber);
    }
    for (const subscriber of onlyFor?.others ?? []) {
      if (!deliveries.has(subscriber)) deliveries.set(subscriber, { subscriber, status: "done", attempts: 0 });
    }
    record.state = requeued(record.state);
  }
  await putStates(link, m, records);
  return records.map(({ id }) => id);
}

export async function concludeRow(
  link: DatabaseLink,
  m: string,
  ids: readonly number[],
  conclusion: Conclusion,
  nowMs: number,
): Promise<number[]> {
  const records = (await loadStates(link, m, ids)).filter(({ state }) => state.status === conclusion.from);
  for (const record of records) {
    for (const { awaits, ...delivery } of [...record.deliveries.values()]) {
      if (awaits !== undefined) record.deliveries.set(delivery.subscriber, delivery);
    }
    record.state = concluded(record.state, conclusion, nowMs);
  }
  await putStates(link, m, records);
  return records.map(({ id }) => id);
}

export async function releaseRetries(
  link: DatabaseLink,
  m: string,
  nowMs: number,
): Promise<{ released: number; nextAtMs: number | undefined }> {
  const rows = await link.query(
    `UPDATE ${m}.open SET next_at = NULL WHERE status = 'pending' AND next_at <= $1 RETURNING id`,
    [nowMs],
  );
  const [next] = await link.query(
    `SELECT min(next_at) AS at FROM ${m}.open WHERE status = 'pending' AND next_at IS NOT NULL AND next_at < 'Infinity'`,
  );
  const at = next?.["at"];
  return { released: rows.length, nextAtMs: typeof at === "number" ? at : undefined };
}

/** Removes done rows over either limit, oldest first, and notes the ends of the hash chain. */
export async function retain(link: DatabaseLink, m: string, retention: Retention): Promise<number> {
  const { settledBeforeMs, keepSettled, limit } = retention;
  const rows = await link.query(
    `WITH old AS (
       SELECT id FROM (
         SELECT d.id, d.processed_at, $2::bigint IS NOT NULL AND
           row_number() OVER (ORDER BY d.id) <= (SELECT count(*) FROM ${m}.done) - $2::bigint AS over FROM ${m}.done d
       ) d WHERE over OR processed_at < $1::float8 ORDER BY id LIMIT $3
     ), gone AS (
       DELETE FROM ${m}.journal j USING old WHERE j.id = old.id RETURNING j.id, j.writer, j.place, j.hash
     ), done AS (
       DELETE FROM ${m}.done d USING old WHERE d.id = old.id
     ), gaps AS (
       INSERT INTO ${m}.journal_gap (writer, first, last, hash)
       SELECT writer, min(place), max(place), (array_agg(hash ORDER BY place DESC))[1]
       FROM (SELECT *, place - row_number() OVER (PARTITION BY writer ORDER BY place) AS run FROM gone WHERE hash IS NOT NULL) g
       GROUP BY writer, run
     ) SELECT count(*) AS removed, max(id) AS last FROM gone`,
    [settledBeforeMs ?? null, keepSettled ?? null, limit],
  );
  const { removed, last } = rows[0] ?? {};
  if (last !== null) await link.query(`UPDATE ${m}.meta SET last_removed = greatest(last_removed, $1)`, [Number(last)]);
  return Number(removed);
}

export async function acceptRemoved(link: DatabaseLink, m: string): Promise<RemovedRange[]> {
  const rows = await link.query(
    `WITH chain AS (
       SELECT writer, place AS first, place AS last FROM ${m}.journal WHERE hash IS NOT NULL
       UNION ALL SELECT writer, first, last FROM ${m}.journal_gap
     ), holes AS (
       SELECT writer, coalesce(lag(last) OVER w, 0) + 1 AS first, first - 1 AS last FROM chain WINDOW w AS (PARTITION BY writer ORDER BY first)
     ) INSERT INTO ${m}.journal_gap (writer, first, last, hash)
     SELECT writer, first, last, 'unknown' FROM holes WHERE last >= first RETURNING writer, first, last`,
  );
  return rows.map(({ first, last }) => ({ first: Number(first), last: Number(last) }));
}

/** Moves the horizon alone, before `removeReceipts`: no commit may be decided with the old one when receipts go. */
export async function moveHorizon(link: DatabaseLink, m: string, madeBeforeMs: number): Promise<number> {
  await link.query("SELECT pg_advisory_xact_lock(hashtext($1))", [`${m}.horizon`]);
  const [meta] = await link.query(`UPDATE ${m}.meta SET horizon_ms = greatest(horizon_ms, $1) RETURNING horizon_ms`, [
    madeBeforeMs,
  ]);
  return Number(meta?.["horizon_ms"]);
}

export async function forgetReceipts(
  link: DatabaseLink,
  m: string,
  { madeBeforeMs, limit }: ForgetRequest,
  feedCommits: number,
): Promise<Forgotten> {
  const horizonMs = await moveHorizon(link, m, madeBeforeMs);
  const rows = await link.query(
    `SELECT d.space, d.scope, d.id FROM ${m}.document d JOIN ${m}.space s ON s.name = d.space
     WHERE d.made_at < $1 AND d.sequence <= greatest(s.feed_start, ${m}.head_v1(d.space) - $2)
     ORDER BY d.made_at LIMIT $3`,
    [horizonMs, feedCommits, limit * 2 + 1_000],
  );
  const events = rows.flatMap(({ id }) => eventOf(String(id))?.id ?? []);
  const needed = new Set(
    (
      await link.query(
        `SELECT j.message_id FROM ${m}.journal j JOIN ${m}.open o ON o.id = j.id WHERE j.message_id = ANY ($1::text[])`,
        [events],
      )
    ).map((row) => String(row["message_id"])),
  );
  const gone = rows.filter(({ id }) => !needed.has(eventOf(String(id))?.id ?? "")).slice(0, limit);
  await removeDocuments(
    link,
    m,
    gone.map(({ space, scope, id }) => ({ s: String(space), c: String(scope), i: String(id) })),
  );
  return { removed: gone.length, horizonMs };
}

/** Removes documents with all that belongs to them, also the basis of nodes that have read them. */
export async function removeDocuments(
  link: DatabaseLink,
  m: string,
  documents: readonly { s: string; c: string; i: string }[],
): Promise<void> {
  if (documents.length === 0) return;
  const list = JSON.stringify(documents);
  for (const table of ["document", "patch", "label"]) {
    await link.query(
      `DELETE FROM ${m}.${table} t USING json_to_recordset($1) AS x (s text, c text, i text)
       WHERE t.space = x.s AND t.scope = x.c AND t.id = x.i`,
      [list],
    );
  }
  await link.query(
    `DELETE FROM ${m}.node n WHERE EXISTS (
       SELECT FROM json_array_elements(n.inputs::json) AS input (j) JOIN json_to_recordset($1) AS x (s text, c text, i text)
       ON n.space = x.s AND input.j ->> 'scope' = x.c AND input.j ->> 'id' = x.i)`,
    [list],
  );
}

// Consumers ----------------------------------------------------------------------------------------------------------

export async function declareConsumers(
  link: DatabaseLink,
  m: string,
  { consumers, running }: ConsumerDeclaration,
  nowMs: number,
): Promise<ConsumerTable> {
  await link.query("SELECT pg_advisory_xact_lock(hashtext($1))", [`${m}.consumers`]);
  const added = await link.query(
    `INSERT INTO ${m}.consumer (name, pattern, declared_at)
     SELECT DISTINCT x.name, x.pattern, $2::float8 FROM json_to_recordset($1) AS x (name text, pattern text)
     ON CONFLICT DO NOTHING RETURNING name`,
    [JSON.stringify(consumers), nowMs],
  );
  if (added.length > 0) {
    const [all] = await link.query(`SELECT count(*) AS n FROM ${m}.consumer`);
    if (Number(all?.["n"]) > CONSUMERS_MAX) throw tooManyConsumers();
    await link.query(`UPDATE ${m}.meta SET consumers_version = consumers_version + 1`);
  }
  if (running !== undefined)
    await link.query(`UPDATE ${m}.lease SET running = $2 WHERE id = $1`, [running.lease, [...running.keys]]);
  return listConsumers(link, m, nowMs);
}

export async function listConsumers(link: DatabaseLink, m: string, nowMs: number): Promise<ConsumerTable> {
  const rows = await link.query(
    `SELECT t.consumers_version AS version, c.name, c.pattern, c.declared_at,
       ARRAY(SELECT l.id FROM ${m}.lease l WHERE l.expires_at > $1 AND c.name || ' ' || c.pattern = ANY (l.running) ORDER BY l.id) AS leases,
       (SELECT count(*) FROM ${m}.open o WHERE o.status = 'pending' AND o.awaits @> ARRAY[c.name || ' ' || c.pattern]) AS waiting
     FROM ${m}.meta t LEFT JOIN ${m}.consumer c ON true ORDER BY c.name, c.pattern`,
    [nowMs],
  );
  const consumers = rows
    .filter(({ name }) => name !== null)
    .map((row) => ({
      name: String(row["name"]),
      pattern: String(row["pattern"]),
      declaredAtMs: Number(row["declared_at"]),
      leases: row["leases"] as number[],
      waiting: Number(row["waiting"]),
    }));
  return { version: Number(rows[0]?.["version"]), consumers };
}

export async function deleteConsumer(
  link: DatabaseLink,
  m: string,
  { limit, exceptLease, name, pattern }: ConsumerRemoval,
  nowMs: number,
): Promise<RemovalResult> {
  await link.query("SELECT pg_advisory_xact_lock(hashtext($1))", [`${m}.consumers`]);
  const consumer: Consumer = { name, pattern };
  const known = (await listConsumers(link, m, nowMs)).consumers.find(
    (one) => one.name === name && one.pattern === pattern,
  );
  if (known === undefined) return "unknown";
  if (known.leases.some((lease) => lease !== exceptLease)) return "running";
  const key = consumerKey(consumer);
  const rows = await link.query(
    `SELECT id FROM ${m}.open WHERE status = 'pending' AND awaits @> ARRAY[$1] ORDER BY id LIMIT $2`,
    [key, limit],
  );
  const records = await loadStates(
    link,
    m,
    rows.map(({ id }) => Number(id)),
  );
  for (const record of records) {
    for (const { awaits, ...delivery } of [...record.deliveries.values()]) {
      if (awaits === key) record.deliveries.set(delivery.subscriber, { ...delivery, status: "removing" });
    }
    record.state = { ...record.state, nextAttemptAtMs: undefined };
  }
  await putStates(link, m, records);
  if (records.length >= limit) return "partly";
  await link.query(`DELETE FROM ${m}.consumer WHERE name = $1 AND pattern = $2`, [name, pattern]);
  await link.query(`UPDATE ${m}.meta SET consumers_version = consumers_version + 1`);
  return "removed";
}

// Due rows -----------------------------------------------------------------------------------------------------------

/** Makes changes one after the other. A failed `take` or `add` ends them. */
export async function changeDue(link: DatabaseLink, m: string, changes: readonly DueChange[]): Promise<boolean[]> {
  const results: boolean[] = [];
  let isOver = false;
  for (const change of changes) {
    const done = !isOver && (await changeOne(link, m, change));
    if (!done && (change.op === "take" || change.op === "add")) isOver = true;
    results.push(done);
  }
  return results;
}

async function changeOne(link: DatabaseLink, m: string, change: DueChange): Promise<boolean> {
  const { op, kind, key } = change;
  if (op === "take" || op === "cancel") {
    const was = op === "take" && change.was !== undefined ? jsonText("a due row", change.was) : null;
    const rows = await link.query(
      `DELETE FROM ${m}.due WHERE kind = $1 AND key = $2 AND ($3::text IS NULL OR data::jsonb = $3::jsonb) RETURNING kind`,
      [kind, key, was],
    );
    return rows.length > 0;
  }
  const conflict =
    op === "add"
      ? "DO NOTHING"
      : "(kind, key) DO UPDATE SET due_at = excluded.due_at, data = excluded.data, place = excluded.place";
  const rows = await link.query(
    `INSERT INTO ${m}.due (kind, key, due_at, data, place) VALUES ($1, $2, $3, $4, nextval('${m}.due_order'))
     ON CONFLICT ${conflict} RETURNING kind`,
    [kind, key, change.dueAtMs, jsonText("a due row", change.data)],
  );
  return rows.length > 0;
}
