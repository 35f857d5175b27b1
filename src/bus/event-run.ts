/**
 * One claimed event on its way through its handlers: the record that the dispatcher, the gates and the settle queue pass to
 * each other. SPEC: J50-J55.
 *
 * ```
 *   waiting ──a slot──> running ──last handler done──> settling ──durable──> over
 *      ^  │                │                              │
 *      │  └─gate closed─> parked                          └─claim lost, bus stopped──> over
 *      └────gate opens─────┘
 * ```
 * In every state but `over` the process holds the event's claim, as far as it knows.
 */
import type { Delivery } from "../store/journal.ts";
import { type Event, type EventFacts, makeEvent } from "./event.ts";
import type { Cancellable } from "./handler-wait.ts";
import type { SerialLane } from "./serial-lane.ts";
import type { Step } from "./subscriptions.ts";

export type StepResult =
  | { readonly kind: "done" }
  /** Done, and its share is in the journal already: it was part of the handler's own commit. */
  | { readonly kind: "recorded" }
  /** Settled in an earlier attempt, or unsubscribed meanwhile. */
  | { readonly kind: "skipped" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly atMs: number };

export const DONE: StepResult = { kind: "done" };
export const RECORDED: StepResult = { kind: "recorded" };
export const SKIPPED: StepResult = { kind: "skipped" };

export type RunState = "waiting" | "parked" | "running" | "settling" | "over";

export class EventRun {
  readonly facts: EventFacts;
  readonly lease: number;
  /** Which claim of the row this is: settling names it. */
  readonly claimAttempt: number;
  readonly steps: readonly Step[];
  /** What earlier attempts left in the journal, where subscribers differ. */
  readonly earlier: readonly Delivery[];
  /** One for each step before `position`. */
  readonly results: StepResult[] = [];
  state: RunState = "waiting";
  /** When it began to wait for a slot, by the monotonic clock. */
  waitingSinceMs = 0;
  /** Whether the subscription at `position` has let it in. */
  admitted = false;
  /** The order it keeps, by step; undefined where no subscription wants one. */
  lanes: (SerialLane | undefined)[] | undefined;
  /** What the handler that runs now was given; undefined while none runs. */
  handling: Cancellable | undefined;
  #event: Event | undefined;

  constructor(
    facts: EventFacts,
    claim: { readonly lease: number; readonly attempt: number; readonly deliveries: readonly Delivery[] },
    steps: readonly Step[],
  ) {
    this.facts = facts;
    this.lease = claim.lease;
    this.claimAttempt = claim.attempt;
    this.earlier = claim.deliveries;
    this.steps = steps;
  }

  get id(): number {
    return this.facts.id;
  }

  /** The step to be done next; `steps.length` when there is none left. */
  get position(): number {
    return this.results.length;
  }

  get event(): Event {
    this.#event ??= makeEvent(this.facts);
    return this.#event;
  }

  earlierOf({ subscriber }: Step): Delivery | undefined {
    return this.earlier.length === 0 ? undefined : this.earlier.find((delivery) => delivery.subscriber === subscriber);
  }

  /** Counts the tries of one delivery from 1. */
  attemptOf(step: Step): number {
    return (this.earlierOf(step)?.attempts ?? 0) + 1;
  }

  /** Whether nothing of this step is left to do: it succeeded or failed for good before, or nobody wants it any more. */
  isOver(step: Step): boolean {
    const status = this.earlierOf(step)?.status;
    return status === "done" || status === "failed" || !step.subscription.active;
  }

  /** Whether no step after the present one has anything to do. */
  get isLastStep(): boolean {
    const { position, steps } = this;
    for (let next = position + 1; next < steps.length; next++) if (!this.isOver(steps[next]!)) return false;
    return true;
  }
}
