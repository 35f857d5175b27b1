/**
 * The outcome of an event after its handlers: the one place that decides between done, failed, retry and waiting, and
 * which deliveries the journal has to know. Pure. SPEC: J52-J55, J60, J75, J97, J98-J101, J105.
 *
 * Deliveries are written only where subscribers differ: an event that went well everywhere at its first attempt is
 * `done`, without delivery rows. Where one has failed, another is open (`retry` or `waiting`) if and only if the event
 * is not over. That tells an event that a process gave back or died with from a failed one that was put back by hand.
 *
 * Each delivery has its own next attempt. The row is due at the earliest of them. A declared consumer that does not run
 * here gets a `waiting` delivery, and the row waits for a process that runs it.
 */

import type { Claim, Delivery, Ending, Settlement } from "../store/journal.ts";
import { NONE } from "../store/small-list.ts";
import type { Missing } from "./event-run.ts";
import { DONE, type EventRun, type StepResult } from "./event-run.ts";

/** The settlement of a run, with the results it has and, where given, one more. */
export function settlementOf(run: EventRun, last?: StepResult): Settlement {
  const results = last === undefined ? run.results : [...run.results, last];
  const gone = goneOf(run);
  const missing = missingOf(run);
  const outcome = outcomeOf(run, results, gone, missing);
  const isFinal = outcome.kind === "done" || outcome.kind === "failed";
  const done = outcome.kind === "done" && !hasShares(run, results) ? [] : deliveriesOf(run, results);
  const further = isFinal ? gone : missing.map((one) => waitingOf(run, one)).filter(isGiven);
  const settlement = settle(run, outcome, further.length === 0 ? done : [...done, ...further]);
  // Only an end, and a wait for consumers, depends on the declared consumers.
  if (run.version === undefined || outcome.kind === "retry") return settlement;
  return { ...settlement, consumers: run.version };
}

/** A row for which no handler is called has failed, together with its pending retries. */
export function runFailure({ row: { id, deliveries }, lease, attempt }: Claim, error: string): Settlement {
  const due = deliveries.filter(({ status }) => status === "retry" || status === "waiting");
  return { id, lease, attempt, outcome: { kind: "failed", error }, deliveries: due.map(asFailed) };
}

/** The error of a delivery whose `onFailed` failed. */
export function onFailedText(error: string, problem: string): string {
  return `${error}; onFailed failed: ${problem}`;
}

/** Only the share of the present step, with its result; the row stays ours. */
export function shareOf(run: EventRun, result: StepResult = DONE): Settlement {
  const share = [deliveryOf(run, run.position, result)].filter(isGiven);
  const left = leftOf(run, run.position + 1, [...run.claim.deliveries, ...share]);
  return settle(run, { kind: "partial" }, [...share, ...left]);
}

/** Tells the journal that the handling of a suspect begins. */
export function beginningOf(run: EventRun): Settlement {
  return settle(run, { kind: "begun" }, []);
}

/** Tells the journal that a handler is left behind by a process that stops in good order. */
export function leavingOf(run: EventRun): Settlement {
  return settle(run, { kind: "left" }, []);
}

/**
 * Gives the row back as if it had not been claimed, but for the shares that are done and the next attempts of those
 * that failed.
 */
export function releaseOf(run: EventRun): Settlement {
  return settle(run, { kind: "release" }, unfinishedOf(run));
}

/** Gives the row back until later, for a reason that is not a failure. */
export function postponementOf(run: EventRun, atMs: number, reason: string): Settlement {
  return settle(run, { kind: "retry", atMs, error: reason }, unfinishedOf(run));
}

function settle(run: EventRun, outcome: Settlement["outcome"], deliveries: readonly Delivery[]): Settlement {
  const claim = { id: run.id, lease: run.lease, attempt: run.claim.attempt, outcome };
  return deliveries.length === 0 ? claim : { ...claim, deliveries };
}

const ALL_DONE: Settlement["outcome"] = { kind: "done" };
/** The end of an event that no consumer was owed. */
export const UNHEARD: Ending = { outcome: "unheard", reason: "no subscriber" };
const NOT_HEARD: Settlement["outcome"] = { kind: "done", ending: UNHEARD };
/** A command wants exactly one: an application that was changed may have none for it any more. */
const UNHANDLED: Settlement["outcome"] = { kind: "failed", error: "no capability handles it" };

