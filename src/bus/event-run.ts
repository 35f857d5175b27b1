/**
 * One claimed event on its way through its handlers: the record that the dispatcher, the gates and the settle queue
 * pass to each other. SPEC: J50-J55.
 *
 * ```
 *   waiting ──its turn──> running ──last handler done──> settling ──durable──> over
 *      ^                     │                              │
 *      │                 a gate is closed                   └─claim lost, bus stopped──> over
 *      │                     v
 *      └──that gate──── at-order, at-slot
 *           opens
 * ```
 * A run is parked at one of two gates: the order of its serial key, or the slots of its subscription. Only that one
 * lets it go on. In every state but `over` the process holds the event's claim, as far as it knows.
 */

import type { Delivery, Ending } from "../store/journal.ts";
import { NONE, withOne } from "../store/small-list.ts";
import type { Cancellable } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { type Event, type EventFacts, makeEvent } from "./event.ts";
import type { Step } from "./subscriptions.ts";

export type StepResult =
  | { readonly kind: "done"; readonly ending?: Ending }
  /** Done, and its share is in the journal already: it was part of the handler's own commit. */
  | { readonly kind: "recorded" }
  /** Settled in an earlier attempt. */
  | { readonly kind: "skipped" }
  /** Its next attempt is not due yet. */
  | { readonly kind: "postponed"; readonly atMs: number }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly atMs: number };

export const DONE: StepResult = { kind: "done" };
export const RECORDED: StepResult = { kind: "recorded" };
export const SKIPPED: StepResult = { kind: "skipped" };

/** A step that has failed for good, and the error for the journal. */
export interface StepFailure {
  readonly failure: HandlerFailure;
  readonly error: string;
}

/**
 * Where a run is parked: `at-order` for an earlier event of its serial key, `at-slot` until its subscription can take
 * one more.
 */
export type Gate = "at-order" | "at-slot";

export type RunState = "waiting" | Gate | "running" | "settling" | "over";

/** How an event came to this process; events that came together share it. */
export interface RunClaim {
  readonly lease: number;
  /** Which claim of the row this is: settling names it. */
  readonly attempt: number;
  /** Deliveries that earlier attempts left in the journal, where subscribers differ. */
  readonly deliveries: readonly Delivery[];
  /** When the process claimed it, by its clock: which retries are due. */
  readonly atMs?: number;
  /** How many processes have died while they held it; absent for none. */
  readonly deaths?: number;
  /** Set for one that is a suspect for that. */
  readonly suspicion?: Suspicion;
  /** Why it is failed without a call of its handlers; only `onFailed` is called. */
  readonly condemned?: string;
}

/** Whether the journal knows that the handling of a suspect has begun: only then the next death counts. */
export interface Suspicion {
  begun: boolean;
}

export class EventRun {
  readonly id: number;
  readonly topic: string;
  readonly claim: RunClaim;
  readonly steps: readonly Step[];
  /** Declared consumers that did not run here when the event came, or when it was decided again. */
  missing: readonly Missing[];
  /** The version of the consumer table by which the event is decided. */
  version: number | undefined;
  /** One for each step before `position`. */
  results: readonly StepResult[] = NONE;
  state: RunState = "waiting";
  /** When it began to wait for a slot, by the monotonic clock. */
  waitingSinceMs = 0;
  /** The order it keeps, by step; undefined where no subscription wants one. */
  lanes: (SerialLane | undefined)[] | undefined;
  /** The context of the running handler; undefined while none runs. */
  handling: Cancellable | undefined;
  /** Set once the present step has failed for good and its `onFailed` is called. */
  failing: StepFailure | undefined;
  /** Its neighbours in the list of those that are held (`RunList`). */
  before: EventRun | undefined;
  after: EventRun | undefined;
  /** The event is made of them when it is first read. Both are undefined from the settle on. */
  #facts: EventFacts | undefined;
  #event: Event | undefined;

  constructor(facts: EventFacts, claim: RunClaim, { steps, missing, version }: Match) {
    this.id = facts.id;
    this.topic = facts.topic;
    this.claim = claim;
    this.steps = steps;
    this.missing = missing;
    this.version = version;
    this.#facts = facts;
  }

  get lease(): number {
    return this.claim.lease;
  }

  /** The step to be done next; `steps.length` when there is none left. */
  get position(): number {
    return this.results.length;
  }

  /** Notes the result of the present step. */
  note(result: StepResult): void {
    this.failing = undefined;
    this.results = withOne(this.results, result);
  }

