/**
 * Events that the user's own transactions publish: `select millrace.publish('order.placed', '{"price": 3}')`. SPEC:
 * S271-S274.
 *
 *   user's transaction: publish() ──commit──> row of `outbox` ──one transaction of a kernel──> journal row, pending
 *
 * The rows of many transactions become visible in any order, and the journal's ids increase in each lane. So the
 * function writes a row of its own table, and a kernel moves it: it gets its id and hash as every other row does. One
 * kernel moves at a time, in the order of the calls.
 */
import { PAYLOAD_BYTES_MAX, TOPIC_LENGTH_MAX } from "../../limits.ts";
import { checkMessage, ID_LENGTH_MAX, isMessageType } from "../../message/envelope.ts";
import { thrownText } from "../../message/error-data.ts";
import type { Json } from "../../message/json.ts";
import { topicType } from "../../message/topic.ts";
import type { JournalEntry } from "../journal.ts";
import { type EncodedEntry, encodeEntries } from "../sqlite/journal-entry.ts";
import { resolveEntries } from "./commit-decision.ts";
import type { DatabaseLink, Row } from "./link.ts";

/** Rows that are moved in one transaction, and the bytes of their data from which on no further row is. */
const OUTBOX_ROWS_MAX = 500;
const OUTBOX_BYTES_MAX = 4_194_304;

const PENDING = { status: "pending" } as const;

/** A topic has segments of letters, digits, `-` and `_`, each with a letter or digit. */
const TOPIC = "^[_-]*[A-Za-z0-9][A-Za-z0-9_-]*([.][_-]*[A-Za-z0-9][A-Za-z0-9_-]*)*$";

export function outboxTables(m: string): string {
  return `
-- Events of the user's transactions that no kernel has moved to the journal yet. A row with a problem stays.
CREATE TABLE ${m}.outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id text COLLATE "C" NOT NULL UNIQUE,
  topic text NOT NULL,
  source text NOT NULL,
  payload text NOT NULL,
  correlation_id text,
  published_at float8 NOT NULL,
  problem text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_waiting ON ${m}.outbox (id) WHERE problem IS NULL;
`;
}

/** `SECURITY DEFINER`: the caller's role needs no right on the tables. */
export function outboxFunctions(m: string): string {
  return `
CREATE OR REPLACE FUNCTION ${m}.publish(
  topic text, data jsonb DEFAULT 'null', id text DEFAULT NULL, correlation text DEFAULT NULL, source text DEFAULT 'sql'
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  made_ms float8 := floor(extract(epoch FROM clock_timestamp()) * 1000);
  stamp text := lpad(to_hex(made_ms::bigint), 12, '0');
  random text := replace(gen_random_uuid()::text, '-', '');
  payload text := coalesce(data, 'null')::text;
  -- A UUIDv7, as the kernels make them.
  message_id text := coalesce(id, substr(stamp, 1, 8) || '-' || substr(stamp, 9, 4) || '-7' || substr(random, 14, 3) || '-' ||
    substr(random, 17, 4) || '-' || substr(random, 21, 12));
  there record;
BEGIN
  IF topic IS NULL OR length(topic) > ${TOPIC_LENGTH_MAX} OR topic !~ '${TOPIC}' THEN
    RAISE EXCEPTION 'millrace.publish: "%" is no topic and no type of an event', left(topic, 80)
      USING ERRCODE = '22023', HINT = 'Use a name like order.placed or Order.Placed.';
  END IF;
  IF octet_length(payload) > ${PAYLOAD_BYTES_MAX} THEN
    RAISE EXCEPTION 'millrace.publish: the data of % have % bytes; an event takes ${PAYLOAD_BYTES_MAX}', topic, octet_length(payload)
      USING ERRCODE = '22023', HINT = 'Publish the key of a row instead.';
  END IF;
  IF length(message_id) NOT BETWEEN 1 AND ${ID_LENGTH_MAX} OR length(correlation) NOT BETWEEN 1 AND ${ID_LENGTH_MAX}
    OR source IS NULL OR length(source) NOT BETWEEN 1 AND ${ID_LENGTH_MAX} THEN
    RAISE EXCEPTION 'millrace.publish: id, correlation and source have 1 to ${ID_LENGTH_MAX} characters' USING ERRCODE = '22023';
  END IF;
  INSERT INTO ${m}.outbox (message_id, topic, source, payload, correlation_id, published_at)
  VALUES (message_id, topic, source, payload, correlation, made_ms) ON CONFLICT ON CONSTRAINT outbox_message_id_key DO NOTHING;
  IF FOUND THEN
    -- The kernels are woken by the commit of this transaction.
    PERFORM pg_notify('${m}', '{"by":0,"outbox":true}');
    RETURN message_id;
  END IF;
  SELECT o.topic, o.source, o.payload INTO there FROM ${m}.outbox o WHERE o.message_id = message_id;
  IF there.topic <> topic OR there.source <> source OR there.payload <> payload THEN
    RAISE EXCEPTION 'millrace.publish: event % was published with other content', message_id
      USING ERRCODE = '23505', HINT = 'Give each event an id of its own.';
  END IF;
  RETURN message_id;
END $$;
`;
}