function outcomeOf(
  run: EventRun,
  results: readonly StepResult[],
  gone: readonly Delivery[],
  missing: readonly Missing[],
): Settlement["outcome"] {
  // Only a bus of commands has no version of the consumer table.
  if (run.isUnheard) return run.version === undefined ? UNHANDLED : NOT_HEARD;
  const atMs = retryAtOf(run, results, missing);
  if (missing.length > 0) {
    const error = [errorsOf(run, results, gone), ...missing.map(waitText)].filter((line) => line !== "").join("\n");
    return atMs === undefined ? { kind: "waits", error } : { kind: "waits", atMs, error };
  }
  if (atMs !== undefined) return { kind: "retry", atMs, error: errorsOf(run, results, gone) };
  if (hasFailed(run, results, gone)) return { kind: "failed", error: errorsOf(run, results, gone) };
  const ending = endingOf(run, results, gone);
  return ending === undefined ? ALL_DONE : { kind: "done", ending };
}

function endingOf(run: EventRun, results: readonly StepResult[], gone: readonly Delivery[]): Ending | undefined {
  const reason = removedText(run, gone);
  if (reason !== undefined) return { outcome: "unheard", reason };
  // How a handler concluded it is the row's own only if it had one handler, as commands do.
  const [only, second] = results;
  return second === undefined && only?.kind === "done" ? only.ending : undefined;
}

function hasFailed(run: EventRun, results: readonly StepResult[], gone: readonly Delivery[]): boolean {
  if (gone.some(hasBeenTried)) return true;
  for (let at = 0; at < results.length; at++) {
    const result = results[at]!;
    if (result.kind === "failed" || failedBefore(run, at, result)) return true;
  }
  return run.claim.deliveries.length > 0 && run.missing.some((one) => run.earlierOf(one)?.status === "failed");
}

/** The earliest next attempt; undefined where there is none. */
function retryAtOf(run: EventRun, results: readonly StepResult[], missing: readonly Missing[]): number | undefined {
  let atMs: number | undefined;
  for (let at = 0; at < results.length; at++) {
    const result = results[at]!;
    if (result.kind === "retry" || result.kind === "postponed") atMs = Math.min(atMs ?? result.atMs, result.atMs);
  }
  for (const one of missing) {
    const dueAtMs = run.dueAtMs(one);
    if (dueAtMs !== undefined) atMs = Math.min(atMs ?? dueAtMs, dueAtMs);
  }
  return atMs;
}

function failedBefore(run: EventRun, at: number, result: StepResult): boolean {
  return result.kind === "skipped" && run.earlierOf(run.steps[at]!)?.status === "failed";
}

/** The errors of all handlers, one a line, each under its subscriber's name; those of removed subscribers come last. */
function errorsOf(run: EventRun, results: readonly StepResult[], gone: readonly Delivery[]): string {
  const lines = results.map((result, at) => {
    const { subscriber } = run.steps[at]!;
    if (result.kind === "failed" || result.kind === "retry") return `${subscriber}: ${result.error}`;
    const isTold = result.kind === "postponed" || failedBefore(run, at, result);
    return isTold ? `${subscriber}: ${run.earlierOf(run.steps[at]!)?.error ?? "failed"}` : "";
  });
  for (const { subscriber, error } of gone.filter(hasBeenTried)) lines.push(`${subscriber}: ${error ?? "failed"}`);
  for (const one of run.missing) {
    const earlier = run.earlierOf(one);
    if (earlier?.error !== undefined) lines.push(`${one.subscriber}: ${earlier.error}`);
  }
  return lines.filter((line) => line !== "").join("\n");
}

function hasShares(run: EventRun, results: readonly StepResult[]): boolean {
  return run.claim.deliveries.length > 0 || results.some((result) => result.kind === "recorded");
}

function deliveriesOf(run: EventRun, results: readonly StepResult[]): Delivery[] {
  return results.map((result, at) => deliveryOf(run, at, result)).filter(isGiven);
}

