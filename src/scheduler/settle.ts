/**
 * The pass (Scheduler v2 §7.1): takes nodes from the agenda, lowest first, and runs them until nothing is left that may run
 * now. One run at a time; an asynchronous one is awaited. Convergence is bounded, not forced (§7.7): a node that exhausts its
 * budget in one pass waits behind an escalating gate, and the episode is reported once, with the circle's path.
 */
import type { Host } from "../host/host.ts";
import { PASS_RUN_BUDGET, PASS_SLICE_MS } from "../limits.ts";
import { overlap } from "../store/path-operation.ts";
import type { Agenda, Waker } from "./agenda.ts";
import type { NodeWork } from "./closure.ts";
import type { Passes } from "./dispatch.ts";
import type { GateHome, Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { circleThrough, upstream } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";
import type { NodeRecord } from "./node-record.ts";
import type { Holder, Persistence } from "./persistence.ts";
import type { Runner, UpstreamWork } from "./runner.ts";
import type { Turns } from "./turns.ts";

/** Sends that wait to be handled; the events component. */
export interface SendWork {
  readonly hasSends: boolean;
  readonly isIdle: boolean;
  /** Dispatches what is ready; false if nothing has moved. */
  step(): boolean;
}

/** Runs between two looks at the clock. */
const RUNS_PER_LOOK = 128;

export class Settle implements Waker, UpstreamWork, GateHome, Holder, NodeWork, Passes {
  readonly #host: Host;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #runner: Runner;
  readonly #turns: Turns;
  readonly #introspection: Introspection;
  readonly #persistence: Persistence;
  /** Numbers the passes; nodes remember in which they ran last. */
  #pass = 0;
  #tickQueued = false;
  #passing = false;
  /** An asynchronous run; nothing else runs before it has ended. */
  #inFlight: Promise<void> | undefined;
  /** Counts what was waited for; the latest waits for those before it too. */
  #waits = 0;
  /** The pass has given the thread back and goes on in a task of its own. */
  #resting = false;
  /** Created in this pass by runs, demanded until it ends and they have run (§5.3). */
  readonly #provisional = new Set<SchedulerNode>();
  /** Nodes that have exhausted their budget and not settled since: one episode, reported once. */
  readonly #episode = new Set<SchedulerNode>();
  readonly #background = new Set<Promise<unknown>>();
  #idleWaiters: (() => void)[] = [];
  /** Those who do not wait for sends. */
  #quietWaiters: (() => void)[] = [];
  #sends: SendWork | undefined;
  #disposed = false;

  constructor(parts: {
    host: Host;
    graph: Graph;
    agenda: Agenda;
    gates: Gates;
    runner: Runner;
    turns: Turns;
    introspection: Introspection;
    persistence: Persistence;
  }) {
    this.#host = parts.host;
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#runner = parts.runner;
    this.#turns = parts.turns;
    this.#introspection = parts.introspection;
    this.#persistence = parts.persistence;
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
    this.#checkIdle();
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
    this.#inFlight = this.#await(Promise.allSettled([this.#inFlight, work]));
  }

  #begin(sliced: boolean): void {
    if (this.#passing || this.isWaiting || this.#disposed || this.#turns.isTransacting) return;
    this.#turns.publish();
    if (this.#agenda.size === 0 && !this.#sends?.hasSends) return this.#checkIdle();
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
    return moved || this.#agenda.size > 0 || this.#turns.hasUntold;
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
    await this.#runner.takeLoads();
    if (wait !== this.#waits) return;
    this.#inFlight = undefined;
    if (this.#disposed) return this.#checkIdle();
    this.#continue(true);
  }

  #next(): SchedulerNode | undefined {
    if (this.#turns.hasUntold) this.#turns.publish();
    return this.#agenda.primary.first ?? this.#agenda.idle.first;
  }

  /** Runs a node of the agenda, or finds that it may not run now. */
  runNext(node: SchedulerNode): Promise<void> | undefined {
    const mayHaveToWait = node.parent !== undefined || this.#agenda.idle.size > 0 || this.#graph.heights.hasCircles;
    if (mayHaveToWait && this.#comesLater(node)) return undefined;
    this.#agenda.withdraw(node);
    if (node.status === "clean" || !node.live || !node.registered) return undefined;
    if (node.gate !== undefined && this.#gates.hold(node)) return undefined;
    if (node.pass !== this.#pass) {
      node.pass = this.#pass;
      node.passRuns = 0;
    }
    if (node.passRuns >= PASS_RUN_BUDGET) {
      this.#exhausted(node);
      return undefined;
    }
    if (node.record !== undefined && this.#isResumed(node, node.record)) return this.#inFlight;
    node.passRuns++;
    const run = this.#runner.run(node);
    if (run !== undefined) this.#inFlight = this.#await(run);
    else if (this.#runner.loads !== undefined) this.#awaitLoads(node, this.#runner.loads);
    return this.#inFlight;
  }

  /** Whether a resumed node has nothing to run for, or has to wait for what it needs. */
  #isResumed(node: SchedulerNode, record: NodeRecord): boolean {
    if (record.phase === "here") return false;
    const loads = this.#persistence.prepare(node, record);
    if (loads === undefined || loads === "unchanged") return loads !== undefined;
    this.#inFlight = this.#await(loads);
    this.#agenda.offer(node);
    return true;
  }

  /** The run has started over and waits for what it has met; that it had to is not the node's fault. */
  #awaitLoads(node: SchedulerNode, loads: Promise<unknown>): void {
    node.passRuns--;
    this.#inFlight = this.#await(Promise.all([this.#inFlight, loads]));
  }

  /** Whether something turned out that has to run before the node; then the order has been changed. */
  #comesLater(node: SchedulerNode): boolean {
    if (this.#agenda.idle.size > 0 && node.envelope === undefined && this.promoteBefore(node)) return true;
    const { heights } = this.#graph;
    if (heights.hasCircles && heights.isUnordered(node) && heights.retry(node)) return true;
    return node.parent !== undefined && this.#parentFirst(node, node.parent);
  }

  /** A parent may remove its children, so it goes first unless it reads from them (§7.4); true if the child has moved. */
  #parentFirst(child: SchedulerNode, parent: SchedulerNode): boolean {
    if (parent.slot < 0 || parent.height < child.height || upstream(parent).has(child)) return false;
    this.#graph.heights.order(child, parent);
    return child.height > parent.height;
  }

  // For sends (§7.5) ---------------------------------------------------------------------------------------------------

  /** Each send is news from outside: what it makes run may run as often as in a pass of its own. */
  fresh(): void {
    this.#pass++;
  }

  get isUnsettled(): boolean {
    return this.isWaiting || this.#turns.hasUntold;
  }

  finishBefore(node: SchedulerNode): boolean {
    for (;;) {
      if (this.isWaiting) return false;
      if (this.#turns.hasUntold) this.#turns.publish();
      if (this.#agenda.idle.size > 0) this.promoteBefore(node);
      const { first } = this.#agenda.primary;
      if (first === undefined || first.height >= node.height) return true;
      this.runNext(first);
    }
  }

  // Materializers (§4.3) -----------------------------------------------------------------------------------------------

  /** Puts queued materializers whose envelope the node reads before it; true if there were any. */
  promoteBefore(node: SchedulerNode): boolean {
    let promoted = false;
    for (const materializer of [...this.#agenda.idle]) {
      if (!readsInside(node, materializer)) continue;
      // What the materializer reads from the node itself comes first, and then it is the other way round.
      if (upstream(materializer).has(node)) continue;
      this.#graph.heights.order(node, materializer);
      this.#agenda.promote(materializer);
      promoted = true;
    }
    return promoted;
  }

  // Provisional demand (§5.3) --------------------------------------------------------------------------------------------

  provisional(node: SchedulerNode): void {
    node.provisional = true;
    this.#provisional.add(node);
    this.#graph.grant(node);
  }

  forget(node: SchedulerNode): void {
    this.#provisional.delete(node);
    this.#episode.delete(node);
    // A send may have waited for its gate.
    if (this.#sends?.hasSends) this.wake();
    this.#checkIdle();
  }

  #expireProvisional(): void {
    for (const node of this.#provisional) {
      if (node.status === "never-ran") continue;
      this.#provisional.delete(node);
      node.provisional = false;
      this.#graph.withdraw(node);
    }
  }

  // Bounds (§7.7) --------------------------------------------------------------------------------------------------------

  #exhausted(node: SchedulerNode): void {
    const delayMs = this.#gates.exhausted(node);
    this.#agenda.offer(node);
    if (this.#episode.size === 0) this.#introspection.nonSettling(node, circleThrough(node), delayMs);
    this.#episode.add(node);
  }

  /** Nodes that have exhausted their budget and have not come to rest since. */
  get nonSettling(): readonly string[] {
    return [...this.#episode].map(({ id }) => id);
  }

  /** Nodes of an episode that came to rest without exhausting their budget again, or sleep, have settled. */
  #closeEpisode(): void {
    for (const node of this.#episode) {
      if (node.pass === this.#pass && node.passRuns >= PASS_RUN_BUDGET) continue;
      if (node.live && (node.status !== "clean" || node.pass !== this.#pass)) continue;
      this.#episode.delete(node);
      this.#gates.settled(node);
    }
  }

  #end(sliced: boolean): void {
    if (this.#provisional.size > 0) this.#expireProvisional();
    if (this.#agenda.size > 0) return this.#continue(sliced);
    if (this.#episode.size > 0) this.#closeEpisode();
    this.#checkIdle();
  }

  // Idle -----------------------------------------------------------------------------------------------------------------

  get isIdle(): boolean {
    return this.isQuiet && (this.#disposed || (this.#sends?.isIdle ?? true));
  }

  /** Idle, sends aside. */
  get isQuiet(): boolean {
    if (this.#disposed) return !this.isWaiting;
    return (
      !this.#tickQueued &&
      !this.#passing &&
      !this.#resting &&
      !this.isWaiting &&
      this.#agenda.size === 0 &&
      this.#background.size === 0 &&
      !this.#turns.hasUntold &&
      !this.#hasDeferredFirstRun()
    );
  }

  /** A demanded node whose first run waits for a gate; windows of nodes that have run do not count. */
  #hasDeferredFirstRun(): boolean {
    for (const node of this.#gates.held) if (node.status === "never-ran" && node.live) return true;
    return false;
  }

  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  /** Like `idle`, for whoever may be called by a handler: it does not wait for sends. */
  quiet(): Promise<void> {
    if (this.isQuiet) return Promise.resolve();
    return new Promise((resolve) => {
      this.#quietWaiters.push(resolve);
    });
  }

  /** Work outside of the graph that `idle` waits for; failing releases it too. */
  background(work: Promise<unknown>): void {
    const done = () => {
      this.#background.delete(tracked);
      this.#checkIdle();
    };
    const tracked: Promise<unknown> = work.then(done, done);
    this.#background.add(tracked);
  }

  #checkIdle(): void {
    if (this.#quietWaiters.length > 0 && this.isQuiet) for (const resolve of this.#quietWaiters.splice(0)) resolve();
    if (this.#idleWaiters.length === 0 || !this.isIdle) return;
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  dispose(): void {
    this.#disposed = true;
    this.#gates.dispose();
    this.#checkIdle();
  }
}

function readsInside(reader: SchedulerNode, materializer: SchedulerNode): boolean {
  for (let edge = reader.reads; edge !== null; edge = edge.next) {
    for (const place of materializer.envelope ?? []) {
      if (place.home === edge.address.home && overlap(place.path, edge.address.path)) return true;
    }
  }
  return false;
}
