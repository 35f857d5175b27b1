/**
 * The verdict on each rejection of a commit: one table for every entry point. SPEC: U16-U28.
 *
 * | rejection                                        | verdict |
 * |--------------------------------------------------|---------|
 * | unknown                                          | ask: the store is asked for the commit |
 * | stale, fell-with                                 | again, when the replica has caught up |
 * | failed (busy, full)                              | again, with growing pauses |
 * | document-exists, message-exists                  | already: the receipt has the result |
 * | lease-lost, origin-not-committed, store-stopped  | lost: this process may not decide any more |
 * | refused, too-old, other permanent                | failed |
 */
import { backoffMs } from "../host/backoff.ts";
import type { Host } from "../host/host.ts";
import { STALE_BACKOFF_MAX_MS, STALE_BACKOFF_START_MS } from "../limits.ts";
import type { Rejection, RejectionReason } from "../store/rejection.ts";

export type Verdict = "again" | "ask" | "already" | "lost" | "failed";

const BY_REASON: Partial<Record<RejectionReason, Verdict>> = {
  "fell-with": "again",
  "document-exists": "already",
  "message-exists": "already",
  "lease-lost": "lost",
  "origin-not-committed": "lost",
  "store-stopped": "lost",
};

export function verdictOn({ class: rejectionClass, reason }: Rejection): Verdict {
  // Also of a commit that fell with one beneath it: both may be in the store.
  if (rejectionClass === "unknown") return "ask";
  const verdict = BY_REASON[reason];
  if (verdict !== undefined) return verdict;
  return rejectionClass === "stale" || rejectionClass === "failed" ? "again" : "failed";
}

/**
 * A random pause before a run, so that two conflicting runs do not meet again. Its bound doubles with each run, from 1
 * on.
 */
export function stalePauseMs(host: Host, runs: number): number {
  return host.random() * backoffMs(runs, { startMs: STALE_BACKOFF_START_MS, maxMs: STALE_BACKOFF_MAX_MS });
}
