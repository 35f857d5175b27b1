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
import type { Json } from "../message/json.ts";
import { narrowed } from "../store/clearance.ts";
import type { DocumentRef } from "../store/document.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Attempt, AttemptKind } from "../work/attempt.ts";
import type { Launch } from "../work/lineage.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { labelSeen } from "./address-label.ts";
import { AttemptDemand } from "./attempt-views.ts";
import { type Components, compose } from "./components.ts";
import { type Diagnosis, diagnose, requireConsistent, type SchedulerStats, statsOf } from "./diagnosis.ts";
import type { HandlerLoader } from "./dispatch.ts";
import type { QueueSnapshot } from "./events.ts";
import type { ActionStats, ErrorListener, NodeSnapshot, WhyNot, WhyStep } from "./introspection.ts";
import type { Address, NodeSpec, SchedulerNode } from "./node.ts";
import type { Persisted } from "./node-state.ts";
import type { Runner } from "./runner.ts";
import type { SendOptions, Sent } from "./send.ts";
import type { Settle } from "./settle.ts";
import type { EventHandler, HandlerOptions } from "./stream-handler.ts";
import type { TraceEntry, TraceTopic } from "./trace.ts";
import { letGoOfRuns, tellUnfinished } from "./unfinished.ts";

/** Runs computed values and effects after a change, and says why. */
export class Scheduler implements Disposable {
  readonly #components: Components;
  /** Calls of confirmed observers that wait for the store. */
  readonly #deliveries = new Set<Promise<void>>();
  /** Direct references, because every read, write and flush uses them. */
  readonly #runner: Runner;
  readonly #settle: Settle;
  /** Calls of `batch` that have not returned. */
  #batches = 0;

  constructor({ host = systemHost() }: { host?: Host } = {}) {
    this.#components = compose(host);
    this.#runner = this.#components.runner;
    this.#settle = this.#components.settle;
  }

  // Addresses, reads and writes
  // -----------------------------------------------------------------------------------------

  /** The address of a document's root. Loads no document. */
  document(replica: Replica, ref: DocumentRef): Address {
    return this.#components.documents.root(replica, ref);
  }

  /** The current address of the same place, for one that is `gone`. */
  again(address: Address): Address {
    return this.#components.documents.again(address);
  }

  /** Keeps a document that no store has, as long as the node is registered. */
  keepFor(node: SchedulerNode, address: Address): void {
    this.#components.documents.keepFor(node, address);
  }

  /** The place of a computation's result. */
  outputOf(node: SchedulerNode): Address | undefined {
    return this.#components.documents.outputOf(node);
  }

  /** The value as the executing code sees it, without a registered read: a handler sees its own writes. */
  glance(address: Address): Json | undefined {
    return this.#runner.glance(address);
  }

  /** Reads; inside a run the read is registered. */
  read(address: Address, shallow = false): Json | undefined {
    return this.#runner.read(address, shallow);
  }

  /** Whether a read repeats one of the present run; see `Run.repeats`. */
  repeats(address: Address): boolean {
    const run = this.#runner.current;
    return run === null || this.#runner.isUntracked ? false : run.repeats(address);
  }

  /** Runs code whose reads register no dependency. */
  untracked<T>(code: () => T): T {
    return this.#runner.untracked(code);
  }

  write(address: Address, value: unknown): void {
    this.#runner.write(address, value);
  }

  /** Removes an object's key, or a document. */
  erase(address: Address): void {
    this.#runner.targetFor(address).remove(address);
  }

  /** Adds elements at the end of an array, which is created if it is absent. */
  append(address: Address, items: readonly unknown[]): void {
    this.#runner.targetFor(address).append(address, items);
  }

  splice(address: Address, index: number, remove: number, insert: readonly unknown[]): void {
    this.#runner.targetFor(address).splice(address, index, remove, insert);
  }

  /** Makes the next write depend on a read here: it is rejected if the place turns out not to be absent. */
  restOn(address: Address): void {
    this.#runner.restOn(address);
  }

  /**
   * Writes a document that the running node derives besides its output. Like an output it is recomputable, visible at
   * once, and in no commit.
   */
  derive(address: Address, value: unknown): void {
    this.#runner.derive(address, value);
  }

  /** The running node. */
  get running(): SchedulerNode | undefined {
    return this.#runner.current?.node;
  }

