/**
 * Running synchronous code as one commit until it is durable: a stale one is run again after catching up, within a time window
 * and with growing, jittered pauses; any other rejection is the caller's to know.
 */
import type { Host } from "../host/host.ts";
import { TRANSACT_PAUSE_MS, TRANSACT_WINDOW_MS } from "../limits.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { type Rejection, retryRule } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";

export interface TransactOptions {
  /** Subscribers of this group are not told: they made the change themselves. */
  readonly changeGroup?: string;
  /** How long a stale transaction is run again; default 10 s. */
  readonly windowMs?: number;
}

/** A transaction that did not last, with the class and reason of the rejection. */
export class TransactionError extends Error {
  override readonly name = "TransactionError";
  readonly code = "TRANSACTION_REJECTED";
  readonly rejection: Rejection;

  constructor(rejection: Rejection, attempts: number) {
    super(`the transaction did not last after ${attempts} ${attempts === 1 ? "try" : "tries"}: ${rejection.message}`);
    this.rejection = rejection;
  }
}

export async function transact<T>(
  host: Host,
  scheduler: Scheduler,
  replica: Replica,
  code: () => T,
  { changeGroup, windowMs = TRANSACT_WINDOW_MS }: TransactOptions,
): Promise<T> {
  const until = host.monotonic() + windowMs;
  for (let attempt = 1; ; attempt++) {
    const { result, commit } = scheduler.transact(replica, code, changeGroup);
    const outcome = await commit?.outcome;
    if (outcome === undefined || outcome.kind === "committed") return result;
    if (retryRule(outcome) !== "run-again" || host.monotonic() >= until) throw new TransactionError(outcome, attempt);
    await replica.catchUp();
    // What it read before it was here is here when it runs again.
    await replica.loadsSettled();
    await pause(host, TRANSACT_PAUSE_MS * Math.min(attempt, 10) * host.random());
  }
}

function pause(host: Host, ms: number): Promise<void> {
  return new Promise((resolve) => {
    host.timer(ms, resolve);
  });
}
