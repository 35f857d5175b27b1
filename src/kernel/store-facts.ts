/**
 * Facts about a store file for `millrace doctor`: owner, schema, journal mode, size. Reads only the file, also while
 * a kernel has it open.
 */
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { APPLICATION_ID } from "../store/sqlite/schema.ts";

export interface StoreFacts {
  readonly isOurs: boolean;
  /** The number of the file's format. */
  readonly schema: number;
  readonly journalMode: string;
  readonly bytes: number;
  /** Bytes of the log that the next checkpoint copies. */
  readonly logBytes: number;
  /** Owner's and others' permission bits. */
  readonly mode: number;
}

/** The receipts of a store file. */
export interface ReceiptFacts {
  readonly receipts: number;
  /** Those that are removed when the horizon has passed them. */
  readonly ending: number;
  /** Undefined if none was ever removed. */
  readonly horizonMs: number | undefined;
}

export function receiptFacts(file: string): ReceiptFacts {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const count = database.prepare(
      "SELECT count(*) AS receipts, count(made_at) AS ending FROM document WHERE name GLOB 'receipt[/:]*'",
    );
    const { receipts, ending } = count.get() ?? {};
    const { horizon } =
      database.prepare("SELECT nullif(made_before_ms, 0) AS horizon FROM receipt_horizon").get() ?? {};
    return {
      receipts: Number(receipts),
      ending: Number(ending),
      horizonMs: typeof horizon === "number" ? horizon : undefined,
    };
  } finally {
    database.close();
  }
}

export function storeFacts(file: string): StoreFacts {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
    const { size, mode } = statSync(file);
    return {
      isOurs: Number(pragma("application_id")) === APPLICATION_ID,
      schema: Number(pragma("user_version")),
      journalMode: String(pragma("journal_mode")),
      bytes: size,
      logBytes: statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      mode: mode & 0o777,
    };
  } finally {
    database.close();
  }
}

/** Growth of a store file in the last day. */
export interface Growth {
  readonly rows: number;
  /** Bytes of their payloads. */
  readonly bytes: number;
  /** Receipts of messages with a creation time. */
  readonly receipts: number;
  /** Failed rows of any age: they are kept. */
  readonly deadLetters: number;
}

const DAY_MS = 86_400_000;

export function growthOf(file: string, nowMs: number): Growth {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const since = nowMs - DAY_MS;
    const rows = database
      .prepare("SELECT count(*) AS rows, total(length(payload)) AS bytes FROM event_journal WHERE created_at >= ?")
      .get(since / 1_000);
    const receipts = database.prepare("SELECT count(*) AS n FROM document WHERE made_at >= ?").get(since);
    const failed = database.prepare("SELECT count(*) AS n FROM event_journal WHERE status = 'failed'").get();
    return {
      rows: Number(rows?.["rows"]),
      bytes: Number(rows?.["bytes"]),
      receipts: Number(receipts?.["n"]),
      deadLetters: Number(failed?.["n"]),
    };
  } finally {
    database.close();
  }
}
