/**
 * The pass (Scheduler v2 §7.1): takes nodes from the agenda, lowest first, and runs them until nothing is left that may run
 * now. One run at a time; an asynchronous one is awaited. Convergence is bounded, not forced (§7.7): a node that exhausts its
 * budget in one pass waits behind an escalating gate, and the episode is reported once, with the circle's path.
 */
import type { Host } from "../host/host.ts";
import { PASS_RUN_BUDGET, PASS_SLICE_MS } from "../limits.ts";
import { overlap } from "../store/path-operation.ts";
import type { Agenda, Waker } from "./agenda.ts";
import type { GateHome, Gates } from "./gates.ts";
import { type Graph, readersOf } from "./graph.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";
import type { Runner, UpstreamWork } from "./runner.ts";
import type { Turns } from "./turns.ts";

/** Runs between two looks at the clock. */
const RUNS_PER_LOOK = 128;

export class Settle implements Waker, UpstreamWork, GateHome {
  readonly #host: Host;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #runner: Runner;
  readonly #turns: Turns;
  readonly #introspection: Introspection;
  /** Numbers the passes; nodes remember in which they ran last. */
  #pass = 0;
  #tickQueued = false;
  #passing = false;
  /** An asynchronous run, or the rest of a pass that gave the thread back. */
  #inFlight: Promise<void> | undefined;
  /** Created in this pass by runs, demanded until it ends and they have run (§5.3). */
  readonly #provisional = new Set<SchedulerNode>();
  /** Nodes that have exhausted their budget and not settled since: one episode, reported once. */
  readonly #episode = new Set<SchedulerNode>();
  readonly #background = new Set<Promise<unknown>>();
  #idleWaiters: (() => void)[] = [];
  #disposed = false;

  constructor(parts: {
    host: Host;
    graph: Graph;
    agenda: Agenda;
    gates: Gates;
    runner: Runner;
    turns: Turns;
    introspection: Introspection;
  }) {
    this.#host = parts.host;
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#runner = parts.runner;
    this.#turns = parts.turns;
    this.#introspection = parts.introspection;
  }

  // Ticks ----------------------------------------------------------------------------------------------------------------

  wake(): void {
    if (this.#tickQueued || this.#passing || this.#inFlight !== undefined || this.#disposed) return;
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

  #begin(sliced: boolean): void {
    if (this.#passing || this.#inFlight !== undefined || this.#disposed) return;
    this.#turns.publish();
    if (this.#agenda.size === 0) return this.#checkIdle();
    this.#pass++;
    this.#continue(sliced);
  }

  #continue(sliced: boolean): void {
    this.#passing = true;
    const until = sliced ? this.#host.monotonic() + PASS_SLICE_MS : Number.POSITIVE_INFINITY;
    let runs = 0;
    let later: Promise<void> | undefined;
    try {
      for (let node = this.#next(); node !== undefined; node = this.#next()) {
        later = this.runNext(node);
        if (later !== undefined) break;
        if (sliced && ++runs % RUNS_PER_LOOK === 0 && this.#host.monotonic() >= until) later = this.#host.yield();
        if (later !== undefined) break;
      }
    } finally {
      this.#passing = false;
    }
    if (later === undefined) return this.#end();
    this.#inFlight = later.then(() => {
      this.#inFlight = undefined;
      if (this.#disposed) return this.#checkIdle();
      this.#turns.publish();
      this.#continue(true);
    });
  }

  #next(): SchedulerNode | undefined {
    if (this.#turns.hasUntold) this.#turns.publish();
    return this.#agenda.primary.first ?? this.#agenda.idle.first;
  }

  /** Runs a node of the agenda, or finds that it may not run now. */
  runNext(node: SchedulerNode): Promise<void> | undefined {
    if (this.#agenda.idle.size > 0 && node.envelope === undefined && this.#promoteBefore(node)) return undefined;
    this.#agenda.withdraw(node);
    if (node.status === "clean" || !node.live || !node.registered) return undefined;
    if (node.pass !== this.#pass) {
      node.pass = this.#pass;
      node.passRuns = 0;
    }
    if (node.passRuns >= PASS_RUN_BUDGET) {
      this.#exhausted(node);
      return undefined;
    }
    node.passRuns++;
    return this.#runner.run(node);
  }

  // Materializers (§4.3) -----------------------------------------------------------------------------------------------

  /** Puts materializers whose envelope the node reads before it; true if there were any. */
  #promoteBefore(node: SchedulerNode): boolean {
    let promoted = false;
    for (const materializer of [...this.#agenda.idle]) {
      if (!readsInside(node, materializer)) continue;
      materializer.height = Math.min(materializer.height, node.height - 1);
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

  /** Nodes of an episode that came to rest without exhausting their budget again have settled. */
  #closeEpisode(): void {
    for (const node of this.#episode) {
      if (node.pass === this.#pass && node.passRuns >= PASS_RUN_BUDGET) continue;
      if (node.status !== "clean" || node.pass !== this.#pass) continue;
      this.#episode.delete(node);
      this.#gates.settled(node);
    }
  }

  #end(): void {
    this.#expireProvisional();
    if (this.#agenda.size > 0) return this.#continue(true);
    if (this.#episode.size > 0) this.#closeEpisode();
    this.#checkIdle();
  }

  // Idle -----------------------------------------------------------------------------------------------------------------

  get isIdle(): boolean {
    if (this.#disposed) return this.#inFlight === undefined;
    return (
      !this.#tickQueued &&
      !this.#passing &&
      this.#inFlight === undefined &&
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

/** A way from the node back to itself along live reads, for the report; just the node where there is none. */
function circleThrough(start: SchedulerNode): SchedulerNode[] {
  const from = new Map<SchedulerNode, SchedulerNode>();
  const open = [start];
  for (let node = open.shift(); node !== undefined; node = open.shift()) {
    for (const reader of readersOf(node)) {
      if (reader === start) {
        const path = [start];
        for (let at: SchedulerNode | undefined = node; at !== undefined && at !== start; at = from.get(at))
          path.push(at);
        return [start, ...path.slice(1).reverse()];
      }
      if (from.has(reader)) continue;
      from.set(reader, node);
      open.push(reader);
    }
  }
  return [start];
}
