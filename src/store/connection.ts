/**
 * Whether a store reaches its data, and which history the data have. SPEC: S231-S239.
 *
 *   connected ──the server cannot be reached──> away ──reached──> replaying ──the batch in flight is answered──> connected
 *
 * An embedded store is always connected. While a store is away or replaying, its writes are parked; claims and leases
 * are refused (`STORE_AWAY`), because their answers would be too old.
 *
 * The history is an id of the data. Data that have lost acknowledged writes (a backup that was restored, a standby that
 * lacked the end of the log) continue under another id, because sequences and numbers are given a second time.
 */

export type ConnectionState = "connected" | "away" | "replaying";

export interface StoreConnection {
  readonly state: ConnectionState;
  readonly history: string;
  /** Since when the store is not connected, by the host's clock. Absent while connected. */
  readonly sinceMs?: number;
  /** Why it is not connected, in one sentence. */
  readonly reason?: string;
  /** Writes that wait for the server; 0 while connected. */
  readonly parked: number;
}