  /** Whether the state that the present run has read is confirmed; undefined if the store has all of it. */
  standing(): Promise<boolean> | undefined {
    return this.#runner.standing();
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

  /** Whether the executing code reads by `untracked` or `peek`. */
  get isUntracked(): boolean {
    return this.#runner.isUntracked;
  }

  /** Whether a transaction that begins now is part of a node's run or of an attempt. */
  get isUnderWay(): boolean {
    return this.#components.attempts.isUnderWay;
  }

  /** Runs synchronous code as part of the current run or attempt: if it throws, its writes are rolled back. */
  transactInside<T>(code: (attempt: Attempt | undefined) => T): T {
    return this.#components.attempts.transactInside(code);
  }

  /** Runs synchronous code as part of an attempt, even while a node runs. */
  within<T>(attempt: Attempt, code: () => T): T {
    return this.#runner.outsideRuns(() => attempt.within(code));
  }

  /** The kind of a handler's attempts: they continue if a document is missing, and wait for computed values. */
  attemptsOf(name: string, clearance: Label | undefined, options?: Partial<AttemptKind>): AttemptKind {
    const { views, host, reading } = this.#components;
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
  queueEvent(stream: Address, value: unknown, options: SendOptions = {}): Sent {
    const { events, introspection } = this.#components;
    const record = events.stream(stream);
    const standing = this.holdsSends && options.origin === undefined ? this.standing() : undefined;
    const sent = events.send(record, value, options, standing);
    if (standing !== undefined) this.delivers(standing.then(() => undefined));
    introspection.sent(record, sent, this.running?.id ?? this.attempt?.id);
    return sent;
  }

  /** Registers the one handler of a stream; the returned function removes it. */
  addEventHandler(handler: EventHandler, stream: Address, options: HandlerOptions = {}): () => void {
    return this.#components.events.addHandler(this.#components.events.stream(stream), handler, options);
  }

  /** Closes the stream until a handler is registered again: its sends are dropped and do not wait. */
  closeStream(stream: Address, why: string): void {
    this.#components.events.closeStream(this.#components.events.stream(stream), why);
  }

  /** Loads handlers by the stream's link; without a loader, sends wait until a handler is registered. */
  set handlerLoader(loader: HandlerLoader | undefined) {
    this.#components.events.handlerLoader = loader;
  }

  /** Lists the running asynchronous stream handlers. */
  set board(board: WorkBoard | undefined) {
    this.#components.events.board = board;
  }

  /**
   * Ties work to the current attempt or transaction, whose commit calls back when it is applied, confirmed or failed.
   * False if there is none.
   */
  launch(launch: Launch): boolean {
    return this.#components.events.launch(launch);
  }

  /** The attempt of a handler whose code executes. */
  get attempt(): Attempt | undefined {
    return this.#runner.current === null ? (this.#runner.active ?? undefined) : undefined;
  }

  getQueues(): readonly QueueSnapshot[] {
    return this.#components.events.snapshot();
  }

  /** Drops the waiting sends of a space that is about to close. */
  closeStreams(replica: Replica): void {
    this.#components.events.close(replica);
  }

  // Labels
  // ---------------------------------------------------------------------------------------------------------------

  /** The label of a deep read at the address. */
  labelAt(address: Address): Label {
    return labelSeen(address, false);
  }

  /** Adds labels to a place in memory only, without a commit. */
  declareLabel(address: Address, label: Label): void {
    this.#components.flow.declare(address, label);
  }

  undeclareLabel(address: Address, names: readonly string[]): void {
    this.#components.flow.undeclare(address, names);
  }

  // Lifecycle
  // ------------------------------------------------------------------------------------------------------------

  register(spec: NodeSpec): SchedulerNode {
    return this.#components.lifecycle.register(spec);
  }

  /** The run of its creator makes a computation again, with another function. */
  remake(node: SchedulerNode, compute: NodeSpec["run"], persisted: Persisted | undefined): void {
    this.#components.lifecycle.remake(node, compute, persisted);
  }

  /** Removes a node, and the nodes that its runs created. */
  remove(node: SchedulerNode): void {
    this.#components.lifecycle.remove(node);
  }

  /** Removes a node for good, with its stored row and output. */
  discard(node: SchedulerNode): void {
    this.#components.lifecycle.discard(node);
  }

  /**
   * Resumes the computations that the code registers (§9.2): they do not run if their inputs are unchanged. Resolves
   * when all are looked up; no node runs until then.
   */
  resume<T>(build: () => T): Promise<T> {
    return this.#components.persistence.resume(build);
  }

  /** Removes the nodes that write into a space, which is about to close. */
  removeWritersOf(replica: Replica): void {
    const { lifecycle, registry } = this.#components;
    for (const node of [...registry.all()]) if (writesInto(node, replica)) lifecycle.remove(node);
  }

  /** Forgets a closed space. */
  detach(replica: Replica): void {
    const { documents, invalidation, persistence, turns } = this.#components;
    documents.forget(replica);
    invalidation.detach(replica);
    persistence.forget(replica);
    turns.forget(replica);
  }

  /** Reports the unfinished work of a space that is about to close. */
  tellUnfinished(replica: Replica, graceMs: number): void {
    tellUnfinished(this.#components, replica, graceMs);
  }

  /** Disposes without waiting for unfinished runs, which leave no effect. */
  abandon(): void {
    letGoOfRuns(this.#components);
    this.dispose();
  }

  dispose(): void {
    const { events, invalidation, persistence, settle } = this.#components;
    events.close();
    invalidation.dispose();
    persistence.dispose();
    settle.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  [INSPECT](): string {
    return `Scheduler of ${this.#components.registry.size} nodes`;
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
    return this.#runner.waitsForRest(() => this.#components.quiescence.idle());
  }

  /** Whether `idle` would resolve at once. */
  get isIdle(): boolean {
    return this.#components.quiescence.isIdle;
  }

  /**
   * Resolves when the scheduler is idle, every commit has an outcome, and derived values are stored. Commits that
   * follow from an outcome count too.
   */
  async settled(): Promise<void> {
    const { documents, persistence } = this.#components;
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
    return this.#runner.waitsForRest(() => this.#components.pull.once(read, within), null);
  }

  /** Work outside of the graph that `idle` waits for. */
  background(work: Promise<unknown>): void {
    this.#components.quiescence.background(work);
  }

  // Gates
  // ----------------------------------------------------------------------------------------------------------------

  setDebounce(node: SchedulerNode, ms: number): void {
    this.#components.gates.setDebounce(node, ms);
    this.#components.persistence.changed(node);
  }

  clearDebounce(node: SchedulerNode): void {
    this.#components.gates.setDebounce(node, 0);
    this.#components.persistence.changed(node);
  }

  setThrottle(node: SchedulerNode, ms: number): void {
    this.#components.gates.setThrottle(node, ms);
    this.#components.persistence.changed(node);
  }

  clearThrottle(node: SchedulerNode): void {
    this.#components.gates.setThrottle(node, 0);
    this.#components.persistence.changed(node);
  }

  setNoAutoDebounce(node: SchedulerNode, off: boolean): void {
    this.#components.gates.setNoAutoDebounce(node, off);
    this.#components.persistence.changed(node);
  }

  /** Holds a node before its next run until the breakpoint is removed. */
  setBreakpoint(node: SchedulerNode, on: boolean): void {
    this.#components.gates.setBreakpoint(node, on);
  }

  // Introspection
  // --------------------------------------------------------------------------------------------------------

  getGraphSnapshot(): readonly NodeSnapshot[] {
    return this.#components.introspection.snapshot();
  }

  getStats(): SchedulerStats {
    return statsOf(this.#components);
  }

  getActionStats(): readonly ActionStats[] {
    return this.#components.introspection.actionStats();
  }

  /** Violated invariants and misbehaving nodes. */
  runDiagnosis(): Diagnosis {
    return diagnose(this.#components);
  }

  /** Throws if an invariant is violated. Must not be called during a run. */
  checkInvariants(): void {
    requireConsistent(this.#components);
  }

  /** The computation that writes the document of this id. */
  computationOf(replica: Replica, id: string): SchedulerNode | undefined {
    return this.#components.documents.computationOf(replica, id);
  }

  find(id: string): SchedulerNode | undefined {
    return this.#components.registry.find(id);
  }

  /** Turns one topic of `getTrace` on or off. */
  setTraceEnabled(topic: TraceTopic, on: boolean): void {
    this.#components.trace[topic].on = on;
  }

  getTrace(topic: TraceTopic = "run"): readonly TraceEntry[] {
    return this.#components.trace[topic].entries;
  }

  why(id: string): readonly WhyStep[] {
    return this.#components.introspection.why(id);
  }

  whyNot(id: string): WhyNot {
    return this.#components.introspection.whyNot(id);
  }

  /** Makes every computation run twice, to check that it writes the same; for tests. */
  set idempotencyCheck(on: boolean) {
    this.#components.introspection.checksIdempotency = on;
  }

  get notIdempotent(): readonly string[] {
    return this.#components.introspection.notIdempotent;
  }

  /** Tells the error listeners of an error that belongs to no node. */
  report(error: unknown): void {
    this.#components.introspection.report(error, undefined);
  }

  onError(listener: ErrorListener): () => void {
    return this.#components.introspection.onError(listener);
  }

  onConsole(listener: (line: string) => void): () => void {
    return this.#components.introspection.onConsole(listener);
  }
}

function writesInto({ outputIn, outputs, envelope }: SchedulerNode, replica: Replica): boolean {
  if (outputIn === replica) return true;
  return [...outputs, ...(envelope ?? [])].some(({ home }) => home.replica === replica);
}

function flushedInside(): StoreError {
  return new StoreError("STORE_MISUSE", "a transaction cannot settle the scheduler; call flush after it");
}
