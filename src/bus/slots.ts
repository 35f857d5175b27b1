/**
 * How many handlers run at once: of each subscription, and of the bus. SPEC: J51, J68, J130, J131.
 *
 * Only waiting takes a slot: a handler that returns without a promise is over before another could begin.
 *
 * ```
 *   admits ──free slot──> yes
 *      ├──busy──> in the line of its subscription ──next(), a slot is free──> goes on
 *      └──the line is full──> given back; its topic is not claimed until the line is half empty
 * ```
 * No run is called from a line: the dispatcher takes it when it next looks for work and the subscription has a slot. So
 * no slot can be missed, also if the run before ended at once, was given back, or was lost.
 */
import { Fifo } from "../host/fifo.ts";
import type { Host } from "../host/host.ts";
import { HANDLERS_RUNNING_MAX } from "../limits.ts";
import type { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { Subscription } from "./subscription.ts";
import type { Step } from "./subscriptions.ts";

export class Slots {
  readonly #host: Host;
  readonly #held: HeldEvents;
  /** Of all subscriptions. */
  readonly #limit: number;
  #taken = 0;
  /**
   * The lines of busy subscriptions, first come first. Runs that are no longer `at-slot` were taken back or lost
   * meanwhile, and are passed over.
   */
  readonly #lines = new Map<Subscription, Fifo<EventRun>>();

  constructor(parts: { host: Host; held: HeldEvents; concurrency: number }) {
    this.#host = parts.host;
    this.#held = parts.held;
    this.#limit = Math.max(HANDLERS_RUNNING_MAX, parts.concurrency);
  }

  get hasFree(): boolean {
    return this.#taken < this.#limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many events wait for a slot of the subscription. */
  waitingAt(subscription: Subscription): number {
    return [...(this.#lines.get(subscription) ?? [])].filter(isAtSlot).length;
  }

  /** Whether the subscription can take one more; if not, the run stands in its line, or there is no place for it. */
  admits({ subscription }: Step, run: EventRun): "yes" | "line" | "full" {
    if (subscription.running < subscription.concurrency) return "yes";
    const { lineBound } = subscription;
    const line = this.#lineOf(subscription);
    // Runs that were taken back or lost were so together: with the first of them the others are found too. Come again,
    // they stand here anew.
    if (line.length > 0 && !isAtSlot(line.peek()!)) forgetOthers(line);
    if (line.length >= lineBound.limit) {
      lineBound.turnedAway();
      this.#close(subscription, run);
      return "full";
    }
    run.waitingSinceMs = this.#host.monotonic();
    line.push(run);
    return "line";
  }

  /** Takes the first run out of a line that has a slot for it. */
  next(): EventRun | undefined {
    if (this.#lines.size === 0) return undefined;
    for (const [subscription, line] of this.#lines) {
      // Those of a subscription that is gone pass it by.
      if (subscription.running >= subscription.concurrency && subscription.active) continue;
      const run = firstAtSlot(line);
      if (run !== undefined) {
        this.#held.unpark(run);
        this.#reopen(subscription, line.length);
        return run;
      }
      this.#lines.delete(subscription);
      subscription.lineBound.ranDry();
      this.#reopen(subscription, 0);
    }
    return undefined;
  }

  /** Measures how long events stand in lines, and takes those out again that are beyond the bound, the latest first. */
  adapt(): EventRun[] {
    const surplus: EventRun[] = [];
    if (this.#lines.size === 0) return surplus;
    const nowMs = this.#host.monotonic();
    for (const [subscription, line] of this.#lines) {
      const { lineBound } = subscription;
      const first = line.peek();
      if (first !== undefined && isAtSlot(first)) lineBound.waited(nowMs - first.waitingSinceMs);
      while (line.length > lineBound.limit) {
        const run = line.pop()!;
        if (!isAtSlot(run)) continue;
        this.#held.unpark(run);
        this.#close(subscription, run);
        surplus.push(run);
      }
    }
    return surplus;
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

  #lineOf(subscription: Subscription): Fifo<EventRun> {
    let line = this.#lines.get(subscription);
    if (line === undefined) {
      line = new Fifo();
      this.#lines.set(subscription, line);
    }
    return line;
  }

  /** Events of the run's topic stay in the journal from now on. */
  #close({ fullTopics }: Subscription, { topic }: EventRun): void {
    fullTopics.add(topic);
    if (!this.#held.fullTopics.has(topic)) this.#held.fullTopics = new Set(this.#held.fullTopics).add(topic);
  }

  /** Events of its topics are claimed again, once half of the line is free. */
  #reopen({ fullTopics, lineBound }: Subscription, lineLength: number): void {
    if (fullTopics.size === 0 || lineLength * 2 > lineBound.limit) return;
    fullTopics.clear();
    this.#held.fullTopics = new Set([...this.#lines.keys()].flatMap((one) => [...one.fullTopics]));
    this.#held.listener?.backlog();
  }
}

/** Leaves only the runs in line that still wait there. */
function forgetOthers(line: Fifo<EventRun>): void {
  const left = [...line].filter(isAtSlot);
  line.clear();
  for (const run of left) line.push(run);
}

/** Others were taken back or lost while they stood there. */
function firstAtSlot(line: Fifo<EventRun>): EventRun | undefined {
  for (;;) {
    const run = line.shift();
    if (run === undefined || isAtSlot(run)) return run;
  }
}

function isAtSlot({ state }: EventRun): boolean {
  return state === "at-slot";
}
