/**
 * The events that this process holds, from the claim until the settle is durable, and the room for more. Publishers, the
 * dispatcher and the deliveries meet here. SPEC: J66, J67.
 *
 * What waits for a handler is in one of two queues: events that have begun (a gate has opened, a commit is confirmed) come
 * before events that have not. Room that was promised to a publisher or a claim is reserved until the events come or do not.
 */

import { Fifo } from "../host/fifo.ts";
import type { Host } from "../host/host.ts";
import { EVENTS_HELD_MAX } from "../limits.ts";
import type { EventRun, Gate } from "./event-run.ts";
import { RunList } from "./run-list.ts";
import type { RunEnd, SerialOrder } from "./serial-order.ts";
import { WaitingBound } from "./waiting-bound.ts";

export interface HeldEventsListener {
  /** A run waits that may go on; called from inside of others, so that it is taken up later. */
  runReady(): void;
  /** Runs have come in; their handlers may be called. */
  runsReceived(): void;
  /** An event is in the journal and nobody here holds it. */
  backlog(): void;
  /** A run is over: there is room again, and perhaps nothing left. */
  runOver(): void;
  /** The journal knows that the handling of a suspect begins. */
  runBegins(run: EventRun): void;
  /** No call is on its way any more that may claim something. */
  claimsOver(): void;
}

export class HeldEvents {
  readonly #host: Host;
  readonly #serial: SerialOrder;
  readonly #runs = new RunList();
  /** Claimed and not begun. */
  readonly #waiting = new Fifo<EventRun>();
  /** Begun, and ready to go on. */
  readonly #resumed = new Fifo<EventRun>();
  #reserved = 0;
  /** The lease of each call to the store that is on its way and may claim something: nearly always the same, and few. */
  readonly #claiming: number[] = [];
  /** Runs that are parked at each gate. */
  readonly #parked: Record<Gate, number> = { "at-order": 0, "at-slot": 0 };
  /** Topics whose events are not claimed: a subscription of theirs has a full line (`slots.ts`). */
  fullTopics: ReadonlySet<string> = new Set();
  readonly bound: WaitingBound;
  listener: HeldEventsListener | undefined;

  constructor(parts: { host: Host; serial: SerialOrder; concurrency: number }) {
    this.#host = parts.host;
    this.#serial = parts.serial;
    this.bound = new WaitingBound(parts.concurrency);
    this.#serial.onOpen = (run) => this.resume(run);
  }

  get size(): number {
    return this.#runs.size;
  }

