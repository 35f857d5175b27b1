/**
 * How many handlers run at once: of the bus, and of each subscription. SPEC: J51, J68.
 *
 * Only waiting takes a slot: a handler that returns without a promise is over before anybody else could begin.
 */
import type { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { Step } from "./subscriptions.ts";

export class Slots {
  readonly #held: HeldEvents;
  readonly #limit: number;
  #taken = 0;

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

  /** Whether the subscription can take one more; if not, the run is resumed when it can. */
  admits({ subscription }: Step, run: EventRun): boolean {
    if (subscription.running < subscription.concurrency) return true;
    subscription.waiting.push(run);
    return false;
  }

  /** Holds a slot for as long as a handler takes. */
  async during<T>(step: Step, handling: Promise<T>): Promise<T> {
    this.#taken++;
    step.subscription.running++;
    try {
      return await handling;
    } finally {
      this.#taken--;
      this.#leave(step);
    }
  }

  #leave({ subscription }: Step): void {
    subscription.running--;
    let next = subscription.waiting.shift();
    while (next?.state === "over") next = subscription.waiting.shift();
    if (next) this.#held.resume(next);
    else this.#held.listener?.runReady();
  }
}
