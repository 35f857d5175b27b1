/**
 * Reads the lines of an export (`export-lines.ts`) into the tables of an empty store. SPEC: S140-S144. The caller holds
 * one transaction around all lines: an error in one of them leaves the store empty. Ids, sequences and hashes are those
 * of the exported store, so that receipts, the hash chain and the order of timers are the same. The feed of each space
 * begins at its head.
 *
 *   header ──lines──> lines ──end──> ended
 */

import { DEPTH_MAX, DOCUMENT_BYTES_MAX } from "../../limits.ts";
import { thrownText } from "../../message/error-data.ts";
import { findImpurity, isCleanText, isJsonObject, type Json, type JsonObject } from "../../message/json.ts";
import { MillraceError } from "../../message/millrace-error.ts";
import { problemText } from "../../message/problem.ts";
import type { SqliteConnection } from "./connection.ts";
import { DocumentBase } from "./document-base.ts";
import {
  DELIVERY_KEYS,
  EXPORT_FORMAT,
  EXPORT_NAME,
  LINE_KINDS,
  type LineCounts,
  type LineKind,
  noLines,
  PARKED,
  ROW_KEYS,
  TEXT_KEYS,
} from "./export-lines.ts";
import { PARKED_S } from "./journal-entry.ts";

/** A line that cannot be imported, or a store that cannot take one. The message has the remedy. */
export class ImportError extends MillraceError<"STORE_IMPORT"> {
  override readonly name = "ImportError";

  constructor(message: string, options?: ErrorOptions) {
    super("STORE_IMPORT", message, options);
  }
}

type Value = string | number | null;

const AGAIN = "export the store again";
/** Containers around a value in its line. */
const DEPTH_AROUND = 4;
const NUMBERS: ReadonlySet<string> = new Set([
  ...["id", "timestamp", "createdAt", "processedAt", "attempts", "deaths", "nextAttemptAt"],
]);
const STATUSES: readonly string[] = ["pending", "done", "failed"];
const TABLES = ["event_journal", "journal_gap", "document", "space", "consumer", "due"] as const;

export function requireEmpty(connection: SqliteConnection, path: string): void {
  const full = TABLES.find((table) => connection.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined);
  if (full === undefined) return;
  throw new ImportError(
    `${path} is not empty; import needs a new store: move that file away, or name another directory in MILLRACE_DIR`,
  );
}

export class ImportLines {
  readonly counts: LineCounts = noLines();
  readonly #connection: SqliteConnection;
  readonly #bases: DocumentBase;
  readonly #sql;
  /** Rows of spaces by name. */
  readonly #spaces = new Map<string, number>();
  #state: "header" | "lines" | "ended" = "header";

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#bases = new DocumentBase(connection);
    this.#sql = statements(connection);
  }

  /** One line without its newline. Throws `ImportError` with the line's number. */
  take(text: string, number: number): void {
    try {
      this.#take(parsed(text));
    } catch (error) {
      const remedy = error instanceof ImportError ? "" : `; ${AGAIN}`;
      throw new ImportError(`line ${number}: ${thrownText(error)}${remedy}`, { cause: error });
    }
  }

  /** All lines were taken. */
  finish(): void {
    if (this.#state !== "ended") throw new ImportError(`the file ends before its last line; ${AGAIN}`);
  }

  #take(line: JsonObject): void {
    const kind = line["line"];
    if (this.#state === "ended") throw new Error("a line follows after the last one");
    if (this.#state === "header") return this.#header(line);
    if (kind === "end") return this.#end(line);
    const known = LINE_KINDS.find((one) => one === kind);
    if (known === undefined) throw new Error(`there is no kind of line ${JSON.stringify(kind)}`);
    this.#insert(known, line);
    this.counts[known]++;
  }

  #header(line: JsonObject): void {
    if (line["line"] !== EXPORT_NAME)
      throw new ImportError('it is not the first line of an export; make one with "millrace export --jsonl FILE"');
    const format = whole(line, "format");
    if (format !== EXPORT_FORMAT)
      throw new ImportError(
        `the format is ${format}, and this Millrace knows ${EXPORT_FORMAT}; use Millrace ${line["version"]}`,
      );
    const history = line["history"];
    if (!isJsonObject(history)) throw new Error('"history" is missing');
    const counter = this.#connection.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)");
    this.#connection.exec("DELETE FROM sqlite_sequence");
    counter.run("journal_head", `${whole(history, "signedId")} ${text(history, "hash")}`);
    counter.run("event_journal", whole(history, "lastId"));
    counter.run("lease", whole(history, "lastLease"));
    this.#connection.prepare("UPDATE receipt_horizon SET made_before_ms = ?").run(whole(history, "receiptsBeforeMs"));
    this.#state = "lines";
  }

  #end(line: JsonObject): void {
    for (const kind of LINE_KINDS)
      if (line[kind] !== this.counts[kind])
        throw new Error(
          `the export had ${JSON.stringify(line[kind])} lines of kind "${kind}", the file has ${this.counts[kind]}`,
        );
    this.#state = "ended";
  }

  #insert(kind: LineKind, line: JsonObject): void {
    switch (kind) {
      case "space": {
        const sequence = whole(line, "sequence");
        const name = text(line, "name");
        this.#spaces.set(name, Number(this.#sql.space.get(name, sequence, sequence)?.["id"]));
        return;
      }
      case "document":
        return this.#document(line);
      case "gap":
        this.#sql.gap.run(whole(line, "first"), whole(line, "last"), text(line, "hash"));
        return;
      case "row":
        return this.#row(line);
      case "consumer":
        this.#sql.consumer.run(text(line, "name"), text(line, "pattern"), number(line, "declaredAtMs"));
        this.#connection.exec("UPDATE consumer_version SET version = version + 1");
        return;
      case "due": {
        const data = JSON.stringify(pure(line, "data"));
        this.#sql.due.run(whole(line, "order"), text(line, "kind"), text(line, "key"), number(line, "dueAtMs"), data);
      }
    }
  }

  #document(line: JsonObject): void {
    const space = this.#spaces.get(text(line, "space"));
    if (space === undefined)
      throw new Error(`there is no line of the space ${JSON.stringify(line["space"])} before it`);
    const sequence = whole(line, "sequence");
    const madeAtMs = line["madeAtMs"] === undefined ? null : number(line, "madeAtMs");
    const row = Number(
      this.#sql.document.get(space, text(line, "scope"), text(line, "id"), sequence, madeAtMs)?.["id"],
    );
    const value = line["value"] === undefined ? undefined : pure(line, "value");
    if (value !== undefined && Buffer.byteLength(JSON.stringify(value)) > DOCUMENT_BYTES_MAX)
      throw new Error(`the document is larger than ${DOCUMENT_BYTES_MAX} bytes`);
    this.#bases.put(row, sequence, value);
    for (const label of list(line, "labels"))
      this.#sql.label.run(row, JSON.stringify(pure(label, "path")), JSON.stringify(pure(label, "labels")));
  }

  #row(line: JsonObject): void {
    if (!STATUSES.includes(text(line, "status")))
      throw new Error(`there is no status ${JSON.stringify(line["status"])}`);
    const texts = TEXT_KEYS.map(([key, textKey]) => {
      if (line[textKey] !== undefined) return text(line, textKey);
      return line[key] === undefined ? null : JSON.stringify(pure(line, key));
    });
    const id = whole(line, "id");
    this.#sql.row.run(...columnsOf(line, ROW_KEYS), ...texts);
    for (const delivery of list(line, "deliveries")) this.#sql.delivery.run(id, ...columnsOf(delivery, DELIVERY_KEYS));
  }
}

