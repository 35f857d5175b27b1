/**
 * The pass (Scheduler v2 §7.1): takes nodes from the agenda, lowest first, and runs them until none may run now. Runs
 * do not overlap: an asynchronous run is awaited, and so are loads and resumptions that block all nodes.
 *
 * ```
 *   at rest ──woken──> tick queued ──> passing ──> at rest
 *                                       │  ^
 *                                       v  │
 *                          resting (yields to the host) or waiting
 * ```
 * `precedence.ts` orders two nodes, `episode.ts` limits the runs of a node, `quiescence.ts` detects the end of all
 * work.
 */
import type { Host } from "../host/host.ts";
import { PASS_SLICE_MS } from "../limits.ts";
import type { Replica } from "../store/replica.ts";
import type { Agenda, Waker } from "./agenda.ts";
import type { NodeWork } from "./closure.ts";
import type { Passes } from "./dispatch.ts";
import type { Episode } from "./episode.ts";
import type { GateHome, Gates } from "./gates.ts";
import type { NodeRecord, SchedulerNode } from "./node.ts";
import type { ReadWork } from "./outside-reads.ts";
import type { Holder, Persistence } from "./persistence.ts";
import type { Precedence } from "./precedence.ts";
import type { ProvisionalDemand } from "./provisional-demand.ts";
import type { Quiescence, SchedulerActivity } from "./quiescence.ts";
import type { Run } from "./run.ts";
import type { Background } from "./run-commits.ts";
import type { RunReads, UpstreamWork } from "./run-reads.ts";
import type { Runner } from "./runner.ts";
import type { WriteTurns } from "./turns.ts";

/** Queued sends; implemented by the events component. */
export interface SendWork {
  readonly hasSends: boolean;
  /** Dispatches ready sends; false if no queue moved. */
  step(): boolean;
}

/** Runs between two reads of the clock. */
const RUNS_PER_LOOK = 128;

export class Settle
  implements Waker, UpstreamWork, ReadWork, GateHome, Holder, NodeWork, Passes, SchedulerActivity, Background
{
  readonly #host: Host;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #precedence: Precedence;
  readonly #reads: RunReads;
  readonly #runner: Runner;
  readonly #turns: WriteTurns;
  readonly #persistence: Persistence;
  readonly #provisional: ProvisionalDemand;
  readonly #episode: Episode;
  readonly #quiescence: Quiescence;
  #sends: SendWork | undefined;
  /** Numbers the passes; nodes store the number of their last pass. */
  #pass = 0;
  #tickQueued = false;
  #passing = false;
  /** All that is awaited now; no node runs before it has ended. Only `#join` adds to it. */
  #inFlight: Promise<void> | undefined;
  /** Counts the waits; the latest includes those before it. */
  #waits = 0;
  /** The pass has yielded to the host and continues in a task of its own. */
  #resting = false;
  #disposed = false;

  constructor(parts: {
    host: Host;
    agenda: Agenda;
    gates: Gates;
    precedence: Precedence;
    reads: RunReads;
    runner: Runner;
    turns: WriteTurns;
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

  // Ticks
  // ----------------------------------------------------------------------------------------------------------------

  wake(): void {
    // Usually a run has made work for other nodes, and the pass continues anyway.
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

  /** Runs the synchronous work now. */
  flush(): void {
    this.#begin(false);
  }

  /** Whether no node may run now: an asynchronous run, a load or a resumption is awaited. */
  get isWaiting(): boolean {
    return this.#inFlight !== undefined;
  }

  /** No node runs before the work has ended, with success or not. */
  hold(work: Promise<unknown>): void {
    this.#pass++;
    this.#join(Promise.allSettled([work]));
  }

  /** Waits for `work` too: a run that began inside a read may be awaited already, and the pass continues after both. */
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
      // Sends make work for nodes, and the next send may wait for nodes.
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
      // An asynchronous run may have begun inside a read, which cannot wait for it.
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

  /** Continues after a rest, unless a flush has done the work. */
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

  /** Runs a node of the agenda, unless it must wait. */
  runNext(node: SchedulerNode): Promise<void> | undefined {
    if (this.#precedence.comesLater(node)) return undefined;
    this.#agenda.take(node);
    if (node.extras !== null && this.#hasToWait(node)) return this.#inFlight;
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

  /** Whether a resumed node need not run, or waits for its inputs. */
  #isResumed(node: SchedulerNode, record: NodeRecord): boolean {
    if (record.phase === "here") return false;
    const loads = this.#persistence.prepare(node, record);
    if (loads === undefined || loads === "unchanged") return loads !== undefined;
    if (loads === "hidden") {
      // Offered when the input arrives. Offering it now would repeat this in promise jobs, and stop the process.
      node.isWaiting = true;
      return true;
    }
    this.#join(loads);
    this.#agenda.offer(node);
    return true;
  }

  /** The run was abandoned for a load, so it does not count against the node's budget. */
  #awaitLoads(node: SchedulerNode, loads: Promise<unknown>): void {
    node.passRuns--;
    this.#join(loads);
  }

  // For sends (§7.5)
  // ---------------------------------------------------------------------------------------------------

  /**
   * Starts a pass with new run budgets: each send is a change from outside. Commits the writes of plain code first, or
   * the commit of the handling would be stale at once.
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
    // Outside of a pass, no end of a pass would withdraw the provisional demand.
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

  // For reads of plain code
  // ----------------------------------------------------------------------------------------------

  beginRead(): void {
    if (!this.#passing) this.#pass++;
    this.#turns.publish();
  }

  endRead(): void {
    if (!this.#passing) this.#provisional.expire();
  }

  // Rest
  // -----------------------------------------------------------------------------------------------------------------

  get isActive(): boolean {
    return this.#tickQueued || this.#passing || this.#resting || this.isWaiting;
  }

  /** Work outside of the graph that `idle` waits for. */
  background(work: Promise<unknown>): void {
    this.#quiescence.background(work);
  }

  /** Forgets a removed node. */
  forget(node: SchedulerNode): void {
    this.#provisional.forget(node);
    this.#episode.forget(node);
    // A send may have waited for its gate.
    if (this.#sends?.hasSends) this.wake();
    this.#quiescence.check();
  }

  /** Stops waiting for work that is awaited; its results are ignored. */
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
