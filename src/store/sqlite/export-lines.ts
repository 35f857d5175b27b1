/**
 * A store as JSON lines: a header, then spaces, documents, gaps and rows of the journal, consumers and due rows, then a
 * line with their counts. Import reads them again (`import-lines.ts`). SPEC: S140-S142.
 *
 * Left out are rows that a new store makes anew: sessions, leases, bases of persisted nodes, and the feed of changes. A
 * row that a process holds is exported as pending.
 */
import type { Host } from "../../host/host.ts";
import type { Json, JsonObject } from "../../message/json.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import { DocumentTable } from "./document-table.ts";
import { DUE_COLUMNS, dueRow } from "./due-table.ts";
import { PARKED_S } from "./journal-entry.ts";
import { lastJournalId } from "./journal-query.ts";
import { READ_HEAD, ROW_COLUMNS } from "./journal-statements.ts";
import { LabelTable } from "./label-table.ts";

/** Raise it with every change of the lines that an older import cannot read. */
export const EXPORT_FORMAT = 1;
export const EXPORT_NAME = "millrace-export";
/** In the place of a time: the row waits for consumers. JSON has no infinity. */
export const PARKED = "consumers";
/** Rows read at once. */
const PAGE_ROWS = 64;

/** Kinds of lines between the header and the last one, in their order. */
export const LINE_KINDS = ["space", "document", "gap", "row", "consumer", "due"] as const;
export type LineKind = (typeof LINE_KINDS)[number];
export type LineCounts = Record<LineKind, number>;

export function noLines(): LineCounts {
  return { space: 0, document: 0, gap: 0, row: 0, consumer: 0, due: 0 };
}

/** The columns of a journal row and of a delivery, and their keys in a line. Those that are null are left out. */
export const ROW_KEYS: Readonly<Record<string, string>> = {
  id: "id",
  message_id: "messageId",
  kind: "kind",
  type: "type",
  topic: "topic",
  source: "source",
  correlation_id: "correlation",
  causation_id: "causation",
  timestamp: "timestamp",
  created_at: "createdAt",
  status: "status",
  processed_at: "processedAt",
  error: "error",
  outcome: "outcome",
  reason: "reason",
  attempts: "attempts",
  deaths: "deaths",
  next_attempt_at: "nextAttemptAt",
  hash: "hash",
};
export const DELIVERY_KEYS: Readonly<Record<string, string>> = {
  subscriber: "subscriber",
  status: "status",
  attempts: "attempts",
  error: "error",
  next_attempt_at: "nextAttemptAt",
  awaits: "awaits",
};
/**
 * Columns with JSON text. A text that a hand wrote and that is no JSON of ours is exported as text, under the second
 * key.
 */
export const TEXT_KEYS = [
  ["payload", "payloadText"],
  ["metadata", "metadataText"],
] as const;

/** All lines, as of one moment: the connection is inside a read transaction. Gives way to other work between pages. */
export async function* exportLines(connection: SqliteConnection, host: Host, version: string): AsyncGenerator<string> {
  const lines = new ExportLines(connection);
  const counts = noLines();
  yield JSON.stringify(lines.header(version));
  for (const kind of LINE_KINDS)
    for (const page of lines.pages(kind)) {
      for (const line of page) {
        counts[kind]++;
        yield JSON.stringify({ line: kind, ...line });
      }
      await host.yield();
    }
  yield JSON.stringify({ line: "end", ...counts });
}

