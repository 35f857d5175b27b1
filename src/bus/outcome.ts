/**
 * What an event comes to when its handlers have run: the one place that decides between done, failed and retry, and which
 * deliveries the journal has to know of. Pure. SPEC: J52-J55, J60, J75.
 *
 * Deliveries are written only where subscribers differ: an event that went well everywhere at its first attempt is `done`,
 * and that says it all. Where one has failed, another is `retry` if and only if the event is not over: that tells one that a process
 * gave back or died with from one that was failed and put back by hand.
 */
import type { Delivery, Settlement } from "../store/journal.ts";
import { DONE, type EventRun, type StepResult } from "./event-run.ts";

/** The settlement of a run, with the results it has and, where given, one more. */
export function settlementOf(run: EventRun, last?: StepResult): Settlement {
  const results = last === undefined ? run.results : [...run.results, last];
  const outcome = outcomeOf(run, results);
  const deliveries = outcome.kind === "done" && !hasShares(run, results) ? [] : deliveriesOf(run, results);
  return settle(run, outcome, outcome.kind === "failed" ? [...deliveries, ...givenUpBy(run, results)] : deliveries);
}

/** Only the share of the present step, as done; the row stays ours. */
export function shareOf(run: EventRun): Settlement {
  const share = [deliveryOf(run, run.position, DONE)].filter(isGiven);
  return settle(run, { kind: "partial" }, [...share, ...leftOf(run, run.position + 1, run.claim.deliveries)]);
}

/** Tells the journal that the handling of a suspect begins. */
export function beginningOf(run: EventRun): Settlement {
  return settle(run, { kind: "begun" }, []);
}

/** Gives the row back as if it had not been claimed, but for the shares that are done. */
export function releaseOf(run: EventRun): Settlement {
  return settle(run, { kind: "release" }, unfinishedOf(run));
}

/** Gives the row back until later, for a reason that is nobody's failure. */
export function postponementOf(run: EventRun, atMs: number, reason: string): Settlement {
  return settle(run, { kind: "retry", atMs, error: reason }, unfinishedOf(run));
}

function settle(run: EventRun, outcome: Settlement["outcome"], deliveries: readonly Delivery[]): Settlement {
  const claim = { id: run.id, lease: run.lease, attempt: run.claim.attempt, outcome };
  return deliveries.length === 0 ? claim : { ...claim, deliveries };
}

const ALL_DONE: Settlement["outcome"] = { kind: "done" };
/** Why an event is done that nobody has handled. */
export const NO_SUBSCRIBER = "no subscriber";
const NOBODY: Settlement["outcome"] = { kind: "done", note: NO_SUBSCRIBER };
/** A command wants exactly one: an application that was changed may have none for it any more. */
const UNHANDLED: Settlement["outcome"] = { kind: "failed", error: "nobody handles it" };

function outcomeOf(run: EventRun, results: readonly StepResult[]): Settlement["outcome"] {
  if (run.steps.length === 0) return run.event.message.kind === "command" ? UNHANDLED : NOBODY;
  let retryAtMs: number | undefined;
  let failed = false;
  for (let at = 0; at < results.length; at++) {
    const result = results[at]!;
    // Not before any of its subscribers wants it again.
    if (result.kind === "retry") retryAtMs = Math.max(retryAtMs ?? 0, result.atMs);
    if (result.kind === "failed" || failedBefore(run, at, result)) failed = true;
  }
  if (retryAtMs !== undefined) return { kind: "retry", atMs: retryAtMs, error: errorsOf(run, results) };
  return failed ? { kind: "failed", error: errorsOf(run, results) } : ALL_DONE;
}

function failedBefore(run: EventRun, at: number, result: StepResult): boolean {
  return result.kind === "skipped" && run.earlierOf(run.steps[at]!)?.status === "failed";
}

/** Every handler's error, one a line, each under its subscriber's name. */
function errorsOf(run: EventRun, results: readonly StepResult[]): string {
  const lines = results.map((result, at) => {
    const { subscriber } = run.steps[at]!;
    if (result.kind === "failed" || result.kind === "retry") return `${subscriber}: ${result.error}`;
    return failedBefore(run, at, result) ? `${subscriber}: ${run.earlierOf(run.steps[at]!)?.error ?? "failed"}` : "";
  });
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

/** What is still to be done from a step on; named only where something has failed, since nothing else needs to be told apart. */
function leftOf(run: EventRun, from: number, known: readonly Delivery[]): Delivery[] {
  if (!known.some(({ status }) => status === "failed")) return [];
  const left = run.steps.slice(from).filter((step) => !run.isOver(step) && run.earlierOf(step)?.status !== "retry");
  return left.map(({ subscriber }) => ({ subscriber, status: "retry", attempts: 0 }));
}

/** Tries that were due to subscribers who are gone: with the event they have failed. */
function givenUpBy(run: EventRun, results: readonly StepResult[]): Delivery[] {
  const isGone = ({ subscriber }: Delivery) => {
    const at = run.steps.findIndex((step) => step.subscriber === subscriber);
    return at < 0 || results[at]?.kind === "skipped";
  };
  const due = run.claim.deliveries.filter((delivery) => delivery.status === "retry" && isGone(delivery));
  return due.map((delivery) => ({ ...delivery, status: "failed" }));
}

function deliveryOf(run: EventRun, at: number, result: StepResult): Delivery | undefined {
  const step = run.steps[at]!;
  const { subscriber } = step;
  const attempts = run.attemptOf(step);
  switch (result.kind) {
    case "done":
      return { subscriber, status: "done", attempts };
    case "failed":
    case "retry":
      return { subscriber, status: result.kind, attempts, error: result.error };
    case "recorded":
    case "skipped":
      return undefined;
  }
}

function isGiven<T>(value: T | undefined): value is T {
  return value !== undefined;
}
