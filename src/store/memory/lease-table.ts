/**
 * Leases in memory: which holders may keep journal rows, and until when. A lease is open, then ended (closed, or
 * expired and found by `recover`); an open one is live until its expiry. Numbers only increase, so the number is also
 * the fencing token. SPEC: J20-J22.
 */
import type { Host } from "../../host/host.ts";
import { nextLease } from "../lease-number.ts";
import type { Lease } from "../store.ts";

export class LeaseTable {
  /** The last assigned number. */
  #lastLease = 0;
  /** Open leases by number. */
  readonly #expiresAtMs = new Map<number, number>();
  /** Keys of the consumers that run under each. */
  readonly #running = new Map<number, ReadonlySet<string>>();

  open(host: Host, durationMs: number, running: readonly string[] = []): Lease {
    const nowMs = host.now();
    const lease = nextLease(this.#lastLease, host);
    this.#lastLease = lease;
    const expiresAtMs = nowMs + durationMs;
    this.#expiresAtMs.set(lease, expiresAtMs);
    this.run(lease, running);
    return { lease, expiresAtMs };
  }

  /** Sets the consumers that run under a lease; replaces the earlier set. */
  run(lease: number, keys: readonly string[]): void {
    if (this.#expiresAtMs.has(lease)) this.#running.set(lease, new Set(keys));
  }

  /** Live leases under which a consumer runs. */
  running(key: string, nowMs: number): number[] {
    return [...this.#running].filter(([lease, keys]) => keys.has(key) && this.isLive(lease, nowMs)).map(([one]) => one);
  }

  /** False if the lease has ended. An expired lease that was not recovered yet becomes live again. */
  renew(lease: number, nowMs: number, durationMs: number): boolean {
    if (!this.#expiresAtMs.has(lease)) return false;
    this.#expiresAtMs.set(lease, nowMs + durationMs);
    return true;
  }

  isLive(lease: number, nowMs: number): boolean {
    const expiresAtMs = this.#expiresAtMs.get(lease);
    return expiresAtMs !== undefined && nowMs < expiresAtMs;
  }

  end(lease: number): void {
    this.#expiresAtMs.delete(lease);
    this.#running.delete(lease);
  }

  endExpired(nowMs: number): void {
    for (const lease of this.#expiresAtMs.keys()) if (!this.isLive(lease, nowMs)) this.end(lease);
  }
}