  get event(): Event {
    if (this.#event === undefined) {
      if (this.#facts === undefined) throw new Error(`the handlers of event ${this.id} are over: it is being settled`);
      this.#event = makeEvent(this.#facts);
    }
    return this.#event;
  }

  /**
   * Its handlers are over, or were never called: all that counts is its claim. The event is let go of, since the
   * settles of a burst wait for the disk while the next burst is being made.
   */
  beginSettling(): void {
    this.state = "settling";
    this.#facts = undefined;
    this.#event = undefined;
  }

  get isParked(): boolean {
    return this.state === "at-order" || this.state === "at-slot";
  }

  /** Whether a handler was called for it under this claim. */
  get hasBegun(): boolean {
    return this.results.some(({ kind }) => kind !== "skipped" && kind !== "postponed");
  }

  /** Whether the journal has to be told before its first handler is called. */
  get mustTellBeginning(): boolean {
    return this.claim.suspicion?.begun === false;
  }

  earlierOf({ subscriber }: { readonly subscriber: string }): Delivery | undefined {
    const { deliveries } = this.claim;
    return deliveries.length === 0 ? undefined : deliveries.find((delivery) => delivery.subscriber === subscriber);
  }

  /** Counts the tries of one delivery from 1, and from 1 again when its event was put back. */
  attemptOf(step: Step): number {
    const earlier = this.earlierOf(step);
    return earlier === undefined || this.#isPutBack ? 1 : earlier.attempts + 1;
  }

  /** Whether this delivery is over: it succeeded or failed for good before, or its consumer was removed. */
  isOver(of: { readonly subscriber: string }): boolean {
    const status = this.earlierOf(of)?.status;
    return (
      status === "done" || status === "removing" || status === "removed" || (status === "failed" && !this.#isPutBack)
    );
  }

  /** When the next attempt of this delivery is due; undefined for now. */
  dueAtMs(of: { readonly subscriber: string }): number | undefined {
    const atMs = this.earlierOf(of)?.nextAttemptAtMs;
    return atMs === undefined || atMs <= (this.claim.atMs ?? 0) ? undefined : atMs;
  }

  /** Whether no consumer wants it, and none had it in an earlier attempt. */
  get isUnheard(): boolean {
    return this.steps.length === 0 && this.missing.length === 0 && this.claim.deliveries.length === 0;
  }

  /**
   * Takes the present state of the consumer table. A consumer that was missing when the event came is still owed it, if
   * it is declared.
   */
  decideAnew({ missing, version }: Match, isDeclared: (key: string) => boolean): void {
    const isKept = ({ awaits }: Missing) => isDeclared(awaits) && !missing.some((one) => one.awaits === awaits);
    this.missing = [...missing, ...this.missing.filter(isKept)];
    this.version = version;
  }

  /** Whether all steps after the present one are over. */
  get isLastStep(): boolean {
    const { position, steps } = this;
    for (let next = position + 1; next < steps.length; next++) if (!this.isOver(steps[next]!)) return false;
    return true;
  }

  /**
   * Whether a failed row was set to pending with SQL (J75), which leaves its deliveries as they were: some have failed,
   * and none is open. Of an event that is not over yet one is open, as soon as another has failed (`outcome.ts`).
   */
  get #isPutBack(): boolean {
    const { deliveries } = this.claim;
    return deliveries.some(({ status }) => status === "failed") && !deliveries.some(isOpen);
  }
}

/** Whether a delivery is still to be made. */
function isOpen({ status }: Delivery): boolean {
  return status === "retry" || status === "waiting" || status === "removing";
}

/**
 * The known events of one serial key of one subscription: those held here, in order, and earlier unsettled ones that
 * are not held here. Only the first one may be handled, only if no blocker precedes it, and only while no handler of
 * the key runs. SPEC: J64.
 */
export class SerialLane {
  /** Subscription and key, by which `SerialOrder` finds it. */
  readonly name: string;
  /** Held here, ascending by id. */
  readonly runs: EventRun[] = [];
  /** Ids of unsettled events that are not held here. */
  readonly blockers = new Set<number>();
  /**
   * The run whose handler is at work. It need not be the first, nor be held any more: an earlier event may have been
   * requeued, or its lease lost. The first run then waits for this handler only, not for its settlement, so the two
   * cannot wait for each other.
   */
  inside: EventRun | undefined;

  constructor(name: string) {
    this.name = name;
  }

  add(run: EventRun): void {
    let at = this.runs.length;
    while (at > 0 && this.runs[at - 1]!.id > run.id) at--;
    this.runs.splice(at, 0, run);
  }

  remove(run: EventRun): void {
    const at = this.runs.indexOf(run);
    if (at >= 0) this.runs.splice(at, 1);
  }

  /** The run that may be handled now, if one may. */
  get first(): EventRun | undefined {
    const [first] = this.runs;
    if (first === undefined || this.inside !== undefined) return undefined;
    for (const id of this.blockers) if (id < first.id) return undefined;
    return first;
  }

  get isEmpty(): boolean {
    return this.runs.length === 0 && this.blockers.size === 0 && this.inside === undefined;
  }
}

/** A declared consumer that does not run in this process. */
export interface Missing {
  /** The name of its delivery. */
  readonly subscriber: string;
  /** Its key. */
  readonly awaits: string;
}

export interface Match {
  readonly steps: readonly Step[];
  readonly missing: readonly Missing[];
  /** The version of the consumer table; undefined on a bus that has none. */
  readonly version: number | undefined;
}
