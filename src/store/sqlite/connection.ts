/**
 * One connection to the engine: its settings, each set and read back, and its prepared statements, each counted.
 *
 * Compiled defaults differ between releases, and SQLite silently ignores a misspelt or refused pragma. So a setting
 * counts only after it was read back.
 */
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { SQLITE_VERSION_MIN } from "../../limits.ts";
import { StoreError } from "../store.ts";
import type { ResolvedOptions } from "./options.ts";

export type Row = Record<string, SQLOutputValue>;

/**
 * LIMIT with a bound value. A bare parameter after LIMIT becomes part of the plan, so that the engine replans on every
 * bind: 30 to 100 us for a statement that otherwise takes 1 us.
 */
export const AT_MOST = "LIMIT ? + 0";

/** Counted since the store was opened; see `StoreStats`. */
export interface WorkCount {
  batches: number;
  jobs: number;
  statements: number;
  bytesWritten: number;
  upkeepBytesMax: number;
}

/** A prepared statement that counts its runs. */
export class Statement {
  readonly #statement: StatementSync;
  readonly #work: WorkCount;

  constructor(statement: StatementSync, work: WorkCount) {
    this.#statement = statement;
    this.#work = work;
  }

  /** Runs it and returns the number of changed rows. */
  run(...values: SQLInputValue[]): number {
    this.#work.statements++;
    return Number(this.#statement.run(...values).changes);
  }

  get(...values: SQLInputValue[]): Row | undefined {
    this.#work.statements++;
    return this.#statement.get(...values);
  }

  all(...values: SQLInputValue[]): Row[] {
    this.#work.statements++;
    return this.#statement.all(...values);
  }
}

/**
 * A prepared statement for very many rows, or very frequent single ones. It returns arrays, which take two thirds of
 * the time of objects.
 */
export class ListStatement {
  readonly #statement: StatementSync;
  readonly #work: WorkCount;

  constructor(statement: StatementSync, work: WorkCount) {
    statement.setReturnArrays(true);
    this.#statement = statement;
    this.#work = work;
  }

  all(...values: SQLInputValue[]): readonly SQLOutputValue[][] {
    this.#work.statements++;
    return this.#statement.all(...values) as readonly object[] as readonly SQLOutputValue[][];
  }

  /** The only value of the only row. */
  value(): SQLOutputValue | undefined {
    this.#work.statements++;
    return (this.#statement.get() as object as readonly SQLOutputValue[] | undefined)?.[0];
  }
}

export class SqliteConnection {
  readonly work: WorkCount = { batches: 0, jobs: 0, statements: 0, bytesWritten: 0, upkeepBytesMax: 0 };
  readonly #database: DatabaseSync;
  readonly #byText = new Map<string, Statement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database.prepare(sql), this.work);
  }

  prepareLists(sql: string): ListStatement {
    return new ListStatement(this.#database.prepare(sql), this.work);
  }

  /** A statement whose text depends on the query; the caller keeps the number of shapes small. */
  cached(sql: string): Statement {
    const known = this.#byText.get(sql);
    if (known) return known;
    const statement = this.prepare(sql);
    this.#byText.set(sql, statement);
    return statement;
  }

  /** Runs a statement that is not prepared for later; returns the number of changed rows, or of those it returns. */
  runOnce(sql: string, values: readonly SQLInputValue[]): number {
    this.work.statements++;
    const statement = this.#database.prepare(sql);
    if (statement.columns().length > 0) return statement.all(...values).length;
    return Number(statement.run(...values).changes);
  }

  exec(sql: string): void {
    this.work.statements++;
    this.#database.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Rolls back an open transaction; the engine may have done so already. */
  rollback(): void {
    if (this.#database.isTransaction) this.exec("ROLLBACK");
  }

  close(): void {
    this.#database.close();
  }

  /**
   * Keeps the handle open until the process ends. Closing would copy the write-ahead log into the database, and after a
   * failed flush the log that this process reads may differ from the disk.
   */
  abandon(): void {
    abandoned.add(this.#database);
  }
}

const abandoned = new Set<DatabaseSync>();

export function openConnection(options: ResolvedOptions, readOnly: boolean): SqliteConnection {
  return new SqliteConnection(new DatabaseSync(options.path, { readOnly, timeout: 0 }));
}

/** Refuses an engine version that can lose committed writes. */
export function requireEngine(connection: SqliteConnection): void {
  const version = String(connection.prepare("SELECT sqlite_version() AS version").get()?.["version"]);
  if (compareVersions(version, SQLITE_VERSION_MIN) >= 0) return;
  throw new StoreError(
    "STORE_ENGINE_TOO_OLD",
    `This runtime has SQLite ${version}, which can lose committed writes; ${SQLITE_VERSION_MIN} or newer is needed. Update Node.js.`,
  );
}

export function compareVersions(a: string, b: string): number {
  const left = a.split(".").map(Number);
  const right = b.split(".").map(Number);
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Applies the settings and checks each of them. */
export function configure(connection: SqliteConnection, options: ResolvedOptions, readOnly: boolean): void {
  for (const [name, value] of settingsOf(options, readOnly)) {
    connection.exec(`PRAGMA ${name} = ${value}`);
    const found = readPragma(connection, name);
    if (found !== value) {
      throw new StoreError(
        "STORE_OPEN_FAILED",
        `SQLite did not take the setting ${name} = ${value}: it reads ${found}. Is ${options.path} on a file system with locks and shared memory?`,
      );
    }
  }
}

type Setting = readonly [name: string, value: string | number];

/** The settings of a connection, also for another thread. */
export function settingsOf({ durability, tuning }: ResolvedOptions, readOnly: boolean): Setting[] {
  const settings: Setting[] = [
    // A busy handler would block the event loop; `group-commit.ts` waits with a timer instead.
    ["busy_timeout", 0],
    // FULL flushes the log at every COMMIT; NORMAL leaves that to the operating system.
    ["synchronous", durability === "power" ? 2 : 1],
    // On macOS a plain flush stops at the drive's cache.
    ["fullfsync", durability === "power" ? 1 : 0],
    ["checkpoint_fullfsync", 1],
    // Of the user's tables; ours have none.
    ["foreign_keys", 1],
    // We copy the log ourselves, after callers were answered and where errors are visible: `checkpoints.ts`.
    ["wal_autocheckpoint", 0],
    ["journal_size_limit", 64 * 1_048_576],
    // A damaged page is reported when it is read.
    ["cell_size_check", 1],
    // SQL functions hidden in a foreign schema do not run.
    ["trusted_schema", 0],
    ["temp_store", 2],
    ["cache_size", -Math.ceil(tuning.cacheBytes / 1_024)],
    ["mmap_size", 0],
    ["recursive_triggers", 0],
  ];
  return readOnly ? settings : [["journal_mode", "wal"], ...settings];
}

export function readPragma(connection: SqliteConnection, name: string): string | number | undefined {
  const row = connection.prepare(`PRAGMA ${name}`).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === "string" || typeof value === "number" ? value : undefined;
}
