/**
 * Leases: which holders may keep journal rows, and until when. A lease is a row until it ends (closed, or expired and
 * found by `recover`). Its number is never reused, so it is also the fencing token (`lease-number.ts`). SPEC: J20-J22.
 *
 * `recover` also ends the lease of a provably dead process (`process-identity.ts`), so that the next start need not
 * wait for the expiry. The column `holder` identifies the process, `running` lists its consumers.
 */
import type { Host } from "../../host/host.ts";
import { nextLease } from "../lease-number.ts";
import type { Lease } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { isProvablyDead, ownIdentity } from "./process-identity.ts";

export class LeaseTable {
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = {
      open: connection.prepare("INSERT INTO lease (id, expires_at_ms, holder, running) VALUES (?, ?, ?, ?)"),
      last: connection.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'lease'"),
      renew: connection.prepare("UPDATE lease SET expires_at_ms = ? WHERE id = ?"),
      isLive: connection.prepare("SELECT 1 FROM lease WHERE id = ? AND expires_at_ms > ?"),
      end: connection.prepare("DELETE FROM lease WHERE id = ?"),
      endExpired: connection.prepare("DELETE FROM lease WHERE expires_at_ms <= ?"),
      holders: connection.prepare("SELECT id, holder FROM lease WHERE holder IS NOT NULL"),
      run: connection.prepare("UPDATE lease SET running = ? WHERE id = ?"),
      running: connection.prepare(
        "SELECT id, running FROM lease WHERE running IS NOT NULL AND expires_at_ms > ? ORDER BY id",
      ),
    };
  }

  open(host: Host, durationMs: number, running?: readonly string[]): Lease {
    const expiresAtMs = host.now() + durationMs;
    const lease = nextLease(Number(this.#sql.last.get()?.["seq"] ?? 0), host);
    this.#sql.open.run(lease, expiresAtMs, ownIdentity() ?? null, running ? JSON.stringify(running) : null);
    return { lease, expiresAtMs };
  }

  /** Sets the consumers that run under a lease; replaces the earlier set. */
  run(lease: number, keys: readonly string[]): void {
    this.#sql.run.run(JSON.stringify(keys), lease);
  }

  /** Live leases with the consumers that run under them. */
  running(nowMs: number): { readonly lease: number; readonly keys: ReadonlySet<string> }[] {
    return this.#sql.running.all(nowMs).map(({ id, running }) => {
      return { lease: Number(id), keys: new Set(JSON.parse(String(running)) as string[]) };
    });
  }

  /** False if the lease has ended. An expired lease that was not recovered yet becomes live again. */
  renew(lease: number, nowMs: number, durationMs: number): boolean {
    return this.#sql.renew.run(nowMs + durationMs, lease) > 0;
  }

  isLive(lease: number, nowMs: number): boolean {
    return this.#sql.isLive.get(lease, nowMs) !== undefined;
  }

  end(lease: number): void {
    this.#sql.end.run(lease);
  }

  /** Ends every lease that is expired or whose process is dead. */
  endDead(nowMs: number): void {
    this.#sql.endExpired.run(nowMs);
    for (const { id, holder } of this.#sql.holders.all()) {
      if (isProvablyDead(String(holder))) this.end(Number(id));
    }
  }
}