  /** Runs that wait for an earlier event of their serial key. */
  get parkedAtOrder(): number {
    return this.#parked["at-order"];
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** How many more events may be claimed. Those that wait for their order do not count: the events that they wait for must find room. */
  get room(): number {
    const toWait = this.bound.limit - this.#waiting.length;
    const toHold = EVENTS_HELD_MAX - (this.#runs.size - this.parkedAtOrder);
    return Math.max(0, Math.min(toWait, toHold) - this.#reserved);
  }

  /** Sets room aside for up to `count` events, of a share of what there is; says for how many there was some. */
  reserve(count: number, share = 1): number {
    const granted = Math.min(count, Math.floor(this.room * share));
    if (granted < count) this.bound.turnedAway();
    this.#reserved += granted;
    return granted;
  }

  /** The reserved events come now, or will not come. */
  unreserve(count: number): void {
    this.#reserved -= count;
  }

  /** A call that may claim events under the lease goes to the store. */
  claimBegins(lease: number): void {
    this.#claiming.push(lease);
  }

  /** It was answered, and what it has claimed was taken in; or it will not be. */
  claimEnds(lease: number): void {
    this.#claiming.splice(this.#claiming.lastIndexOf(lease), 1);
    if (this.#claiming.length === 0) this.listener?.claimsOver();
  }

  /** Whether there is nothing in hand, nor on its way to it. */
  get isEmpty(): boolean {
    return this.#runs.size === 0 && this.#claiming.length === 0;
  }

  /** Whether we hold something under the lease, or may do so soon. */
  uses(lease: number): boolean {
    if (this.#claiming.includes(lease)) return true;
    for (const run of this.#runs) if (run.lease === lease) return true;
    return false;
  }

  /** Takes claimed events in. */
  receive(runs: readonly EventRun[]): void {
    const nowMs = this.#host.monotonic();
    for (const run of runs) {
      run.waitingSinceMs = nowMs;
      this.#runs.add(run);
      this.#serial.arrive(run);
      this.#waiting.push(run);
    }
    this.listener?.runsReceived();
  }

  /** A run that waited for something else than a slot may go on. */
  resume(run: EventRun): void {
    if (run.state === "over") return;
    if (run.isParked) this.unpark(run);
    run.state = "waiting";
    this.#resumed.push(run);
    this.listener?.runReady();
  }

  park(run: EventRun, gate: Gate): void {
    run.state = gate;
    this.#parked[gate]++;
  }

  /** The gate that a run is parked at lets it go on; whoever calls this goes on with it. */
  unpark(run: EventRun): void {
    this.#parked[run.state as Gate]--;
    run.state = "waiting";
  }

  /** A subscription is gone: nothing waits at its gates any more. */
  passGone(): void {
    for (const run of this.#runs) {
      if (run.isParked && !run.steps[run.position]!.subscription.active) this.resume(run);
    }
  }

  /** The next run to go on with; events that have not begun only if asked for. */
  next(which: "all" | "begun"): EventRun | undefined {
    for (;;) {
      const run = this.#resumed.shift() ?? (which === "all" ? this.#waiting.shift() : undefined);
      if (run === undefined || run.state === "waiting") return run;
    }
  }

  /** Measures how long events wait, and adapts the bound. */
  adapt(): void {
    const first = this.#waiting.peek();
    if (first === undefined) this.bound.ranDry();
    else this.bound.waited(this.#host.monotonic() - first.waitingSinceMs);
  }

  /** Takes out again all that have not begun, and what is parked. */
  takeBackAll(): EventRun[] {
    this.#waiting.clear();
    return this.#takeBack((run) => run.isParked || !run.hasBegun);
  }

  /** Takes those out again that have not begun and are beyond the bound, the latest first. */
  takeBackSurplus(): EventRun[] {
    const taken: EventRun[] = [];
    while (this.#waiting.length > this.bound.limit) {
      const run = this.#waiting.pop()!;
      // Others were taken out under their lease, or lost with it, and their places left.
      if (run.state === "waiting") taken.push(run);
    }
    return taken;
  }

  /** Takes what waits under a lease out again. */
  takeBackUnder(lease: number): EventRun[] {
    return this.#takeBack((run) => run.lease === lease);
  }

  /** Their places in the queues and at the gates are passed over: only what waits or is parked is taken from there. */
  #takeBack(which: (run: EventRun) => boolean): EventRun[] {
    const taken = [...this.#runs].filter((run) => (run.state === "waiting" || run.isParked) && which(run));
    for (const run of taken) if (run.isParked) this.unpark(run);
    return taken;
  }

  /** The runs under a lease. */
  under(lease: number): EventRun[] {
    return [...this.#runs].filter((run) => run.lease === lease);
  }

  [Symbol.iterator](): Iterator<EventRun> {
    return this.#runs[Symbol.iterator]();
  }

  over(run: EventRun, end: RunEnd): void {
    if (run.state === "over") return;
    if (run.isParked) this.#parked[run.state as Gate]--;
    run.state = "over";
    this.#runs.remove(run);
    this.#serial.leave(run, end);
    this.listener?.runOver();
  }

  /** Throws when the counts contradict the records. */
  checkInvariants(): void {
    const states = { waiting: 0, "at-order": 0, "at-slot": 0, running: 0, settling: 0, over: 0 };
    let size = 0;
    for (const run of this.#runs) {
      states[run.state]++;
      size++;
    }
    if (size !== this.#runs.size) throw new Error(`${size} runs are held, ${this.#runs.size} were counted`);
    if (states.over > 0) throw new Error("a run is held that is over");
    for (const gate of ["at-order", "at-slot"] as const) {
      if (states[gate] !== this.#parked[gate])
        throw new Error(`${states[gate]} runs are parked ${gate}, ${this.#parked[gate]} were counted`);
    }
    if (states.waiting > this.#waiting.length + this.#resumed.length) throw new Error("a run waits in no queue");
    if (this.#reserved < 0) throw new Error(`${this.#reserved} events are reserved`);
    if (this.#runs.size - this.parkedAtOrder > EVENTS_HELD_MAX) throw new Error(`${this.#runs.size} events are held`);
  }
}
