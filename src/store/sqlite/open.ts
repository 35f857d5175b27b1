/**
 * Opens a store: checks the file, the engine version and the format, then applies settings and schema. All problems of
 * a file are found here, before a write to it, and reported in one sentence.
 */

import { pause } from "../../host/pause.ts";
import { thrownText } from "../../message/error-data.ts";
import { newHistory } from "../history.ts";
import { type Store, StoreError } from "../store.ts";
import { configure, openConnection, readPragma, requireEngine, type SqliteConnection } from "./connection.ts";
import { cannotWrite, flushDirectory, notOurs, openFailed, prepareFile } from "./database-file.ts";
import { hasLog, incomplete, OpenMark } from "./open-mark.ts";
import { type ResolvedOptions, resolveOptions, type SqliteStoreOptions } from "./options.ts";
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from "./schema.ts";
import { engineTrouble } from "./sqlite-error.ts";
import { SqliteStore } from "./store.ts";

/** Delay between attempts while another process creates or recovers the file. */
const RETRY_MS = 2;

/** Opens the store in a file; creates the file if it does not exist. */
export function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  return openWith(resolveOptions(options));
}

async function openWith(options: ResolvedOptions): Promise<Store> {
  const startMs = options.host.monotonic();
  for (;;) {
    try {
      return openOnce(options);
    } catch (error) {
      const isBusy = engineTrouble(error) === "busy";
      if (!isBusy || options.host.monotonic() - startMs > options.tuning.lockWaitMs) throw asStoreError(error, options);
      await pause(options.host, RETRY_MS);
    }
  }
}

function openOnce(options: ResolvedOptions): Store {
  const isComplete = hasLog(options.path);
  const state = prepareFile(options);
  if (state === "ours") inspect(options);
  else if (options.readOnly) throw openFailed(`${options.path} is empty. Open it once without readOnly.`);
  const connection = openConnection(options, options.readOnly);
  try {
    requireEngine(connection);
    if (!options.readOnly) createSchema(connection, options);
    configure(connection, options, options.readOnly);
    const lack = isComplete ? undefined : incomplete(connection);
    const mark = options.readOnly ? undefined : new OpenMark(connection, options.host);
    if (mark) {
      flushNames(connection, options);
      mark.set();
      copyLeftLog(connection);
    }
    return new SqliteStore(connection, options, mark, lack);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** The engine flushes the directory after creating its log, but ignores errors. */
function flushNames(connection: SqliteConnection, options: ResolvedOptions): void {
  // Any read creates the log.
  readPragma(connection, "user_version");
  flushDirectory(options.path);
}

/**
 * The log of a dead process may end with a commit whose flush failed: it is in the system's memory, and a later flush
 * succeeds without writing it. Commits appended after it would be lost with it, so the log is copied into the database
 * and restarted. If that is refused, another process is alive, and the engine's shared index still knows the end of the
 * log.
 */
function copyLeftLog(connection: SqliteConnection): void {
  try {
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    // A store on a full disk can still be read.
    const trouble = engineTrouble(error);
    if (trouble !== "busy" && trouble !== "full") throw error;
  }
}

/** Checks with a read-only connection: the first bytes of the file may be older than its log. */
function inspect(options: ResolvedOptions): void {
  const connection = openConnection(options, true);
  try {
    requireEngine(connection);
    const id = readPragma(connection, "application_id");
    if (id !== APPLICATION_ID) throw notOurs(options.path, "is a database of another program");
    requireKnownVersion(connection, options);
  } finally {
    connection.close();
  }
}

/** The file's format: `SCHEMA_VERSION`, or 0 for a file without tables. Every other format is refused. */
function requireKnownVersion(connection: SqliteConnection, { path }: ResolvedOptions): number {
  const version = Number(readPragma(connection, "user_version"));
  if (version === 0 || version === SCHEMA_VERSION) return version;
  const formats = `its format is ${version}, this one knows ${SCHEMA_VERSION}`;
  if (version > SCHEMA_VERSION) {
    throw new StoreError(
      "STORE_TOO_NEW",
      `${path} was written by a newer Millrace: ${formats}. Update Millrace; the file was left as it is.`,
    );
  }
  throw new StoreError(
    "STORE_TOO_OLD",
    `${path} was written by a version of Millrace before its first release: ${formats}. ` +
      `Choose another file, or move this one away; it was left as it is.`,
  );
}

/** Creates the tables of a new file. */
function createSchema(connection: SqliteConnection, options: ResolvedOptions): void {
  if (requireKnownVersion(connection, options) === SCHEMA_VERSION) return;
  connection.exec("PRAGMA synchronous = FULL");
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created them before this one got the lock.
    if (requireKnownVersion(connection, options) === 0) {
      connection.exec(SCHEMA);
      connection.prepare("UPDATE store_file SET history = ?").run(newHistory(options.host));
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      connection.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    connection.exec("COMMIT");
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

function asStoreError(error: unknown, { path }: ResolvedOptions): unknown {
  const message = thrownText(error);
  switch (engineTrouble(error)) {
    case undefined:
      return error;
    case "busy":
      return new StoreError("STORE_BUSY", `Another process holds ${path}: ${message}.`, { cause: error });
    case "full":
      return new StoreError("STORE_FULL", `There is no space left to open ${path}: ${message}.`, { cause: error });
    case "read-only":
      return cannotWrite(path, error);
    case "corrupt":
      return new StoreError("STORE_CORRUPT", `${path} is damaged: ${message}. Restore a copy.`, { cause: error });
    default:
      return openFailed(`${path} cannot be opened: ${message}.`, error);
  }
}
