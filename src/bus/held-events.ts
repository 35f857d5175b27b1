/**
 * The events that this process holds, from the claim until the settlement is durable, and the room for more.
 * Publishers, the dispatcher and the deliveries share it. SPEC: J66, J67.
 *
 * Events that wait for a handler are in one of two queues: events that have begun (a gate has opened, a commit is
 * confirmed) come before events that have not. Room that was promised to a publisher or a claim is reserved until the
 * events arrive or fail.
 */

import { Fifo } from "../host/fifo.ts";
import type { Host } from "../host/host.ts";
import { EVENTS_HELD_MAX } from "../limits.ts";
import type { EventRun, Gate } from "./event-run.ts";
import type { RunEnd, SerialOrder } from "./serial-order.ts";
import { WaitingBound } from "./waiting-bound.ts";

export interface HeldEventsListener {
  /** A waiting run may continue. Called from inside of other code, so the listener acts later. */
  runReady(): void;
  /** Runs have come in; their handlers may be called. */
  runsReceived(): void;
  /** An event is in the journal and not held in this process. */
  backlog(): void;
  /** A run is over: there is room again, and perhaps no event is left. */
  runOver(): void;
  /** The journal knows that the handling of a suspect begins. */
  runBegins(run: EventRun): void;
  /** The last call that could claim events has ended. */
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
  /** The lease of each call to the store that may claim events and is not answered: nearly always the same, and few. */
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

  /**
   * Number of further events that may be claimed. Events that wait for their order do not count, because the events
   * before them must find room.
   */
  get room(): number {
    const toWait = this.bound.limit - this.#waiting.length;
    const toHold = EVENTS_HELD_MAX - (this.#runs.size - this.parkedAtOrder);
    return Math.max(0, Math.min(toWait, toHold) - this.#reserved);
  }

  /** Reserves room for up to `count` events, within a share of the free room; returns the reserved number. */
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

  /** The call was answered, and its claimed events were received; or it got no answer. */
  claimEnds(lease: number): void {
    this.#claiming.splice(this.#claiming.lastIndexOf(lease), 1);
    if (this.#claiming.length === 0) this.listener?.claimsOver();
  }

  /** Whether no event is held, or being claimed. */
  get isEmpty(): boolean {
    return this.#runs.size === 0 && this.#claiming.length === 0;
  }

  /** Whether events are held under the lease, or may be soon. */
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

  /** A run that waited at a gate other than a slot may continue. */
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

  /** Releases a run from its gate; the caller continues the run. */
  unpark(run: EventRun): void {
    this.#parked[run.state as Gate]--;
    run.state = "waiting";
  }

  /** A subscription is gone: no run waits at its gates any more. */
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

  /** Removes all events that have not begun, and parked ones. */
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

  /** Removes waiting events of a lease. */
  takeBackUnder(lease: number): EventRun[] {
    return this.#takeBack((run) => run.lease === lease);
  }

  /** Their places in the queues and at the gates are skipped: only waiting and parked runs are taken from there. */
  #takeBack(which: (run: EventRun) => boolean): EventRun[] {
    const taken = [...this.#runs].filter((run) => (run.state === "waiting" || run.isParked) && which(run));
    for (const run of taken) if (run.isParked) this.unpark(run);
    return taken;
  }

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

/**
 * The runs that this process holds, in the order they came, as a list that goes through the runs themselves.
 *
 * A run that leaves takes its links with it. The tables of a `Set` do not: each that it outgrows while a burst comes
 * in, and each that it shrinks out of afterwards, is garbage that goes on naming its runs, so that they and their
 * events are copied by every minor collection until a major one.
 */
export class RunList implements Iterable<EventRun> {
  #first: EventRun | undefined;
  #last: EventRun | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(run: EventRun): void {
    run.before = this.#last;
    if (this.#last === undefined) this.#first = run;
    else this.#last.after = run;
    this.#last = run;
    this.#size++;
  }

  /** Takes out a run that is in the list. */
  remove(run: EventRun): void {
    const { before, after } = run;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    run.before = undefined;
    run.after = undefined;
    this.#size--;
  }

  *[Symbol.iterator](): Generator<EventRun> {
    for (let run = this.#first; run !== undefined; run = run.after) yield run;
  }
}
