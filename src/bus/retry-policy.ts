/**
 * When a delivery that failed is tried again (ADR 004 §6: never, unless its subscription asks for it). SPEC: J60, J61.
 *
 * Waits grow by doubling up to a bound, and each is drawn between half of it and the whole: many deliveries that failed
 * together do not come back together.
 */
import type { Host } from "../host/host.ts";
import { RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_START_MS, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { show } from "../message/problem.ts";
import { BusError } from "./bus-error.ts";

export interface RetryPolicy {
  /** How often a delivery is tried in all; 1 is no retry. */
  readonly attempts: number;
  readonly backoff?: Backoff;
  /**
   * Whether what a handler has thrown is worth another try; everything is unless given. It is given undefined where nothing was thrown: the handler
   * took too long, or its transaction could not be committed. If it throws itself, the delivery is not tried again.
   */
  readonly when?: (thrown: unknown) => boolean;
}

export interface Backoff {
  /** The wait after the first failure. */
  readonly startMs?: number;
  /** What each further wait is multiplied by; 2 unless given, 1 for equal waits. */
  readonly factor?: number;
  /** No wait is longer. */
  readonly maxMs?: number;
}

export const NO_RETRY: RetryPolicy = { attempts: 1 };

/** Whether a policy wants what was thrown tried again; where it could not say, what it threw. */
export function worthRetrying({ when }: RetryPolicy, thrown: unknown): "yes" | "no" | { readonly thrown: unknown } {
  try {
    return when === undefined || when(thrown) ? "yes" : "no";
  } catch (mistake) {
    return { thrown: mistake };
  }
}

/** How long to wait after the given attempt has failed, or undefined when it was the last. */
export function retryDelayMs(policy: RetryPolicy, attempt: number, host: Pick<Host, "random">): number | undefined {
  if (attempt >= policy.attempts) return undefined;
  const { startMs = RETRY_BACKOFF_START_MS, factor = 2, maxMs = RETRY_BACKOFF_MAX_MS } = policy.backoff ?? {};
  // The power may be infinite: nothing times that is no number. And no time may be set that is further away than a timer reaches.
  const waitMs = startMs === 0 ? 0 : Math.min(startMs * factor ** (attempt - 1), maxMs, TIMER_DELAY_MS_MAX);
  return Math.ceil(waitMs * (0.5 + host.random() / 2));
}

export function checkRetryPolicy({ attempts, backoff = {} }: RetryPolicy): void {
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw misuse(`retry.attempts is how often a delivery is tried in all, at least 1; got ${show(attempts)}`);
  }
  const { startMs = 0, factor = 1, maxMs = 0 } = backoff;
  if (!(startMs >= 0 && maxMs >= 0 && factor >= 1) || ![startMs, factor, maxMs].every(Number.isFinite)) {
    throw misuse("retry.backoff takes startMs and maxMs of at least 0 and a factor of at least 1");
  }
}

function misuse(message: string): BusError {
  return new BusError("BUS_MISUSE", message);
}