function parsed(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new Error(`it is not JSON (${thrownText(error)})`, { cause: error });
  }
  if (!isJsonObject(value)) throw new Error("it is not a JSON object");
  return value;
}

function columnsOf(line: JsonObject, keys: Readonly<Record<string, string>>): Value[] {
  return Object.values(keys).map((key) => {
    if (line[key] === undefined) return null;
    if (line[key] === PARKED && key === "nextAttemptAt") return PARKED_S;
    return NUMBERS.has(key) ? number(line, key) : text(line, key);
  });
}

function text(line: JsonObject, key: string): string {
  const value = line[key];
  if (typeof value !== "string" || !isCleanText(value)) throw new Error(`"${key}" must be a text`);
  return value;
}

function number(line: JsonObject, key: string): number {
  const value = line[key];
  if (typeof value !== "number") throw new Error(`"${key}" must be a number`);
  return value;
}

function whole(line: JsonObject, key: string): number {
  const value = number(line, key);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`"${key}" must be a whole number of at least 0`);
  return value;
}

function list(line: JsonObject, key: string): readonly JsonObject[] {
  const value = line[key] ?? [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw new Error(`"${key}" must be a list of objects`);
  return value;
}

function pure(line: JsonObject, key: string): Json {
  const value = line[key];
  if (value === undefined) throw new Error(`"${key}" is missing`);
  const [bytesMax, keysMax] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const problem = findImpurity(value, { bytesMax, keysMax, depthMax: DEPTH_MAX + DEPTH_AROUND });
  if (problem !== undefined) throw new Error(`"${key}": ${problemText(problem)}`);
  return value;
}

function statements(connection: SqliteConnection) {
  const insert = (table: string, columns: readonly string[], ending = "") =>
    connection.prepare(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")}) ${ending}`,
    );
  return {
    space: insert("space", ["name", "sequence", "floor"], "RETURNING id"),
    document: connection.prepare(
      "INSERT INTO document (space, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence, present, made_at) " +
        "VALUES (?, ?, ?, ?, 0, 0, 0, 0, 0, ?) RETURNING id",
    ),
    label: insert("label", ["document", "path", "labels"]),
    gap: insert("journal_gap", ["first_id", "last_id", "hash"]),
    row: insert("event_journal", [...Object.keys(ROW_KEYS), ...TEXT_KEYS.map(([column]) => column)]),
    delivery: insert("delivery", ["event", ...Object.keys(DELIVERY_KEYS)]),
    consumer: insert("consumer", ["name", "pattern", "declared_at_ms"]),
    due: insert("due", ["ord", "kind", "key", "due_at_ms", "data"]),
  };
}
