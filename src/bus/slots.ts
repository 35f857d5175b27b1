/**
 * How many handlers run at once: of the bus, and of each subscription. SPEC: J51, J68.
 *
 * Only waiting takes a slot: a handler that returns without a promise is over before anybody else could begin.
 *
 * A run whose subscription is busy stands in that subscription's line. Nobody calls it from there: the dispatcher takes it when it next looks for
 * something to do and the subscription has a slot. So no slot can be missed, whatever became of the run before (it ended at once, was
 * given back, or lost).
 */
import type { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { Subscription } from "./subscription.ts";
import type { Step } from "./subscriptions.ts";

export class Slots {
  readonly #held: HeldEvents;
  readonly #limit: number;
  #taken = 0;
  /** Subscriptions with a line. */
  readonly #crowded = new Set<Subscription>();

  constructor(held: HeldEvents, limit: number) {
    this.#held = held;
    this.#limit = limit;
  }

  get hasFree(): boolean {
    return this.#taken < this.#limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether the subscription can take one more; if not, the run stands in its line. */
  admits({ subscription }: Step, run: EventRun): boolean {
    if (subscription.running < subscription.concurrency) return true;
    const line = subscription.waiting;
    // Those who were taken back or lost were so together: with the first of them the others are found too. Come again, they stand here anew.
    if (line.length > 0 && line[0]!.state !== "at-slot") forgetOthers(line);
    line.push(run);
    this.#crowded.add(subscription);
    return false;
  }

  /** Takes the first run out of a line that has a slot for it. */
  next(): EventRun | undefined {
    if (this.#crowded.size === 0) return undefined;
    for (const subscription of this.#crowded) {
      // Those of a subscription that is gone pass it by.
      if (subscription.running >= subscription.concurrency && subscription.active) continue;
      const run = firstAtSlot(subscription.waiting);
      if (run !== undefined) {
        this.#held.unpark(run);
        return run;
      }
      this.#crowded.delete(subscription);
    }
    return undefined;
  }

  /** Holds a slot for as long as a handler takes. */
  async during<T>(step: Step, handling: Promise<T>): Promise<T> {
    this.#taken++;
    step.subscription.running++;
    try {
      return await handling;
    } finally {
      this.#taken--;
      step.subscription.running--;
      this.#held.listener?.runReady();
    }
  }
}

/** Leaves only those in line who still wait there. */
function forgetOthers(line: EventRun[]): void {
  let left = 0;
  for (const run of line) if (run.state === "at-slot") line[left++] = run;
  line.length = left;
}

/** Others were taken back or lost while they stood there. */
function firstAtSlot(line: EventRun[]): EventRun | undefined {
  for (;;) {
    const run = line.shift();
    if (run === undefined || run.state === "at-slot") return run;
  }
}
