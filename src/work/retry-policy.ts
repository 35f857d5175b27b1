/**
 * When an invocation that failed is tried again: never, unless its handler asks for it. The same policy at every entry
 * point. SPEC: U100-U102, J60, J61.
 */
import { backoffMs, jittered } from "../host/backoff.ts";
import type { Host } from "../host/host.ts";
import { RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_START_MS, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";

/** How often and when a failed handler is tried again. */
export interface RetryPolicy {
  /** How often an invocation is tried in all; 1 is no retry. */
  readonly attempts: number;
  readonly backoff?: Backoff;
  /**
   * Whether the thrown value is tried again; every failure is unless given. Undefined stands for a timeout, or a
   * transaction that could not be committed. If `when` throws, the invocation is not tried again.
   */
  readonly when?: (thrown: unknown) => boolean;
}

/** The waits between attempts. */
export interface Backoff {
  /** The wait after the first failure. */
  readonly startMs?: number;
  /** The factor of each further wait; 2 unless given, 1 for equal waits. */
  readonly factor?: number;
  /** No wait is longer. */
  readonly maxMs?: number;
}

/** A policy, or a number: so many attempts in all. */
export type Retry = number | RetryPolicy;

export const NO_RETRY: RetryPolicy = { attempts: 1 };

export function retryPolicyOf(retry: Retry | undefined): RetryPolicy {
  if (retry === undefined) return NO_RETRY;
  return typeof retry === "number" ? { attempts: retry } : retry;
}

/** Whether a policy wants another try after the thrown value; if `when` threw, the thrown value. */
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
  // No wait may be longer than a timer reaches.
  const waitMs = backoffMs(attempt, { startMs, factor, maxMs: Math.min(maxMs, TIMER_DELAY_MS_MAX) });
  return Math.ceil(jittered(waitMs, host));
}

const KNOWN: Readonly<Record<keyof RetryPolicy, true>> = { attempts: true, backoff: true, when: true };
const KNOWN_OF_BACKOFF: Readonly<Record<keyof Backoff, true>> = { startMs: true, factor: true, maxMs: true };

/** The first mistake in a policy, as a sentence. */
export function retryProblem(retry: unknown): string | undefined {
  if (typeof retry !== "number" && (typeof retry !== "object" || retry === null))
    return `retry is a number of attempts in all, or { attempts, backoff, when }; got ${show(retry)}`;
  const { attempts, backoff = {}, when } = retryPolicyOf(retry as Retry);
  if (!Number.isSafeInteger(attempts) || attempts < 1)
    return `retry.attempts is how often a handler is tried in all, at least 1; got ${show(attempts)}`;
  if (when !== undefined && typeof when !== "function")
    return `retry.when is a function of the thrown value, got ${show(when)}`;
  if (typeof backoff !== "object" || backoff === null)
    return `retry.backoff is { startMs, factor, maxMs }, got ${show(backoff)}`;
  const unknown =
    (typeof retry === "number" ? undefined : unknownOption(retry, KNOWN)) ?? unknownOption(backoff, KNOWN_OF_BACKOFF);
  if (unknown !== undefined) return `retry: ${unknown}`;
  const { startMs = 0, factor = 1, maxMs = 0 } = backoff;
  if (!(startMs >= 0 && maxMs >= 0 && factor >= 1) || ![startMs, factor, maxMs].every(Number.isFinite))
    return "retry.backoff takes startMs and maxMs of at least 0 and a factor of at least 1";
  return undefined;
}
