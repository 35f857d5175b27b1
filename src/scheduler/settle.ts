/**
 * The pass (Scheduler v2 §7.1): takes nodes from the agenda, lowest first, and runs them until nothing is left that may run
 * now. One run at a time; an asynchronous one is awaited, and so is whatever else nothing may run beside.
 *
 * ```
 *   at rest ──woken──> tick queued ──> passing ──> at rest
 *                                       │  ^
 *                                       v  │
 *                          resting (the thread is given back) or waiting
 * ```
 * Which of two nodes comes first is said by `precedence.ts`, which node has run too often by `episode.ts`, when all is done by
 * `quiescence.ts`.
 */
import type { Host } from "../host/host.ts";
import { PASS_SLICE_MS } from "../limits.ts";
import type { Replica } from "../store/replica.ts";
import type { Agenda, Waker } from "./agenda.ts";
import type { NodeWork } from "./closure.ts";
import type { Passes } from "./dispatch.ts";
import type { Episode } from "./episode.ts";
import type { GateHome, Gates } from "./gates.ts";
import type { SchedulerNode } from "./node.ts";
import type { NodeRecord } from "./node-record.ts";
import type { ReadWork } from "./outside-reads.ts";
import type { Holder, Persistence } from "./persistence.ts";
import type { Precedence } from "./precedence.ts";
import type { ProvisionalDemand } from "./provisional-demand.ts";
import type { Activity, Quiescence } from "./quiescence.ts";
import type { Run } from "./run.ts";
import type { Background } from "./run-commits.ts";
import type { RunReads, UpstreamWork } from "./run-reads.ts";
import type { Runner } from "./runner.ts";
import type { Turns } from "./turns.ts";

/** Sends that wait to be handled; the events component. */
export interface SendWork {
  readonly hasSends: boolean;
  /** Dispatches what is ready; false if nothing has moved. */
  step(): boolean;
}

/** Runs between two looks at the clock. */
const RUNS_PER_LOOK = 128;

export class Settle implements Waker, UpstreamWork, ReadWork, GateHome, Holder, NodeWork, Passes, Activity, Background {
  readonly #host: Host;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #precedence: Precedence;
  readonly #reads: RunReads;
  readonly #runner: Runner;
  readonly #turns: Turns;
  readonly #persistence: Persistence;
  readonly #provisional: ProvisionalDemand;
  readonly #episode: Episode;
  readonly #quiescence: Quiescence;
  #sends: SendWork | undefined;
  /** Numbers the passes; nodes remember in which they ran last. */
  #pass = 0;
  #tickQueued = false;
  #passing = false;
  /** All that is awaited now; no node runs before it has ended. Only `#join` adds to it. */
  #inFlight: Promise<void> | undefined;
  /** Counts what was waited for; the latest waits for those before it too. */
  #waits = 0;
  /** The pass has given the thread back and goes on in a task of its own. */
  #resting = false;
  #disposed = false;

  constructor(parts: {
    host: Host;
    agenda: Agenda;
    gates: Gates;
    precedence: Precedence;
    reads: RunReads;
    runner: Runner;
    turns: Turns;
    persistence: Persistence;
    provisional: ProvisionalDemand;
    episode: Episode;
    quiescence: Quiescence;
  }) {
    this.#host = parts.host;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#precedence = parts.precedence;
    this.#reads = parts.reads;
    this.#runner = parts.runner;
    this.#turns = parts.turns;
    this.#persistence = parts.persistence;
    this.#provisional = parts.provisional;
    this.#episode = parts.episode;
    this.#quiescence = parts.quiescence;
  }

  set sends(sends: SendWork) {
    this.#sends = sends;
  }

  // Ticks ----------------------------------------------------------------------------------------------------------------