/** The deliveries of a run that is given back before its last step. */
function unfinishedOf(run: EventRun): Delivery[] {
  const deliveries = deliveriesOf(run, run.results);
  return [...deliveries, ...leftOf(run, run.position, [...run.claim.deliveries, ...deliveries])];
}

/**
 * The steps that are still open from one step on; named only after a failure, because other events need no distinction.
 */
function leftOf(run: EventRun, from: number, known: readonly Delivery[]): Delivery[] {
  if (!known.some(({ status }) => status === "failed")) return [];
  const isLeft = (one: { readonly subscriber: string }) => !run.isOver(one) && run.earlierOf(one) === undefined;
  const left = [...run.steps.slice(from), ...run.missing].filter(isLeft);
  return left.map(({ subscriber }) => ({ subscriber, status: "retry", attempts: 0 }));
}

// Consumers that do not run here
// -----------------------------------------------------------------------------------------

/** Declared consumers that are still owed the event. */
function missingOf(run: EventRun): readonly Missing[] {
  return run.missing.length === 0 ? NONE : run.missing.filter((one) => !run.isOver(one));
}

/** Undefined where the journal has it already: the wait itself, or a retry that is not due. */
function waitingOf(run: EventRun, one: Missing): Delivery | undefined {
  const { subscriber, awaits } = one;
  const earlier = run.earlierOf(one);
  if (earlier?.awaits === awaits || run.dueAtMs(one) !== undefined) return undefined;
  const { attempts = 0, error } = earlier ?? {};
  return { subscriber, status: "waiting", attempts, awaits, ...(error === undefined ? {} : { error }) };
}

function waitText({ awaits }: Missing): string {
  return `waits for ${awaits.replace(" ", " on ")}, which is not running`;
}

/** Open deliveries whose consumers are gone: a tried one has failed with the event, another one was removed. */
function goneOf({ claim: { deliveries }, steps, missing }: EventRun): readonly Delivery[] {
  if (deliveries.length === 0) return NONE;
  const isGone = ({ subscriber, status }: Delivery) =>
    status === "removing" ||
    (!steps.some((step) => step.subscriber === subscriber) && !missing.some((one) => one.subscriber === subscriber));
  return deliveries
    .filter((delivery) => delivery.status !== "done" && delivery.status !== "removed" && isGone(delivery))
    .map((delivery) => (isUntried(delivery) ? asRemoved(delivery) : asFailed(delivery)));
}

/** Says which consumers did not handle an event because they were removed. */
function removedText({ claim: { deliveries } }: EventRun, gone: readonly Delivery[]): string | undefined {
  if (deliveries.length === 0) return undefined;
  const removed = [...deliveries, ...gone].filter(({ status }) => status === "removed");
  if (removed.length === 0) return undefined;
  const names = removed.map(({ subscriber }) => subscriber).join(", ");
  return `not handled by ${names}: the consumer was removed`;
}

function asFailed({ awaits: _, nextAttemptAtMs: __, ...delivery }: Delivery): Delivery {
  return { ...delivery, status: "failed" };
}

function asRemoved(delivery: Delivery): Delivery {
  return { ...asFailed(delivery), status: "removed" };
}

/** Whether its consumer was removed before it could handle the event. */
function isUntried({ status }: Delivery): boolean {
  return status === "waiting" || status === "removing";
}

/**
 * Another was only named because a different one had failed (`leftOf`): that its subscriber is gone is not a failure.
 */
function hasBeenTried({ attempts, status }: Delivery): boolean {
  return attempts > 0 && status === "failed";
}

function deliveryOf(run: EventRun, at: number, result: StepResult): Delivery | undefined {
  const step = run.steps[at]!;
  const { subscriber } = step;
  const attempts = run.attemptOf(step);
  switch (result.kind) {
    case "done":
      return { subscriber, status: "done", attempts };
    case "failed":
      return { subscriber, status: "failed", attempts, error: result.error };
    case "retry":
      return { subscriber, status: "retry", attempts, error: result.error, nextAttemptAtMs: result.atMs };
    case "recorded":
    case "skipped":
    case "postponed":
      return undefined;
  }
}

function isGiven<T>(value: T | undefined): value is T {
  return value !== undefined;
}