/** Rows that were taken from the outbox, as journal entries. */
export interface Published {
  readonly entries: readonly EncodedEntry[];
  /** Whether more rows wait. */
  readonly isFull: boolean;
  /** Why rows stay in the outbox. */
  readonly problems: readonly string[];
}

/** Takes rows inside of the transaction that appends them. Takes none while another kernel is at it. */
export async function takePublished(
  link: DatabaseLink,
  m: string,
  nowMs: number,
  payloadBytesMax: number,
): Promise<Published> {
  const [lock] = await link.query("SELECT pg_try_advisory_xact_lock(hashtext($1)) AS taken", [`${m}.outbox`]);
  if (lock?.["taken"] !== true) return { entries: [], isFull: false, problems: [] };
  const rows = await link.query(
    `SELECT * FROM (
       SELECT o.*, count(*) OVER () AS found, sum(octet_length(payload)) OVER (ORDER BY id) - octet_length(payload) AS before
       FROM (SELECT * FROM ${m}.outbox WHERE problem IS NULL ORDER BY id LIMIT ${OUTBOX_ROWS_MAX}) o
     ) x WHERE before < ${OUTBOX_BYTES_MAX} ORDER BY id`,
  );
  const found = Number(rows[0]?.["found"] ?? 0);
  const isFull = found === OUTBOX_ROWS_MAX || rows.length < found;
  const problems = new Map<number, string>();
  const encoded = rows.flatMap((row) => {
    const entry = entryOf(row, nowMs, payloadBytesMax);
    if (typeof entry !== "string") return [entry];
    problems.set(Number(row["id"]), entry);
    return [];
  });
  const entries = await newEntries(link, m, encoded, nowMs, (messageId, problem) => {
    const row = rows.find((one) => one["message_id"] === messageId);
    problems.set(Number(row?.["id"]), problem);
  });
  for (const [id, problem] of problems)
    await link.query(`UPDATE ${m}.outbox SET problem = $2 WHERE id = $1`, [id, problem]);
  const moved = rows.map(({ id }) => Number(id)).filter((id) => !problems.has(id));
  if (moved.length > 0) await link.query(`DELETE FROM ${m}.outbox WHERE id = ANY ($1::bigint[])`, [moved]);
  return { entries, isFull, problems: [...problems].map(([id, problem]) => `row ${id} of ${m}.outbox: ${problem}`) };
}

/** The row as an entry, or the reason why it is none. */
function entryOf(row: Row, nowMs: number, payloadBytesMax: number): EncodedEntry | string {
  try {
    const topic = String(row["topic"]);
    const { correlation_id: correlation } = row;
    const checked = checkMessage({
      kind: "event",
      type: isMessageType(topic) ? topic : topicType(topic),
      data: JSON.parse(String(row["payload"])) as Json,
      metadata: {
        id: String(row["message_id"]),
        timestamp: Number(row["published_at"]),
        ...(correlation === null ? {} : { correlation: String(correlation) }),
      },
    });
    if (checked.kind === "refused") return checked.message;
    const entry: JournalEntry = { message: checked.message, topic, source: String(row["source"]), as: PENDING };
    const encoded = encodeEntries([entry], nowMs, payloadBytesMax);
    return encoded.kind === "rejected" ? encoded.message : (encoded.entries[0] as EncodedEntry);
  } catch (error) {
    return thrownText(error);
  }
}

/** Entries that the journal does not have. One with other content under its id is a problem of that row alone. */
async function newEntries(
  link: DatabaseLink,
  m: string,
  entries: readonly EncodedEntry[],
  nowMs: number,
  refuse: (messageId: string, problem: string) => void,
): Promise<readonly EncodedEntry[]> {
  // Each row is moved once, however old it is: it cannot have been handled and forgotten.
  const resolved = await resolveEntries(link, m, entries, nowMs, "also-old");
  if (resolved.kind === "resolved") return resolved.fresh;
  if (entries.length === 1) {
    for (const { messageId } of entries) refuse(messageId, resolved.message);
    return [];
  }
  const fresh: EncodedEntry[] = [];
  for (const entry of entries) fresh.push(...(await newEntries(link, m, [entry], nowMs, refuse)));
  return fresh;
}
