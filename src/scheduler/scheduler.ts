/**
 * Scheduler v2 as others see it: every operation of its public API (§13), each handed to the component that owns what it is about. It
 * holds no state of its own, and no component knows it; `components.ts` puts them together.
 *
 * ```
 *   registry   who there is             gates          when they may run
 *   graph      who reads and writes     agenda         what there is to do
 *   invalidation  what changed  ──────> agenda ──────> settle ──> runner ──> turns ──> replica, store
 *                        ^───────────────────────────────────────────┘  (a run's writes are changes like any other)
 *   events     what was sent ──> dispatch ──> the stream's handler ──> replica, store ──> answers
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
import type { Address } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import { AttemptDemand } from "./attempt-demand.ts";
import { type Components, compose } from "./components.ts";
import { type Diagnosis, diagnose, requireConsistent, type SchedulerStats, statsOf } from "./diagnosis.ts";
import type { HandlerLoader } from "./dispatch.ts";
import type { QueueSnapshot } from "./events.ts";
import type { ActionStats, ErrorListener, NodeSnapshot, WhyNot, WhyStep } from "./introspection.ts";
import type { NodeSpec, SchedulerNode } from "./node.ts";
import type { Persisted } from "./node-record.ts";
import type { Runner } from "./runner.ts";
import type { SendOptions, Sent } from "./send.ts";
import type { Settle } from "./settle.ts";
import type { EventHandler, HandlerOptions } from "./stream-record.ts";
import type { TraceEntry, TraceTopic } from "./trace.ts";
import { letGoOfRuns, tellUnfinished } from "./unfinished.ts";

export class Scheduler implements Disposable {
  readonly #components: Components;
  /** Calls of confirmed observers that wait for the store. */
  readonly #deliveries = new Set<Promise<void>>();
  /** One step nearer: every read, every write and every flush goes there. */
  readonly #runner: Runner;
  readonly #settle: Settle;
  /** Calls of `batch` that have not returned. */
  #batches = 0;

  constructor({ host = systemHost() }: { host?: Host } = {}) {
    this.#components = compose(host);
    this.#runner = this.#components.runner;
    this.#settle = this.#components.settle;
  }

  // Addresses, reads and writes -----------------------------------------------------------------------------------------

  /** The address of a document's root; `at` goes down from there. Loads nothing. */
  document(replica: Replica, ref: DocumentRef): Address {
    return this.#components.documents.root(replica, ref);
  }

  /** The address of the same place now, for whoever has kept one that is `gone`. */
  again(address: Address): Address {
    return this.#components.documents.again(address);
  }

  /** Keeps a document here, which no store has, for as long as the node is registered. */
  keepFor(node: SchedulerNode, address: Address): void {
    this.#components.documents.keepFor(node, address);
  }

  /** Where a computation's result goes. */
  outputOf(node: SchedulerNode): Address | undefined {
    return this.#components.documents.outputOf(node);
  }

  /** The value as the code that runs now sees it, without reading it: a handler sees its own writes. */
  glance(address: Address): Json | undefined {
    return this.#runner.glance(address);
  }

  /** Reads; inside a run the read is registered. */
  read(address: Address, shallow = false): Json | undefined {
    return this.#runner.read(address, shallow);
  }

  /** Whether the read is one of those that the run has made before: then it is made, and the value is what lies there. */
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

  /** Adds elements at the end of an array, which is made if there is none. */
  append(address: Address, items: readonly unknown[]): void {
    this.#runner.targetFor(address).append(address, items);
  }

  splice(address: Address, index: number, remove: number, insert: readonly unknown[]): void {
    this.#runner.targetFor(address).splice(address, index, remove, insert);
  }

  /** What is written next follows from what was read here: does not last if there is something that was not here to be read. */
  restOn(address: Address): void {
    this.#runner.restOn(address);
  }

  /**
   * Writes a document that the running node derives besides its output. Like an output it is recomputable: it is there at once
   * for every reader here and is no commit of its own.
   */
  derive(address: Address, value: unknown): void {
    this.#runner.derive(address, value);
  }

  /** The node that runs now, where one does. */
  get running(): SchedulerNode | undefined {
    return this.#runner.current?.node;
  }

  /** Whether the state that the present run has read lasts, once that is known; undefined where the store has all of it. */
  standing(): Promise<boolean> | undefined {
    return this.#runner.standing();
  }

  /** Runs code that belongs to no run and to no handler: its reads register nowhere, its writes are plain. */
  outsideRuns<T>(code: () => T): T {
    return this.#runner.outsideRuns(() => this.outside(code));
  }

  /** Calls that wait for the store; `settled` waits for them, `idle` does not. */
  delivers(calls: Promise<void>): void {
    this.#deliveries.add(calls);
    void calls.finally(() => this.#deliveries.delete(calls));
  }

  /** Whether the run that executes now has read a document that is still to be loaded. */
  get isEarly(): boolean {
    return this.#runner.current?.isEarly ?? false;
  }

  /** Another after code of the run that executes now has read a place that the run had not, or has written. */
  get runMark(): object | null {
    const run = this.#runner.current;
    return run === null ? null : (run.unit ?? run.tail);
  }

  /** Whether a transaction that begins now is a part of a node's run or of an attempt. */
  get isUnderWay(): boolean {
    return this.#components.attempts.isUnderWay;
  }

  /** Runs synchronous code as a part of the run or the attempt that is under way: if it throws, its writes are taken back. */
  transactInside<T>(code: (attempt: Attempt | undefined) => T): T {
    return this.#components.attempts.transactInside(code);
  }

  /** Runs synchronous code as a part of an attempt, also where a node runs. */
  within<T>(attempt: Attempt, code: () => T): T {
    return this.#runner.outsideRuns(() => attempt.within(code));
  }

  /** The kind of the attempts of a handler: they read on where documents are missing, and wait for computed values. */
  attemptsOf(name: string, clearance: Label | undefined, options?: Partial<AttemptKind>): AttemptKind {
    const { views, host, reading } = this.#components;
    const demand = () => new AttemptDemand(reading, name);
    const of = clearance === undefined ? {} : { clearance };
    return {
      ...{ views, host, name, ...of, demand },
      ...{ onMissing: "go-on", onBehind: "abandon", otherSpaces: "read", ...options },
    };
  }

  /** Runs code that is no part of the handler that has called it. */
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

  // Streams --------------------------------------------------------------------------------------------------------------

  /** Whether sends of effects wait until the state that the effect has read is confirmed. */
  holdsSends = false;

  /** Sends a value to the stream at an address; inside a handler or a transaction it lives only if that commits. */
  queueEvent(stream: Address, value: unknown, options: SendOptions = {}): Sent {
    const { events, introspection } = this.#components;
    const record = events.stream(stream);
    const standing = this.holdsSends && options.origin === undefined ? this.standing() : undefined;
    const sent = events.send(record, value, options, standing);
    if (standing !== undefined) this.delivers(standing.then(() => undefined));
    introspection.sent(record, sent, this.running?.id ?? this.attempt?.id);
    return sent;
  }

  /** Registers the one handler of a stream; the returned function takes it away. */
  addEventHandler(handler: EventHandler, stream: Address, options: HandlerOptions = {}): () => void {
    return this.#components.events.addHandler(this.#components.events.stream(stream), handler, options);
  }

  /** Nobody will handle the stream, until a handler is registered again: what is sent to it is dropped and not kept waiting. */
  closeStream(stream: Address, why: string): void {
    this.#components.events.closeStream(this.#components.events.stream(stream), why);
  }

  /** Finds handlers that are not registered yet, by the stream's link; without it, sends wait until one is registered. */
  set handlerLoader(loader: HandlerLoader | undefined) {
    this.#components.events.handlerLoader = loader;
  }

  /** Lists the asynchronous stream handlers that run. */
  set board(board: WorkBoard | undefined) {
    this.#components.events.board = board;
  }

  /**
   * Ties work to the handler's attempt, or the transaction, whose code runs now: it is told when that commit is applied, confirmed,
   * or has failed. False where none runs, and the work is not tied to anything.
   */
  launch(launch: Launch): boolean {
    return this.#components.events.launch(launch);
  }

  /** The attempt of a handler whose code runs now, where one does. */
  get attempt(): Attempt | undefined {
    return this.#runner.current === null ? (this.#runner.active ?? undefined) : undefined;
  }

  getQueues(): readonly QueueSnapshot[] {
    return this.#components.events.snapshot();
  }

  /** Drops what waits for handlers of a space that is about to close. */
  closeStreams(replica: Replica): void {
    this.#components.events.close(replica);
  }

  // Labels ---------------------------------------------------------------------------------------------------------------

  /** What a read of all that lies there is labelled with. */
  labelAt(address: Address): Label {
    return labelSeen(address, false);
  }

  /** Labels a place with more than it is labelled with; here and now, and not in the store. */
  declareLabel(address: Address, label: Label): void {
    this.#components.flow.declare(address, label);
  }

  undeclareLabel(address: Address, names: readonly string[]): void {
    this.#components.flow.undeclare(address, names);
  }

  // Lifecycle ------------------------------------------------------------------------------------------------------------

  register(spec: NodeSpec): SchedulerNode {
    return this.#components.lifecycle.register(spec);
  }

  /** The run of its creator makes a computation again, with another function. */
  remake(node: SchedulerNode, compute: NodeSpec["run"], persisted: Persisted | undefined): void {
    this.#components.lifecycle.remake(node, compute, persisted);
  }

  /** Removes a node, and what its runs have created. */
  remove(node: SchedulerNode): void {
    this.#components.lifecycle.remove(node);
  }

  /** Removes a node that will not come back: nothing of it is kept. */
  discard(node: SchedulerNode): void {
    this.#components.lifecycle.discard(node);
  }

  /**
   * Resumes the computations that the code registers (§9.2): those whose inputs have not changed since they were written do not run.
   * Nothing runs before all of them are known; resolves then.
   */
  resume<T>(build: () => T): Promise<T> {
    return this.#components.persistence.resume(build);
  }

  /** Removes the nodes that write into a space, which is about to close. */
  removeWritersOf(replica: Replica): void {
    const { lifecycle, registry } = this.#components;
    for (const node of [...registry.all()]) if (writesInto(node, replica)) lifecycle.remove(node);
  }

  /** A space has closed: nothing happens there any more. */
  detach(replica: Replica): void {
    const { documents, invalidation, persistence, turns } = this.#components;
    documents.forget(replica);
    invalidation.detach(replica);
    persistence.forget(replica);
    turns.forget(replica);
  }

  /** Tells the error listeners what keeps a space from being settled, which is about to close all the same. */
  tellUnfinished(replica: Replica, graceMs: number): void {
    tellUnfinished(this.#components, replica, graceMs);
  }

  /** Ends without what is under way: it leaves nothing, and nobody waits for it any longer. */
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

  // Demand and flow ------------------------------------------------------------------------------------------------------

  /** Settles what is synchronous, now; inside `batch`, at its end. */
  flush(): void {
    if (this.#runner.attempt !== null) throw flushedInside();
    if (this.#batches === 0) this.#flush();
  }

  /** Nodes that run now are no part of a handler that settles. */
  #flush(): void {
    if (asyncContext.get() === undefined) this.#settle.flush();
    else asyncContext.clear(() => this.#settle.flush());
  }

  /** Runs code and settles once at its end, also if it throws. */
  batch<T>(code: () => T): T {
    this.#batches++;
    try {
      return code();
    } finally {
      this.#batches--;
      if (this.#batches === 0 && this.#runner.attempt === null) this.#flush();
    }
  }

  /** Resolves when nothing can run now and nothing is about to; gates of nodes that have run do not count. */
  idle(): Promise<void> {
    return this.#runner.waitsForRest(() => this.#components.quiescence.idle());
  }

  /** Whether `idle` would resolve at once. */
  get isIdle(): boolean {
    return this.#components.quiescence.isIdle;
  }

  /** Idle, every commit has its answer, those included that nodes made because of an answer, and what is to be kept is stored. */
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

  /** What `read` gives once everything it reads is loaded and up to date: demands it, waits, and lets go. */
  pullOnce<T>(read: () => T, clearance?: readonly string[]): Promise<T> {
    const within = narrowed(clearance);
    // A handler may: what it waits for is no send.
    return this.#runner.waitsForRest(() => this.#components.pull.once(read, within), null);
  }

  /** Work outside of the graph that `idle` waits for. */
  background(work: Promise<unknown>): void {
    this.#components.quiescence.background(work);
  }

  // Gates ----------------------------------------------------------------------------------------------------------------

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

  /** Stops a node before its next run until the breakpoint is taken away. */
  setBreakpoint(node: SchedulerNode, on: boolean): void {
    this.#components.gates.setBreakpoint(node, on);
  }

  // Introspection --------------------------------------------------------------------------------------------------------

  getGraphSnapshot(): readonly NodeSnapshot[] {
    return this.#components.introspection.snapshot();
  }

  getStats(): SchedulerStats {
    return statsOf(this.#components);
  }

  getActionStats(): readonly ActionStats[] {
    return this.#components.introspection.actionStats();
  }

  /** What is wrong, if anything: contradictions of the scheduler itself, and nodes that misbehave. */
  runDiagnosis(): Diagnosis {
    return diagnose(this.#components);
  }

  /** Throws if the scheduler contradicts itself. Not for the middle of a run. */
  checkInvariants(): void {
    requireConsistent(this.#components);
  }

  /** The computation whose result goes to the document of this id. */
  computationOf(replica: Replica, id: string): SchedulerNode | undefined {
    return this.#components.documents.computationOf(replica, id);
  }

  find(id: string): SchedulerNode | undefined {
    return this.#components.registry.find(id);
  }

  /** Whether what happens is noted, for `getTrace`; one topic at a time. */
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

  /** Whether every computation is run twice to see that it writes the same; for tests. */
  set idempotencyCheck(on: boolean) {
    this.#components.introspection.checksIdempotency = on;
  }

  get notIdempotent(): readonly string[] {
    return this.#components.introspection.notIdempotent;
  }

  /** Tells the error listeners of something that went wrong beside any node. */
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
  return new StoreError("STORE_MISUSE", "a transaction settles nothing before it has ended; flush after it");
}
