/**
 * What an event comes to when its handlers have run: the one place that decides between done, failed and retry, and which
 * deliveries the journal has to know of. Pure. SPEC: J52-J55, J60, J75, J97.
 *
 * Deliveries are written only where subscribers differ: an event that went well everywhere at its first attempt is `done`,
 * and that says it all. Where one has failed, another is `retry` if and only if the event is not over: that tells one that a process
 * gave back or died with from one that was failed and put back by hand.
 *
 * What a subscriber has failed at does not go well by his leaving: with him gone, nobody will try it again, and the event has failed.
 */
import { NONE } from "../store/few.ts";
import type { Claim, Delivery, Ending, Settlement } from "../store/journal.ts";
import { DONE, type EventRun, type StepResult } from "./event-run.ts";

/** The settlement of a run, with the results it has and, where given, one more. */
export function settlementOf(run: EventRun, last?: StepResult): Settlement {
  const results = last === undefined ? run.results : [...run.results, last];
  const givenUp = givenUpBy(run);
  const outcome = outcomeOf(run, results, givenUp);
  const deliveries = outcome.kind === "done" && !hasShares(run, results) ? [] : deliveriesOf(run, results);
  return settle(run, outcome, outcome.kind === "failed" ? [...deliveries, ...givenUp] : deliveries);
}

/** A row that no handler is called for has failed, and with it what was to be tried again. */
export function failureOf({ row: { id, deliveries }, lease, attempt }: Claim, error: string): Settlement {
  const due = deliveries.filter(({ status }) => status === "retry");
  return { id, lease, attempt, outcome: { kind: "failed", error }, deliveries: due.map(asFailed) };
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

/** Tells the journal that a handler is left behind by a process that stops in good order. */
export function leavingOf(run: EventRun): Settlement {
  return settle(run, { kind: "left" }, []);
}

/** Gives the row back as if it had not been claimed, but for the shares that are done, and not before one that failed is to be tried again. */
export function releaseOf(run: EventRun): Settlement {
  const atMs = retryAtOf(run.results);
  if (atMs !== undefined) return postponementOf(run, atMs, errorsOf(run, run.results, NONE));
  return settle(run, { kind: "release" }, unfinishedOf(run));
}

/** Gives the row back until later, for a reason that is nobody's failure. */
export function postponementOf(run: EventRun, fromMs: number, reason: string): Settlement {
  const atMs = Math.max(fromMs, retryAtOf(run.results) ?? 0);
  return settle(run, { kind: "retry", atMs, error: reason }, unfinishedOf(run));
}

function settle(run: EventRun, outcome: Settlement["outcome"], deliveries: readonly Delivery[]): Settlement {
  const claim = { id: run.id, lease: run.lease, attempt: run.claim.attempt, outcome };
  return deliveries.length === 0 ? claim : { ...claim, deliveries };
}

const ALL_DONE: Settlement["outcome"] = { kind: "done" };
/** The end of an event without a subscriber. */
export const UNHEARD: Ending = { outcome: "unheard", reason: "no subscriber" };
const NOT_HEARD: Settlement["outcome"] = { kind: "done", ending: UNHEARD };
/** A command wants exactly one: an application that was changed may have none for it any more. */
const UNHANDLED: Settlement["outcome"] = { kind: "failed", error: "nobody handles it" };

function outcomeOf(run: EventRun, results: readonly StepResult[], givenUp: readonly Delivery[]): Settlement["outcome"] {
  if (run.isUnheard) return run.event.message.kind === "command" ? UNHANDLED : NOT_HEARD;
  const atMs = retryAtOf(results);
  if (atMs !== undefined) return { kind: "retry", atMs, error: errorsOf(run, results, givenUp) };
  let failed = givenUp.some(hasBeenTried);
  for (let at = 0; at < results.length; at++) {
    const result = results[at]!;
    if (result.kind === "failed" || failedBefore(run, at, result)) failed = true;
  }
  if (failed) return { kind: "failed", error: errorsOf(run, results, givenUp) };
  // How it ended is the row's own only if it had one handler, as commands do.
  const [only, second] = results;
  const ending = second === undefined && only?.kind === "done" ? only.ending : undefined;
  return ending === undefined ? ALL_DONE : { kind: "done", ending };
}

/** Not before any of its subscribers wants it again; undefined where none does. */
function retryAtOf(results: readonly StepResult[]): number | undefined {
  let atMs: number | undefined;
  for (let at = 0; at < results.length; at++) {
    const result = results[at]!;
    if (result.kind === "retry") atMs = Math.max(atMs ?? 0, result.atMs);
  }
  return atMs;
}

function failedBefore(run: EventRun, at: number, result: StepResult): boolean {
  return result.kind === "skipped" && run.earlierOf(run.steps[at]!)?.status === "failed";
}

/** Every handler's error, one a line, each under its subscriber's name; at last those of subscribers who are gone. */
function errorsOf(run: EventRun, results: readonly StepResult[], givenUp: readonly Delivery[]): string {
  const lines = results.map((result, at) => {
    const { subscriber } = run.steps[at]!;
    if (result.kind === "failed" || result.kind === "retry") return `${subscriber}: ${result.error}`;
    return failedBefore(run, at, result) ? `${subscriber}: ${run.earlierOf(run.steps[at]!)?.error ?? "failed"}` : "";
  });
  for (const { subscriber, error } of givenUp.filter(hasBeenTried)) lines.push(`${subscriber}: ${error ?? "failed"}`);
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

/** What subscribers who are gone have not done: with the event it has failed. */
function givenUpBy({ claim: { deliveries }, steps }: EventRun): readonly Delivery[] {
  if (deliveries.length === 0) return NONE;
  const isGone = ({ subscriber }: Delivery) => !steps.some((step) => step.subscriber === subscriber);
  return deliveries.filter((delivery) => delivery.status !== "done" && isGone(delivery)).map(asFailed);
}

function asFailed(delivery: Delivery): Delivery {
  return { ...delivery, status: "failed" };
}

/** Another was only named because somebody else had failed (`leftOf`): that its subscriber is gone is nobody's failure. */
function hasBeenTried({ attempts }: Delivery): boolean {
  return attempts > 0;
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
