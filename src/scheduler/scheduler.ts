/**
 * The facade of the scheduler: the public API of Scheduler v2 (§13). Each operation belongs to the component that owns
 * its data; `components.ts` composes them.
 *
 * ```
 *   registry   nodes                   gates          earliest times of runs
 *   graph      reads and writes        agenda         nodes that must run
 *   invalidation  changes  ──────> agenda ──────> settle ──> runner ──> turns ──> replica, store
 *                      ^───────────────────────────────────────────┘  (a run's writes are changes too)
 *   events     sends ──> dispatch ──> the stream's handler ──> replica, store ──> answers
 * ```
 * SPEC: I1-I11 and R.
 */
import { asyncContext } from "../host/async-context.ts";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { INSPECT } from "../message/inspect.ts";
import { narrowed } from "../store/clearance.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Attempt, AttemptKind } from "../work/attempt.ts";
import { labelSeen } from "./address-label.ts";
import { AttemptDemand } from "./attempt-views.ts";
import { type Components, compose } from "./components.ts";
import { type Diagnosis, diagnose, requireConsistent, type SchedulerStats, statsOf } from "./diagnosis.ts";
import type { QueueSnapshot } from "./events.ts";
import type { ActionStats, ErrorListener, NodeSnapshot, WhyNot, WhyStep } from "./introspection.ts";
import type { NodeAddress, NodeSpec, SchedulerNode } from "./node.ts";
import type { Runner } from "./runner.ts";
import type { SendOptions, Sent } from "./send.ts";
import type { Settle } from "./settle.ts";
import type { TraceEntry, TraceTopic } from "./trace.ts";
import { letGoOfRuns, tellUnfinished } from "./unfinished.ts";

/** Runs computed values and effects after a change, and says why. */
export class Scheduler implements Disposable {
  /** Its components. They may change in any version; the methods of this class are the API. */
  readonly parts: Components;
  /** Calls of confirmed observers that wait for the store. */
  readonly #deliveries = new Set<Promise<void>>();
  /** Direct references, because every read, write and flush uses them. */
  readonly #runner: Runner;
  readonly #settle: Settle;
  /** Calls of `batch` that have not returned. */
  #batches = 0;

  constructor({ host = systemHost() }: { host?: Host } = {}) {
    this.parts = compose(host);
    this.#runner = this.parts.runner;
    this.#settle = this.parts.settle;
  }

  // Addresses, reads and writes
  // -----------------------------------------------------------------------------------------

  /** Whether a read repeats one of the present run; see `Run.repeats`. */
  repeats(address: NodeAddress): boolean {
    const run = this.#runner.current;
    return run === null || this.#runner.isUntracked ? false : run.repeats(address);
  }

  /** Runs code whose reads register no dependency. */
  untracked<T>(code: () => T): T {
    return this.#runner.untracked(code);
  }

  /** Removes an object's key, or a document. */
  erase(address: NodeAddress): void {
    this.#runner.targetFor(address).remove(address);
  }

  /** Adds elements at the end of an array, which is created if it is absent. */
  append(address: NodeAddress, items: readonly unknown[]): void {
    this.#runner.targetFor(address).append(address, items);
  }

  splice(address: NodeAddress, index: number, remove: number, insert: readonly unknown[]): void {
    this.#runner.targetFor(address).splice(address, index, remove, insert);
  }

  /** The running node. */
  get running(): SchedulerNode | undefined {
    return this.#runner.current?.node;
  }

  /** Runs code that belongs to no run and no handler: its reads register no edges, its writes are plain. */
  outsideRuns<T>(code: () => T): T {
    return this.#runner.outsideRuns(() => this.outside(code));
  }

