/**
 * Reads the lines of a SQLite store (`sqlite/export-lines.ts`) into an empty database, in one transaction. SPEC: S280,
 * S281.
 *
 * Sequences of spaces and documents stay, because clients and receipts name them. A journal id becomes the same number
 * of lane 0 (`id * LANE_COUNT`), and the hash chain is made anew over it. The feed of each space begins at its head.
 */
import type { Json, JsonObject } from "../../message/json.ts";
import { topicType } from "../../message/topic.ts";
import { type LineCounts, type LineKind, noLines, PARKED } from "../sqlite/export-lines.ts";
import { GENESIS, RowHasher } from "../sqlite/journal-hash.ts";
import { StoreError } from "../store.ts";
import { DatabaseLink } from "./link.ts";
import { migrate } from "./migrations.ts";
import { type PostgresStoreOptions, resolveOptions } from "./options.ts";
import { LANE_COUNT } from "./schema.ts";
import { scrub } from "./verify.ts";

/** Rows and characters of one statement. */
const STEP_ROWS = 500;
const STEP_CHARACTERS = 4_000_000;
const TABLES = ["journal", "document", "space", "consumer", "due"];
/** Lease numbers of a file end with as many random bits. */
const LEASE_VALUES = 2 ** 20;

/** Takes all lines, verifies the result and commits. */
export async function importIntoPostgres(
  options: PostgresStoreOptions,
  lines: AsyncIterable<string>,
  onLine: (count: number) => void,
): Promise<LineCounts> {
  const resolved = resolveOptions(options);
  const link = await DatabaseLink.open(resolved);
  try {
    await migrate(link, resolved.schema);
    return await link.transaction(async () => {
      const into = new PostgresImport(link, resolved.schema);
      await into.begin();
      let count = 0;
      for await (const line of lines) {
        await into.take(JSON.parse(line) as JsonObject);
        onLine(++count);
      }
      await into.finish();
      const { problems } = await scrub(link, resolved.schema);
      if (problems.length > 0) throw new StoreError("STORE_CORRUPT", `the copy is not as the file: ${problems[0]}`);
      return into.counts;
    });
  } finally {
    await link.close();
  }
}

class PostgresImport {
  readonly counts: LineCounts = noLines();
  readonly #link: DatabaseLink;
  readonly #m: string;
  readonly #hasher = new RowHasher();
  #kind: LineKind | undefined;
  #waiting: JsonObject[] = [];
  #characters = 0;
  #writer = 0;
  #chain = { hash: GENESIS, place: 0, id: 0 };
  /** The greatest place of a due row. */
  #place = 0;
  #isEnded = false;

  constructor(link: DatabaseLink, schema: string) {
    this.#link = link;
    this.#m = schema;
  }