  wake(): void {
    // Mostly it is a run that has made work for others, and the pass goes on anyway.
    if (!this.#passing) this.#queueTick();
  }

  #queueTick(): void {
    if (this.#tickQueued || this.#resting || this.isWaiting || this.#disposed) return;
    this.#tickQueued = true;
    this.#host.microtask(() => {
      this.#tickQueued = false;
      this.#begin(true);
    });
  }

  gateOpened(node: SchedulerNode): void {
    if (node.status !== "clean" && node.live) this.#agenda.offer(node);
    this.#quiescence.check();
  }

  gateStopped(): void {
    this.#quiescence.check();
  }

  /** Settles what is synchronous, now. */
  flush(): void {
    this.#begin(false);
  }

  /** Whether nothing may run now: an asynchronous run, a load or a resumption is awaited. */
  get isWaiting(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Nothing runs before the work is over, well or not. */
  hold(work: Promise<unknown>): void {
    this.#pass++;
    this.#join(Promise.allSettled([work]));
  }

  /** Waits for `work` too: a run that began inside a read may be awaited already, and the pass goes on after both. */
  #join(work: Promise<unknown>): void {
    this.#inFlight = this.#await(this.#inFlight === undefined ? work : Promise.all([this.#inFlight, work]));
  }

  #begin(sliced: boolean): void {
    if (this.#passing || this.isWaiting || this.#disposed) return;
    this.#turns.publish();
    if (this.#agenda.isEmpty && !this.#sends?.hasSends) return this.#quiescence.check();
    this.#pass++;
    this.#continue(sliced);
  }

  #continue(sliced: boolean): void {
    this.#passing = true;
    this.#resting = false;
    const until = sliced ? this.#host.monotonic() + PASS_SLICE_MS : Number.POSITIVE_INFINITY;
    try {
      // Sends make work for nodes, and nodes may be what the next send waits for.
      do this.#runNodes(until);
      while (!this.isWaiting && !this.#resting && this.#dispatch(until));
    } finally {
      this.#passing = false;
    }
    if (this.isWaiting) return;
    if (this.#resting) this.#host.task(() => this.#goOn());
    else this.#end(sliced);
  }

  #end(sliced: boolean): void {
    this.#provisional.expire();
    if (!this.#agenda.isEmpty) return this.#continue(sliced);
    this.#episode.passed(this.#pass);
    this.#quiescence.check();
  }

  #runNodes(until: number): void {
    let runs = 0;
    for (let node = this.#next(); node !== undefined; node = this.#next()) {
      this.runNext(node);
      // It may have begun inside a read, where nobody can wait for it.
      if (this.isWaiting) return;
      if (++runs % RUNS_PER_LOOK === 0 && this.#isOver(until)) return;
    }
  }

  /** Whether there is more to do in this pass. */
  #dispatch(until: number): boolean {
    const sends = this.#sends;
    if (!sends?.hasSends) return false;
    const moved = sends.step();
    if (this.isWaiting || this.#isOver(until)) return false;
    return moved || !this.#agenda.isEmpty || this.#turns.hasUntold;
  }

  #isOver(until: number): boolean {
    if (until === Number.POSITIVE_INFINITY || this.#host.monotonic() < until) return false;
    this.#resting = true;
    return true;
  }

  /** After a rest; a flush may have done what was left. */
  #goOn(): void {
    if (!this.#resting || this.#disposed) return;
    this.#continue(true);
  }

  async #await(work: Promise<unknown>): Promise<void> {
    const wait = ++this.#waits;
    await work;
    await this.#reads.takeLoads();
    if (wait !== this.#waits) return;
    this.#inFlight = undefined;
    if (this.#disposed) return this.#quiescence.check();
    this.#continue(true);
  }

  #next(): SchedulerNode | undefined {
    if (this.#turns.hasUntold) this.#turns.publish();
    return this.#agenda.primary.first ?? this.#agenda.idle.first;
  }

  mayNest(run: Run): boolean {
    return this.#runner.mayNest(run);
  }

  /** Runs a node of the agenda, which wants to run and is live, or finds that it may not run now. */
  runNext(node: SchedulerNode): Promise<void> | undefined {
    if (this.#precedence.comesLater(node)) return undefined;
    this.#agenda.take(node);
    if (node.particulars !== null && this.#hasToWait(node)) return this.#inFlight;
    if (!this.#episode.allows(node, this.#pass)) return undefined;
    node.passRuns++;
    const run = this.#runner.run(node);
    if (node.isWaiting) node.passRuns--;
    if (run !== undefined) this.#join(run);
    else if (this.#reads.loads !== undefined) this.#awaitLoads(node, this.#reads.loads);
    return this.#inFlight;
  }

  #hasToWait(node: SchedulerNode): boolean {
    if (node.gate !== undefined && this.#gates.hold(node)) return true;
    return node.record !== undefined && this.#isResumed(node, node.record);
  }

  /** Whether a resumed node has nothing to run for, or has to wait for what it needs. */
  #isResumed(node: SchedulerNode, record: NodeRecord): boolean {
    if (record.phase === "here") return false;
    const loads = this.#persistence.prepare(node, record);
    if (loads === undefined || loads === "unchanged") return loads !== undefined;
    this.#join(loads);
    this.#agenda.offer(node);
    return true;
  }

  /** The run has started over and waits for what it has met; that it had to is not the node's fault. */
  #awaitLoads(node: SchedulerNode, loads: Promise<unknown>): void {
    node.passRuns--;
    this.#join(loads);
  }

  // For sends (§7.5) ---------------------------------------------------------------------------------------------------

  /**
   * Each send is news from outside: what it makes run may run as often as in a pass of its own. What plain code has written by then is
   * committed before it, or the handling would read what its own commit finds changed.
   */
  fresh(replica: Replica): void {
    this.#pass++;
    this.#turns.seal(replica);
  }

  get isUnsettled(): boolean {
    return this.isWaiting || this.hasUntold;
  }

  get hasUntold(): boolean {
    return this.#turns.hasUntold;
  }

  finishBefore(node: SchedulerNode): boolean {
    const isFinished = this.#finishBefore(node);
    // No pass ends that would see to it.
    if (!this.#passing) this.#provisional.expire();
    return isFinished;
  }

  #finishBefore(node: SchedulerNode): boolean {
    for (;;) {
      if (this.isWaiting) return false;
      if (this.#turns.hasUntold) this.#turns.publish();
      if (!this.#agenda.idle.isEmpty) this.#precedence.promoteBefore(node);
      const { first } = this.#agenda.primary;
      if (first === undefined || first.height >= node.height) return true;
      this.runNext(first);
    }
  }

  // For reads of plain code ----------------------------------------------------------------------------------------------

  beginRead(): void {
    if (!this.#passing) this.#pass++;
    this.#turns.publish();
  }

  endRead(): void {
    if (!this.#passing) this.#provisional.expire();
  }

  // Rest -----------------------------------------------------------------------------------------------------------------

  get isActive(): boolean {
    return this.#tickQueued || this.#passing || this.#resting || this.isWaiting;
  }

  /** Work outside of the graph that `idle` waits for. */
  background(work: Promise<unknown>): void {
    this.#quiescence.background(work);
  }

  /** The node is gone. */
  forget(node: SchedulerNode): void {
    this.#provisional.forget(node);
    this.#episode.forget(node);
    // A send may have waited for its gate.
    if (this.#sends?.hasSends) this.wake();
    this.#quiescence.check();
  }

  /** Waits no longer for what is awaited; what that comes to is nobody's any more. */
  letGo(): void {
    this.#waits++;
    this.#inFlight = undefined;
  }

  dispose(): void {
    this.#disposed = true;
    this.#gates.dispose();
    this.#quiescence.dispose();
  }
}