  /** Calls that wait for the store; `settled` waits for them, `idle` does not. */
  delivers(calls: Promise<void>): void {
    this.#deliveries.add(calls);
    void calls.finally(() => this.#deliveries.delete(calls));
  }

  /** Whether the running node has read a document that is still to be loaded. */
  get isEarly(): boolean {
    return this.#runner.current?.isEarly ?? false;
  }

  /** A marker that changes when the present run writes, or reads a new place. */
  get runMark(): object | null {
    const run = this.#runner.current;
    return run === null ? null : (run.unit ?? run.tail);
  }

  /** Runs synchronous code as part of an attempt, even while a node runs. */
  within<T>(attempt: Attempt, code: () => T): T {
    return this.#runner.outsideRuns(() => attempt.within(code));
  }

  /** The kind of a handler's attempts: they continue if a document is missing, and wait for computed values. */
  attemptsOf(name: string, clearance: Label | undefined, options?: Partial<AttemptKind>): AttemptKind {
    const { views, host, reading } = this.parts;
    const demand = () => new AttemptDemand(reading, name);
    const of = clearance === undefined ? {} : { clearance };
    return {
      ...{ views, host, name, ...of, demand },
      ...{ onMissing: "go-on", onBehind: "abandon", otherSpaces: "read", ...options },
    };
  }

  /** Runs code that is not part of the calling handler. */
  outside<T>(code: () => T): T {
    const runner = this.#runner;
    const outer = runner.attempt;
    runner.attempt = null;
    try {
      return asyncContext.clear(code);
    } finally {
      runner.attempt = outer;
    }
  }

  // Streams
  // --------------------------------------------------------------------------------------------------------------

  /** Whether sends of effects wait until the state that the effect has read is confirmed. */
  holdsSends = false;

  /** Sends a value to the stream at an address; a send of a handler or a transaction exists only if that commits. */
  queueEvent(stream: NodeAddress, value: unknown, options: SendOptions = {}): Sent {
    const { events, introspection } = this.parts;
    const record = events.stream(stream);
    const standing = this.holdsSends && options.origin === undefined ? this.#runner.standing() : undefined;
    const sent = events.send(record, value, options, standing);
    if (standing !== undefined) this.delivers(standing.then(() => undefined));
    introspection.sent(record, sent, this.running?.id ?? this.attempt?.id);
    return sent;
  }

  /** The attempt of a handler whose code executes. */
  get attempt(): Attempt | undefined {
    return this.#runner.current === null ? (this.#runner.active ?? undefined) : undefined;
  }

  getQueues(): readonly QueueSnapshot[] {
    return this.parts.events.snapshot();
  }

  // Labels
  // ---------------------------------------------------------------------------------------------------------------

  /** The label of a deep read at the address. */
  labelAt(address: NodeAddress): Label {
    return labelSeen(address, false);
  }

  // Lifecycle
  // ------------------------------------------------------------------------------------------------------------

  register(spec: NodeSpec): SchedulerNode {
    return this.parts.lifecycle.register(spec);
  }

  /** Removes a node, and the nodes that its runs created. */
  remove(node: SchedulerNode): void {
    this.parts.lifecycle.remove(node);
  }

  /**
   * Resumes the computations that the code registers (§9.2): they do not run if their inputs are unchanged. Resolves
   * when all are looked up; no node runs until then.
   */
  resume<T>(build: () => T): Promise<T> {
    return this.parts.persistence.resume(build);
  }

  /** Removes the nodes that write into a space, which is about to close. */
  removeWritersOf(replica: Replica): void {
    const { lifecycle, registry } = this.parts;
    for (const node of [...registry.all()]) if (writesInto(node, replica)) lifecycle.remove(node);
  }

  /** Forgets a closed space. */
  detach(replica: Replica): void {
    const { documents, invalidation, persistence, turns } = this.parts;
    documents.forget(replica);
    invalidation.detach(replica);
    persistence.forget(replica);
    turns.forget(replica);
  }

  /** Reports the unfinished work of a space that is about to close. */
  tellUnfinished(replica: Replica, graceMs: number): void {
    tellUnfinished(this.parts, replica, graceMs);
  }

  /** Disposes without waiting for unfinished runs, which leave no effect. */
  abandon(): void {
    letGoOfRuns(this.parts);
    this.dispose();
  }

  dispose(): void {
    const { events, invalidation, persistence, settle } = this.parts;
    events.close();
    invalidation.dispose();
    persistence.dispose();
    settle.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  [INSPECT](): string {
    return `Scheduler of ${this.parts.registry.size} nodes`;
  }

  // Demand and flow
  // ------------------------------------------------------------------------------------------------------

  /** Runs the synchronous work now; inside `batch`, at its end. */
  flush(): void {
    if (this.#runner.attempt !== null) throw flushedInside();
    if (this.#batches === 0) this.#flush();
  }

  /** The runs are not part of a handler that calls `flush`. */
  #flush(): void {
    if (asyncContext.get() === undefined) this.#settle.flush();
    else asyncContext.clear(() => this.#settle.flush());
  }

  /** Runs code and settles once at its end, even if it throws. */
  batch<T>(code: () => T): T {
    this.#batches++;
    try {
      return code();
    } finally {
      this.#batches--;
      if (this.#batches === 0 && this.#runner.attempt === null) this.#flush();
    }
  }

  /** Resolves when no node can run and none is about to; gates of nodes that have run do not count. */
  idle(): Promise<void> {
    return this.#runner.waitsForRest(() => this.parts.quiescence.idle());
  }

  /** Whether `idle` would resolve at once. */
  get isIdle(): boolean {
    return this.parts.quiescence.isIdle;
  }

  /**
   * Resolves when the scheduler is idle, every commit has an outcome, and derived values are stored. Commits that
   * follow from an outcome count too.
   */
  async settled(): Promise<void> {
    const { documents, persistence } = this.parts;
    do {
      await this.idle();
      await documents.settled();
      await Promise.all(this.#deliveries);
      await this.idle();
      await persistence.flush();
    } while (documents.hasPendingCommits || this.#deliveries.size > 0);
  }

  /** The result of `read` once its inputs are loaded and up to date: demands them, waits, and withdraws the demand. */
  pullOnce<T>(read: () => T, clearance?: readonly string[]): Promise<T> {
    const within = narrowed(clearance);
    // A handler may pull, because a pull does not wait for sends.
    return this.#runner.waitsForRest(() => this.parts.pull.once(read, within), null);
  }

  // Gates
  // ----------------------------------------------------------------------------------------------------------------

  setDebounce(node: SchedulerNode, ms: number): void {
    this.parts.gates.setDebounce(node, ms);
    this.parts.persistence.changed(node);
  }

  clearDebounce(node: SchedulerNode): void {
    this.parts.gates.setDebounce(node, 0);
    this.parts.persistence.changed(node);
  }

  setThrottle(node: SchedulerNode, ms: number): void {
    this.parts.gates.setThrottle(node, ms);
    this.parts.persistence.changed(node);
  }

  clearThrottle(node: SchedulerNode): void {
    this.parts.gates.setThrottle(node, 0);
    this.parts.persistence.changed(node);
  }

  setNoAutoDebounce(node: SchedulerNode, off: boolean): void {
    this.parts.gates.setNoAutoDebounce(node, off);
    this.parts.persistence.changed(node);
  }

  /** Holds a node before its next run until the breakpoint is removed. */
  setBreakpoint(node: SchedulerNode, on: boolean): void {
    this.parts.gates.setBreakpoint(node, on);
  }

  // Introspection
  // --------------------------------------------------------------------------------------------------------

  getGraphSnapshot(): readonly NodeSnapshot[] {
    return this.parts.introspection.snapshot();
  }

  getStats(): SchedulerStats {
    return statsOf(this.parts);
  }

  getActionStats(): readonly ActionStats[] {
    return this.parts.introspection.actionStats();
  }

  /** Violated invariants and misbehaving nodes. */
  runDiagnosis(): Diagnosis {
    return diagnose(this.parts);
  }

  /** Throws if an invariant is violated. Must not be called during a run. */
  checkInvariants(): void {
    requireConsistent(this.parts);
  }

  find(id: string): SchedulerNode | undefined {
    return this.parts.registry.find(id);
  }

  /** Turns one topic of `getTrace` on or off. */
  setTraceEnabled(topic: TraceTopic, on: boolean): void {
    this.parts.trace[topic].on = on;
  }

  getTrace(topic: TraceTopic = "run"): readonly TraceEntry[] {
    return this.parts.trace[topic].entries;
  }

  why(id: string): readonly WhyStep[] {
    return this.parts.introspection.why(id);
  }

  whyNot(id: string): WhyNot {
    return this.parts.introspection.whyNot(id);
  }

  get notIdempotent(): readonly string[] {
    return this.parts.introspection.notIdempotent;
  }

  onError(listener: ErrorListener): () => void {
    return this.parts.introspection.onError(listener);
  }

  onConsole(listener: (line: string) => void): () => void {
    return this.parts.introspection.onConsole(listener);
  }
}

function writesInto({ outputIn, outputs, envelope }: SchedulerNode, replica: Replica): boolean {
  if (outputIn === replica) return true;
  return [...outputs, ...(envelope ?? [])].some(({ home }) => home.replica === replica);
}

function flushedInside(): StoreError {
  return new StoreError("STORE_MISUSE", "a transaction cannot settle the scheduler; call flush after it");
}
