/** Options of the SQLite store, with their defaults. */

import type { Host } from "../../host/host.ts";
import { systemHost } from "../../host/system-host.ts";
import { CHANGES_KEPT_MAX, COMMITS_REMEMBERED_MAX, PAYLOAD_BYTES_MAX } from "../../limits.ts";
import { checkPayloadBound } from "../request-check.ts";
import { StoreError } from "../store.ts";

/** Options of `openSqliteStore`. */
export interface SqliteStoreOptions {
  /** The database file. It and its directory are created if missing, readable only by their owner. */
  readonly path: string;
  /**
   * The failures that an acknowledged write survives: `"power"` (default) a power failure, `"process"` only the end of
   * the process, at a fraction of the cost.
   */
  readonly durability?: "power" | "process";
  /** Clock, randomness and tasks. Default: those of the runtime. */
  readonly host?: Host;
  /** Opens an existing file for reading only: every write fails, and no file is created. */
  readonly readOnly?: boolean;
  readonly tuning?: Partial<SqliteTuning>;
}

/** Limits of the writer. The defaults block the event loop for at most about 20 ms. */
export interface SqliteTuning {
  /** A batch takes no further job after this time. */
  readonly batchMs: number;
  readonly batchJobsMax: number;
  readonly batchBytesMax: number;
  /** Beyond these, a write is refused with `store-busy` instead of queued. */
  readonly queueJobsMax: number;
  readonly queueBytesMax: number;
  /** How long a write waits for the lock of another process before it fails with `store-busy`. */
  readonly lockWaitMs: number;
  /** Pages of the write-ahead log after which it is copied into the database file. */
  readonly checkpointPages: number;
  /**
   * Whether a thread copies the log, started when the log is long for the first time. Otherwise, or if no thread is
   * available, it is copied between two batches and blocks the event loop.
   */
  readonly checkpointThread: boolean;
  /** Page cache of the one connection. */
  readonly cacheBytes: number;
  /** Limit of bytes of one journal message's data; larger ones are refused. At most 1 MiB. */
  readonly payloadBytesMax: number;
  /** How many commits of a space the change feed reaches back. */
  readonly feedCommits: number;
  /** How many commits are kept for the replay check and `originCommitted`, over all spaces. */
  readonly commitsRemembered: number;
}

export const DEFAULT_TUNING: SqliteTuning = {
  batchMs: 10,
  batchJobsMax: 4_096,
  batchBytesMax: 4 * 1_048_576,
  queueJobsMax: 100_000,
  queueBytesMax: 64 * 1_048_576,
  lockWaitMs: 5_000,
  checkpointPages: 1_000,
  checkpointThread: true,
  cacheBytes: 16 * 1_048_576,
  payloadBytesMax: PAYLOAD_BYTES_MAX,
  feedCommits: CHANGES_KEPT_MAX,
  commitsRemembered: COMMITS_REMEMBERED_MAX,
};

export interface ResolvedOptions {
  readonly path: string;
  readonly durability: "power" | "process";
  readonly host: Host;
  readonly readOnly: boolean;
  readonly tuning: SqliteTuning;
}

export function resolveOptions(options: SqliteStoreOptions): ResolvedOptions {
  const { path, durability = "power", readOnly = false } = options;
  if (typeof path !== "string" || path === "" || path === ":memory:" || path.includes("\0")) {
    throw new StoreError(
      "STORE_MISUSE",
      `A SQLite store needs the path of a file, not ${JSON.stringify(path)}. For a store without a file use the memory store.`,
    );
  }
  if (durability !== "power" && durability !== "process") {
    throw new StoreError("STORE_MISUSE", `durability is "power" or "process", not ${JSON.stringify(durability)}.`);
  }
  const tuning = { ...DEFAULT_TUNING, ...options.tuning };
  checkPayloadBound(tuning.payloadBytesMax);
  return { path, durability, readOnly, host: options.host ?? systemHost(), tuning };
}
