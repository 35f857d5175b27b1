/**
 * Opening: what the file is, whether this engine and this version may use it, its settings, its schema. Everything that can be
 * wrong with a file is found here, before anything is written to it, and said in a sentence.
 */

import { pause } from "../../host/pause.ts";
import { thrownText } from "../../message/error-data.ts";
import { type Store, StoreError } from "../store.ts";
import { checksum, checksum4 } from "./checksum.ts";
import { type Connection, configure, openConnection, readPragma, requireEngine } from "./connection.ts";
import { cannotWrite, flushDirectory, notOurs, openFailed, prepareFile } from "./database-file.ts";
import { type PlantedBug, type ResolvedOptions, resolveOptions, type SqliteStoreOptions } from "./options.ts";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "./schema.ts";
import { engineTrouble } from "./sqlite-error.ts";
import { SqliteStore } from "./store.ts";

/** Between two tries while another process makes, migrates or recovers the file. */
const RETRY_MS = 2;

/** Opens the store in a file, and makes the file if it is not there. */
export function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  return openWith(resolveOptions(options));
}

export interface PlantedStoreOptions extends SqliteStoreOptions {
  /** A mistake made on purpose, to see that the crash harness finds it. */
  readonly plantedBug?: PlantedBug | undefined;
}

/** For the crash harness only, and not exported from the package: opens a store that may be wrong in one known way. */
export function openPlantedStore(options: PlantedStoreOptions): Promise<Store> {
  return openWith(resolveOptions(options, options.plantedBug));
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
  const state = prepareFile(options);
  if (state === "ours") inspect(options);
  else if (options.readOnly) throw openFailed(`${options.path} is empty. Open it once without readOnly.`);
  const connection = openConnection(options, options.readOnly);
  try {
    requireEngine(connection);
    if (!options.readOnly) migrate(connection, options);
    configure(connection, options, options.readOnly);
    if (!options.readOnly) {
      flushNames(connection, options);
      copyLeftLog(connection);
    }
    return new SqliteStore(connection, options);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** The engine flushes the directory too when it has made its log, but does not look whether that worked. */
function flushNames(connection: Connection, options: ResolvedOptions): void {
  // Any read makes the log.
  readPragma(connection, "user_version");
  flushDirectory(options.path);
}

/**
 * A log that a dead process left may end with a commit whose flush had failed: it is in the system's memory, and a later flush
 * succeeds without writing it. What is added behind it would be lost with it, so the log is copied into the database and
 * begun anew. Where that is refused another process is alive, and the engine's index of the log still knows where it ended.
 */
function copyLeftLog(connection: Connection): void {
  try {
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    // A full disk can still be read.
    const trouble = engineTrouble(error);
    if (trouble !== "busy" && trouble !== "full") throw error;
  }
}

/** A look through a connection that can only read: the first bytes of the file may be older than its log. */
function inspect(options: ResolvedOptions): void {
  const connection = openConnection(options, true);
  try {
    requireEngine(connection);
    const id = readPragma(connection, "application_id");
    if (id !== APPLICATION_ID) throw notOurs(options.path, "is a database of another program");
    const version = requireKnownVersion(connection, options);
    if (options.readOnly && version < SCHEMA_VERSION) {
      const formats = `its format is ${version}, this one reads ${SCHEMA_VERSION}`;
      throw openFailed(`${options.path} was written by an older Millrace: ${formats}. Open it once without readOnly.`);
    }
  } finally {
    connection.close();
  }
}

function requireKnownVersion(connection: Connection, { path }: ResolvedOptions): number {
  const version = Number(readPragma(connection, "user_version"));
  if (version <= SCHEMA_VERSION) return version;
  throw new StoreError(
    "STORE_TOO_NEW",
    `${path} was written by a newer Millrace: its format is ${version}, this one knows ${SCHEMA_VERSION}. Update Millrace; the file was left as it is.`,
  );
}

/** Runs the migrations that the file has not had. A new file is one that had none. */
function migrate(connection: Connection, options: ResolvedOptions): void {
  if (requireKnownVersion(connection, options) === SCHEMA_VERSION) return;
  connection.exec("PRAGMA synchronous = FULL");
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have been here between the first look and the lock.
    const version = requireKnownVersion(connection, options);
    connection.define("checksum", checksum);
    connection.define("checksum4", checksum4);
    for (const migration of MIGRATIONS.slice(version)) connection.exec(migration);
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    connection.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
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