class ExportLines {
  readonly #connection: SqliteConnection;
  readonly #documents: DocumentTable;
  readonly #labels: LabelTable;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#documents = new DocumentTable(connection);
    this.#labels = new LabelTable(connection);
  }

  header(version: string): JsonObject {
    const head = this.#connection.prepare(READ_HEAD).get();
    const horizon = this.#connection.prepare("SELECT made_before_ms FROM receipt_horizon").get();
    const lease = this.#connection.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'lease'").get();
    return {
      line: EXPORT_NAME,
      format: EXPORT_FORMAT,
      version,
      history: {
        lastId: lastJournalId(this.#connection),
        signedId: Number(head?.["last_id"] ?? 0),
        hash: String(head?.["hash"] ?? ""),
        receiptsBeforeMs: Number(horizon?.["made_before_ms"] ?? 0),
        lastLease: Number(lease?.["seq"] ?? 0),
      },
    };
  }

  pages(kind: LineKind): Iterable<Iterable<JsonObject>> {
    const map = (rows: Iterable<Row[]>, line: (row: Row) => JsonObject) => mapPages(rows, line);
    switch (kind) {
      case "space":
        return map(this.#pages("id, name, sequence", "space"), plain);
      case "document":
        return map(
          this.#pages(
            "document.id AS id, space, space.name AS space_name, scope, document.name AS name, document.sequence AS sequence, made_at",
            "document JOIN space ON space.id = document.space",
            "document.id",
            "document.sequence > 0",
          ),
          (row) => this.#document(row),
        );
      case "gap":
        return map(
          this.#pages("first_id AS id, first_id AS first, last_id AS last, hash", "journal_gap", "first_id"),
          plain,
        );
      case "row":
        return map(this.#pages(ROW_COLUMNS, "event_journal"), (row) => this.#row(row));
      case "consumer":
        return [
          this.#connection
            .prepare("SELECT name, pattern, declared_at_ms AS declaredAtMs FROM consumer ORDER BY name, pattern")
            .all()
            .map(plain),
        ];
      case "due":
        return map(this.#pages(`ord AS id, ${DUE_COLUMNS}`, "due", "ord"), (row) => ({ ...dueRow(row) }));
    }
  }

  #document(row: Row): JsonObject {
    const { id, space, space_name, scope, name, sequence, made_at } = row;
    const ref = { scope: String(scope), id: String(name) };
    const of = { id: Number(space), name: String(space_name), sequence: 0, floor: 0 };
    const document = this.#documents.find(of, ref);
    const value = document && this.#documents.value(document);
    const labels = this.#labels.of(Number(id)) as readonly { path: Json; labels: Json }[];
    this.#documents.trim();
    return {
      space: of.name,
      ...ref,
      sequence: Number(sequence),
      ...(made_at === null ? {} : { madeAtMs: Number(made_at) }),
      ...(labels.length === 0 ? {} : { labels: labels.map(({ path, labels }) => ({ path, labels })) }),
      ...(value === undefined ? {} : { value }),
    };
  }

  #row(row: Row): JsonObject {
    const line: Record<string, Json> = keyed(row, ROW_KEYS);
    // The lease of its holder is invalid in another store.
    if (row["status"] === "processing") line["status"] = "pending";
    const deliveries = this.#connection
      .cached(`SELECT ${Object.keys(DELIVERY_KEYS).join()} FROM delivery WHERE event = ? ORDER BY subscriber`)
      .all(Number(row["id"]));
    if (deliveries.length > 0) line["deliveries"] = deliveries.map((delivery) => keyed(delivery, DELIVERY_KEYS));
    for (const [column, textKey] of TEXT_KEYS) {
      const text = row[column];
      if (text === null || text === undefined) continue;
      const value = ownJson(String(text));
      if (value === undefined) line[textKey] = String(text);
      else line[column] = value;
    }
    return line;
  }

  /** Rows in the order of a number that is never 0, in pages. */
  *#pages(columns: string, table: string, key = "id", condition = "1"): Generator<Row[]> {
    const page = this.#connection.prepare(
      `SELECT ${columns} FROM ${table} WHERE ${condition} AND ${key} > ? ORDER BY ${key} LIMIT ${PAGE_ROWS}`,
    );
    for (let rows = page.all(0); rows.length > 0; rows = page.all(Number(rows.at(-1)?.["id"]))) yield rows;
  }
}

function* mapPages(pages: Iterable<Row[]>, line: (row: Row) => JsonObject): Generator<Iterable<JsonObject>> {
  // One document after another: a page of large ones would be much at once.
  for (const rows of pages) yield mapped(rows, line);
}

function* mapped(rows: readonly Row[], line: (row: Row) => JsonObject): Generator<JsonObject> {
  for (const row of rows) yield line(row);
}

function keyed(row: Row, keys: Readonly<Record<string, string>>): Record<string, Json> {
  const line: Record<string, Json> = {};
  for (const [column, key] of Object.entries(keys)) {
    const value = row[column];
    if (value !== null && value !== undefined) line[key] = value === PARKED_S ? PARKED : (value as string | number);
  }
  return line;
}

/** Without the number by which pages are ordered. */
function plain({ id: _, ...row }: Row): JsonObject {
  return row as JsonObject;
}

/** The value of a text that prints as the same text again. */
function ownJson(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return JSON.stringify(value) === text ? value : undefined;
  } catch {
    // The caller exports the text.
    return undefined;
  }
}