  async begin(): Promise<void> {
    const tables = TABLES.map((table) => `EXISTS (SELECT FROM ${this.#m}.${table})`);
    await this.#link.query(`LOCK TABLE ${this.#m}.writer IN SHARE ROW EXCLUSIVE MODE`);
    const [state] = await this.#link.query(`SELECT ${tables.join(" OR ")} AS used`);
    if (state?.["used"] === true)
      throw new StoreError(
        "STORE_MISUSE",
        `the database has data in its schema "${this.#m}" already; copy into another database, or drop that schema`,
      );
    const [writer] = await this.#link.query(
      `INSERT INTO ${this.#m}.writer (lane, about, ended) VALUES (0, 'the copy of a file', true) RETURNING incarnation`,
    );
    this.#writer = Number(writer?.["incarnation"]);
  }

  async take(line: JsonObject): Promise<void> {
    const kind = line["line"];
    if (kind === "end") {
      await this.#flush();
      this.#isEnded = true;
      return;
    }
    if (line["history"] !== undefined) return this.#header(line["history"] as JsonObject);
    if (kind !== this.#kind) {
      await this.#flush();
      this.#kind = kind as LineKind;
    }
    const row = this.#rowOf(kind as LineKind, line);
    this.counts[kind as LineKind]++;
    if (row === undefined) return;
    this.#waiting.push(row);
    this.#characters += String(row["value"] ?? "").length + String(row["payload"] ?? "").length;
    if (this.#waiting.length >= STEP_ROWS || this.#characters >= STEP_CHARACTERS) await this.#flush();
  }

  async finish(): Promise<void> {
    if (!this.#isEnded) throw new StoreError("STORE_CORRUPT", "the lines end before the last one; copy again");
    const { id } = this.#chain;
    await this.#link.query(`UPDATE ${this.#m}.writer SET last_id = $2 WHERE incarnation = $1`, [this.#writer, id]);
    await this.#link.query(`SELECT setval('${this.#m}.due_order', $1)`, [this.#place + 1]);
    if (this.counts.consumer > 0)
      await this.#link.query(`UPDATE ${this.#m}.meta SET consumers_version = consumers_version + 1`);
  }

  /** Later ids and leases are greater than all of the file. */
  async #header(history: JsonObject): Promise<void> {
    await this.#link.query(`UPDATE ${this.#m}.meta SET horizon_ms = $1, last_lease = $2, last_removed = $3`, [
      Number(history["receiptsBeforeMs"]),
      Math.ceil(Number(history["lastLease"]) / LEASE_VALUES),
      Number(history["lastId"]) * LANE_COUNT,
    ]);
  }

  #rowOf(kind: LineKind, line: JsonObject): JsonObject | undefined {
    if (kind === "row") return this.#journalRow(line);
    if (kind === "document") return { ...line, ...documentOf(line) };
    if (kind === "due") {
      this.#place = Math.max(this.#place, Number(line["order"]));
      return { ...line, data: JSON.stringify(line["data"]) };
    }
    // A new chain has no gaps.
    return kind === "gap" ? undefined : line;
  }

  #journalRow(line: JsonObject): JsonObject {
    const id = Number(line["id"]) * LANE_COUNT;
    const previous = this.#chain.id;
    const columns = {
      createdAt: Number(line["createdAt"]),
      topic: String(line["topic"]),
      source: String(line["source"]),
      payload: textOf(line, "payload") ?? "null",
      messageId: String(line["messageId"] ?? `journal-${line["id"]}`),
      kind: String(line["kind"]),
      type: String(line["type"] ?? topicType(String(line["topic"]))),
      correlation: nullable(line["correlation"]),
      causation: nullable(line["causation"]),
      timestamp: line["timestamp"] === undefined ? null : Number(line["timestamp"]),
      metadata: textOf(line, "metadata"),
    };
    // A row that a hand wrote has no hash, and no place in the chain.
    const isSigned = line["hash"] !== undefined;
    const hash = isSigned ? this.#hasher.hash(this.#chain.hash, id, columns) : null;
    const place = isSigned ? this.#chain.place + 1 : 0;
    this.#chain = isSigned && hash !== null ? { hash, place, id } : { ...this.#chain, id };
    return { ...columns, id, previous, hash, place, ...stateOf(line) };
  }

  async #flush(): Promise<void> {
    const [rows, kind] = [this.#waiting, this.#kind];
    this.#waiting = [];
    this.#characters = 0;
    if (rows.length === 0 || kind === undefined) return;
    const text = JSON.stringify(rows);
    for (const statement of statementsOf(this.#m, kind)) {
      const values = statement.includes("$2") ? [text, this.#writer] : [text];
      await this.#link.query(statement, values);
    }
  }
}

/** The state of a row, in the columns of `open` and `done`. */
function stateOf(line: JsonObject): JsonObject {
  const deliveries = (line["deliveries"] ?? []) as readonly JsonObject[];
  const bySubscriber = Object.fromEntries(deliveries.map((one) => [String(one["subscriber"]), deliveryOf(one)]));
  return {
    status: line["status"] as string,
    processed: milliseconds(line["processedAt"]),
    error: nullable(line["error"]),
    outcome: nullable(line["outcome"]),
    reason: nullable(line["reason"]),
    attempts: Number(line["attempts"] ?? 0),
    deaths: Number(line["deaths"] ?? 0),
    next: line["nextAttemptAt"] === PARKED ? "Infinity" : milliseconds(line["nextAttemptAt"]),
    deliveries: deliveries.length === 0 ? null : (bySubscriber as JsonObject),
  };
}

function deliveryOf(line: JsonObject): JsonObject {
  const { nextAttemptAt, ...delivery } = line;
  const next = nextAttemptAt === PARKED ? null : milliseconds(nextAttemptAt);
  return { ...delivery, ...(next === null ? {} : { nextAttemptAtMs: next }) };
}

function documentOf(line: JsonObject): JsonObject {
  const text = line["value"] === undefined ? null : JSON.stringify(line["value"]);
  const labels = (line["labels"] ?? []) as readonly JsonObject[];
  return {
    value: text,
    bytes: text === null ? 0 : Buffer.byteLength(text),
    labels: labels.map((one) => ({ path: JSON.stringify(one["path"]), labels: JSON.stringify(one["labels"]) })),
  };
}

/** JSON of ours, or the text that a hand wrote. */
function textOf(line: JsonObject, key: "payload" | "metadata"): string | null {
  const text = line[`${key}Text`];
  if (typeof text === "string") return text;
  return line[key] === undefined ? null : JSON.stringify(line[key]);
}

function nullable(value: Json | undefined): string | null {
  return value === undefined || value === null ? null : String(value);
}

function milliseconds(seconds: Json | undefined): number | null {
  return typeof seconds === "number" ? seconds * 1_000 : null;
}

/** The rows of one kind of lines come as a JSON list, $1. */
function statementsOf(m: string, kind: LineKind): readonly string[] {
  switch (kind) {
    case "space":
      return [
        `INSERT INTO ${m}.space (name, head, feed_start)
         SELECT name, sequence, sequence FROM json_to_recordset($1) AS x (name text, sequence bigint)`,
      ];
    case "document":
      // A read that is older than the copy is refused: the last writer is unknown here.
      return [
        `INSERT INTO ${m}.document (space, scope, id, sequence, session, other_sequence, turned, base_sequence, value,
           base_bytes, bytes, made_at)
         SELECT space, scope, id, sequence, '', sequence, sequence, sequence, value, bytes, bytes, "madeAtMs"
         FROM json_to_recordset($1) AS x (space text, scope text, id text, sequence bigint, value text, bytes bigint,
           "madeAtMs" float8)`,
        `INSERT INTO ${m}.label (space, scope, id, path, labels)
         SELECT x.space, x.scope, x.id, l ->> 'path', l ->> 'labels'
         FROM json_to_recordset($1) AS x (space text, scope text, id text, labels json),
           json_array_elements(x.labels) AS l`,
      ];
    case "row":
      return [
        `INSERT INTO ${m}.journal (id, message_id, kind, type, topic, source, payload, correlation_id, causation_id,
           created_at, timestamp, metadata, writer, place, hash, previous)
         SELECT id, "messageId", kind, type, topic, source, payload, correlation, causation, "createdAt", timestamp,
           metadata, $2::bigint, place, hash, previous
         FROM json_to_recordset($1) AS x (id bigint, "messageId" text, kind text, type text, topic text, source text,
           payload text, correlation text, causation text, "createdAt" float8, timestamp float8, metadata text,
           place bigint, hash text, previous bigint)`,
        `INSERT INTO ${m}.open (id, kind, topic, status, attempts, deaths, next_at, processed_at, error, deliveries, awaits)
         SELECT id, kind, topic, status, attempts, deaths, next, processed, error, deliveries,
           CASE WHEN status = 'pending' THEN ${m}.awaits_v1(deliveries) END
         FROM json_to_recordset($1) AS x (id bigint, kind text, topic text, status text, attempts integer, deaths integer,
           next float8, processed float8, error text, deliveries jsonb) WHERE status <> 'done'`,
        `INSERT INTO ${m}.done (id, processed_at, attempts, outcome, reason, error, deliveries)
         SELECT id, coalesce(processed, 0), attempts, outcome, reason, error, deliveries
         FROM json_to_recordset($1) AS x (id bigint, status text, processed float8, attempts integer, outcome text,
           reason text, error text, deliveries jsonb) WHERE status = 'done'`,
      ];
    case "consumer":
      return [
        `INSERT INTO ${m}.consumer (name, pattern, declared_at)
         SELECT name, pattern, "declaredAtMs" FROM json_to_recordset($1) AS x (name text, pattern text, "declaredAtMs" float8)`,
      ];
    case "due":
      return [
        `INSERT INTO ${m}.due (kind, key, due_at, data, place)
         SELECT kind, key, "dueAtMs", data, "order"
         FROM json_to_recordset($1) AS x (kind text, key text, "dueAtMs" float8, data text, "order" bigint)`,
      ];
    case "gap":
      return [];
  }
}
