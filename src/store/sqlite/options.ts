/** Options of the SQLite store, with their defaults. */

import type { Host } from "../../host/host.ts";
import { systemHost } from "../../host/system-host.ts";
import { CHANGES_KEPT_MAX, COMMITS_REMEMBERED_MAX, PAYLOAD_BYTES_MAX } from "../../limits.ts";
import { checkPayloadBound } from "../request-check.ts";
import { StoreError } from "../store.ts";

export interface SqliteStoreOptions {
  /** The database file. Made if it is not there, with its directory; both readable by their owner only. */
  readonly path: string;
  /**
   * What an acknowledged write survives: `"power"` (default) a power failure, `"process"` only the end of the process, at
   * a fraction of the cost.
   */
  readonly durability?: "power" | "process";
  /** Time, chance and tasks. Default: those of the runtime. */
  readonly host?: Host;
  /** Opens an existing file for reading only: every write fails, nothing is created. */
  readonly readOnly?: boolean;
  readonly tuning?: Partial<SqliteTuning>;
}

/** Bounds of the writer. The defaults hold the event loop for at most about 20 ms. */
export interface SqliteTuning {
  /** A batch takes no further job after this much work. */
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
   * Whether a thread of its own copies it, which is started when the log is that long for the first time. Otherwise, and where no thread can be
   * had, it is copied between two batches, and the event loop waits for it.
   */
  readonly checkpointThread: boolean;
  /** Page cache of the one connection. */
  readonly cacheBytes: number;
  /** Bytes of one message's data in the journal; a larger one is refused. At most 1 MiB. */
  readonly payloadBytesMax: number;
  /** How many commits of a space its change feed can go back. */
  readonly feedCommits: number;
  /** How many commits are remembered for the replay check and `originCommitted`, over all spaces. */
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
