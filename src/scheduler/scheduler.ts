/**
 * Scheduler v2: composes its components and offers their operations; it holds no state of its own.
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
import type { Host } from "../host/host.ts";
import type { Json } from "../message/json.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Commit } from "../store/transaction.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import { Agenda } from "./agenda.ts";
import { Attempts } from "./attempts.ts";
import { Dispatch, type HandlerLoader } from "./dispatch.ts";
import { Events, type QueueSnapshot } from "./events.ts";
import { Gates } from "./gates.ts";
import { Graph } from "./graph.ts";
import type { Handling } from "./handling.ts";
import { InformationFlow } from "./information-flow.ts";
import {
  type ActionStats,
  type ErrorListener,
  Introspection,
  type Misbehaving,
  type NodeSnapshot,
  type TraceEntry,
  type WhyNot,
  type WhyStep,
} from "./introspection.ts";
import { Invalidation } from "./invalidation.ts";
import type { Launch } from "./lineage.ts";
import { NO_CAUSES, type NodeSpec, type SchedulerNode } from "./node.ts";
import { Persistence } from "./persistence.ts";
import { Registry } from "./registry.ts";
import { RunCommits } from "./run-commits.ts";
import { Runner } from "./runner.ts";
import { checkScheduler } from "./scheduler-invariants.ts";
import type { SendOptions, Sent } from "./send.ts";
import { SendAnswers } from "./send-answers.ts";
import { Settle } from "./settle.ts";
import type { EventHandler, HandlerOptions } from "./stream-record.ts";
import { Turns } from "./turns.ts";

export interface SchedulerStats {
  readonly nodes: number;
  readonly runs: number;
  readonly failures: number;
  /** Readers looked at because of changes. */
  readonly readersVisited: number;
  /** Reads registered or dropped. */
  readonly indexWrites: number;
  /** Writes of computations outside of what they had declared. */
  readonly outsideWrites: number;
  readonly queued: number;
  readonly gated: number;
  /** Times a node's output and basis were written to the store. */
  readonly kept: number;
  /** Nodes whose last run is not stored yet. */
  readonly unwritten: number;
}

export interface Diagnosis extends Misbehaving {
  readonly contradiction: string | undefined;
  /** Nodes that have exhausted their budget and have not come to rest since. */
  readonly nonSettling: readonly string[];
}

const NOTHING: readonly never[] = Object.freeze([]);

export class Scheduler implements Disposable {
  readonly #registry = new Registry();
  readonly #gates: Gates;
  readonly #agenda: Agenda;
  readonly #graph: Graph;
  readonly #invalidation: Invalidation;
  readonly #flow: InformationFlow;
  readonly #introspection: Introspection;
  readonly #turns: Turns;
  readonly #runner: Runner;
  readonly #persistence: Persistence;
  readonly #settle: Settle;
  readonly #attempts: Attempts;
  readonly #events: Events;
  readonly #replicas = new Set<Replica>();

  constructor({ host }: { host: Host }) {
    const gates = new Gates(host);
    const agenda = new Agenda(gates);
    const graph = new Graph(agenda);
    const invalidation = new Invalidation(graph, agenda, gates);
    const introspection = new Introspection(graph, gates, this.#registry);
    const turns = new Turns(host, invalidation, introspection);
    const commits = new RunCommits({ turns, gates, agenda, introspection });
    const flow = new InformationFlow(invalidation);
    const persistence = new Persistence({ host, turns, graph, agenda, gates, introspection });
    const parts = { host, graph, agenda, gates, invalidation, turns, introspection, commits, flow, persistence };
    const runner = new Runner(parts);
    const settle = new Settle({ ...parts, runner });
    const answers = new SendAnswers({ host, introspection, work: settle });
    const closures = { registry: this.#registry, graph, agenda, gates, runner, work: settle };
    const dispatch = new Dispatch({ ...closures, host, introspection, answers, passes: settle });
    const attempts = new Attempts(runner, turns);
    const events = new Events({ host, runner, attempts, dispatch, answers, work: settle });
    // Those that have to wake the pass know it by a narrow interface.
    agenda.waker = settle;
    turns.waker = settle;
    gates.home = settle;
    runner.upstream = settle;
    commits.background = settle;
    persistence.holder = settle;
    settle.sends = events;
    invalidation.falls = events;
    this.#attempts = attempts;
    this.#events = events;
    this.#gates = gates;
    this.#agenda = agenda;
    this.#graph = graph;
    this.#invalidation = invalidation;
    this.#flow = flow;
    this.#introspection = introspection;
    this.#turns = turns;
    this.#runner = runner;
    this.#persistence = persistence;
    this.#settle = settle;
  }

  // Addresses, reads and writes -----------------------------------------------------------------------------------------

  /** The address of a document's root; `at` goes down from there. Loads nothing. */
  document(replica: Replica, ref: DocumentRef): Address {
    this.#known(replica);
    const index = this.#graph.index(replica, ref);
    if (index.writers.length === 0 && ref.scope === SHARED_SCOPE) this.#lookedAt(index);
    return index.root;
  }

  #known(replica: Replica): void {
    this.#invalidation.attach(replica);
    this.#replicas.add(replica);
  }

  /** Somebody looks at a document for the first time: it may be the output of a computation that nobody has looked at. */
  #lookedAt({ replica, document, root }: DocumentIndex): void {
    const node = this.#registry.find(document.id);
    if (node !== undefined && node.outputIn === replica && node.output === undefined) this.#place(node, root);
  }

  /** Where a computation's result goes. */
  outputOf(node: SchedulerNode): Address | undefined {
    if (node.output !== undefined || node.outputIn === undefined) return node.output;
    return this.document(node.outputIn, { scope: SHARED_SCOPE, id: node.id });
  }

  /** The value as the code that runs now sees it, without reading it: a handler sees its own writes. */
  glance(address: Address): Json | undefined {
    const { handling, current } = this.#runner;
    return handling === null || current !== null ? address.value : handling.glance(address);
  }

  /** Reads; inside a run the read is registered. */
  read(address: Address, shallow = false): Json | undefined {
    return this.#runner.read(address, shallow);
  }

  write(address: Address, value: unknown): void {
    this.#runner.targetFor(address).set(address, value);
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

  /**
   * Runs synchronous code as one commit of a space: all of its writes or, if it throws, none. Inside a node's run it is
   * part of that run's commit.
   */
  transact<T>(
    replica: Replica,
    code: () => T,
    changeGroup?: string,
  ): { readonly result: T; readonly commit: Commit | undefined } {
    if (this.#runner.current !== null || this.#runner.handling !== null) return { result: code(), commit: undefined };
    if (this.#turns.isTransacting) return this.#turns.transact(replica, code, changeGroup);
    try {
      const { result, commit } = this.#turns.transact(replica, code, changeGroup);
      this.#attempts.transacted(commit);
      return { result, commit };
    } catch (error) {
      this.#attempts.transactionFailed(error);
      throw error;
    }
  }

  // Streams --------------------------------------------------------------------------------------------------------------

  /** Sends a value to the stream at an address; inside a handler or a transaction it lives only if that commits. */
  queueEvent(stream: Address, value: unknown, options: SendOptions = {}): Sent {
    return this.#events.send(this.#events.stream(stream), value, options);
  }

  /** Registers the one handler of a stream; the returned function takes it away. */
  addEventHandler(handler: EventHandler, stream: Address, options: HandlerOptions = {}): () => void {
    return this.#events.addHandler(this.#events.stream(stream), handler, options);
  }

  /** Finds handlers that are not registered yet, by the stream's link; without it, sends wait until one is registered. */
  set handlerLoader(loader: HandlerLoader | undefined) {
    this.#events.handlerLoader = loader;
  }

  /**
   * Ties work to the handler's attempt, or the transaction, whose code runs now: it is told when that commit is applied, confirmed,
   * or has failed. False where none runs, and the work is not tied to anything.
   */
  launch(launch: Launch): boolean {
    return this.#events.launch(launch);
  }

  /** The handling whose code runs now, where one does. */
  get handling(): Handling | undefined {
    return this.#runner.current === null ? (this.#runner.handling ?? undefined) : undefined;
  }

  getQueues(): readonly QueueSnapshot[] {
    return this.#events.snapshot();
  }

  /** Drops what waits for handlers of a space that is about to close. */
  closeStreams(replica: Replica): void {
    this.#events.close(replica);
  }

  // Labels ---------------------------------------------------------------------------------------------------------------

  /** What a read of all that lies there is labelled with. */
  labelAt(address: Address): Label {
    return labelSeen(address, false);
  }

  /** Labels a place with more than it is labelled with; here and now, and not in the store. */
  declareLabel(address: Address, label: Label): void {
    this.#flow.declare(address, label);
  }

  undeclareLabel(address: Address, names: readonly string[]): void {
    this.#flow.undeclare(address, names);
  }

  // Lifecycle ------------------------------------------------------------------------------------------------------------

  register(spec: NodeSpec): SchedulerNode {
    const run = this.#runner.current;
    const creator = run?.node;
    const parent = spec.parent ?? creator;
    const node = this.#registry.create(parent === undefined ? spec : { ...spec, parent });
    if (parent !== undefined) node.height = Math.max(node.height, parent.height + 1);
    // That it is there, and what it has caught in its function, is what the run knows.
    if (run !== null) node.label = run.label;
    if (spec.debounceMs) this.#gates.state(node).debounceMs = spec.debounceMs;
    if (spec.throttleMs) this.#gates.state(node).throttleMs = spec.throttleMs;
    if (spec.noAutoDebounce) this.#gates.state(node).noAutoDebounce = true;
    this.#persistence.register(node, spec);
    if (node.output !== undefined) this.#takeOver(node.output, node.record?.phase === "asked");
    let tail = null;
    for (const address of spec.declaredReads ?? NOTHING) tail = this.#graph.addRead(node, address, false, tail);
    for (const output of spec.outputs ?? NOTHING) this.#graph.addWriter(node, output.home);
    if (spec.outputIn !== undefined) this.#placeUnlessUnseen(node, spec.outputIn, spec.id);
    if (node.kind === "effect" || node.envelope !== undefined) this.#graph.root(node);
    else if (creator?.live) this.#createdByRun(node);
    return node;
  }

  /** One that nobody has looked at is found by its name, so it must have its own; one that a run makes runs at once. */
  #placeUnlessUnseen(node: SchedulerNode, replica: Replica, id: string): void {
    const ref = { scope: SHARED_SCOPE, id };
    const isKnown = replica.find(ref)?.attachment !== undefined;
    if (!isKnown && node.id === id && node.parent === undefined) return this.#known(replica);
    const output = this.document(replica, ref);
    // That was a look already, if the node has the document's name.
    if (node.output === undefined) this.#place(node, output);
  }

  #place(node: SchedulerNode, output: Address): void {
    node.output = output;
    this.#takeOver(output, false);
    this.#graph.addWriter(node, output.home);
  }

  /**
   * A computation's own output is made here: there is nothing to load, and a load on its way comes too late. That of a resumed one
   * is what is stored, whatever was here.
   */
  #takeOver({ document }: Address, isResumed: boolean): void {
    if (isResumed) {
      // Whoever reads it waits until the node is known.
      if (document.state === "loaded" && document.pending.length === 0) document.state = "absent";
    } else if (document.state !== "loaded") {
      document.state = "loaded";
      document.missed = NOTHING;
    }
    document.derived = true;
  }

  #createdByRun(node: SchedulerNode): void {
    this.#gates.createdByRun(node);
    this.#settle.provisional(node);
  }

  /** Removes a node, and what its runs have created. */
  remove(node: SchedulerNode): void {
    const open = [node];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (!next.registered) continue;
      this.#removeOne(next);
      for (const child of this.#registry.takeChildren(next)) open.push(child);
    }
  }

  #removeOne(node: SchedulerNode): void {
    this.#registry.delete(node);
    this.#agenda.withdraw(node);
    this.#graph.dropReads(node, null);
    for (const output of node.outputs) this.#graph.removeWriter(node, output.home);
    node.live = false;
    node.causes = NO_CAUSES;
    this.#graph.heights.forget(node);
    this.#settle.forget(node);
    this.#persistence.removed(node);
  }

  /** Removes a node that will not come back: nothing of it is kept. */
  discard(node: SchedulerNode): void {
    if (!node.registered) return;
    this.remove(node);
    this.#persistence.dropped(node);
  }

  /**
   * Resumes the computations that the code registers (§9.2): those whose inputs have not changed since they were written do not run.
   * Nothing runs before all of them are known; resolves then.
   */
  resume<T>(build: () => T): Promise<T> {
    return this.#persistence.resume(build);
  }

  dispose(): void {
    this.#events.close();
    this.#invalidation.dispose();
    this.#persistence.dispose();
    this.#settle.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  // Demand and flow ------------------------------------------------------------------------------------------------------

  /** Settles what is synchronous, now. */
  flush(): void {
    if (this.#turns.isTransacting)
      throw new StoreError("STORE_MISUSE", "a transaction settles nothing before it has ended; flush after it");
    this.#settle.flush();
  }

  /** Resolves when nothing can run now and nothing is about to; gates of nodes that have run do not count. */
  idle(): Promise<void> {
    return this.#settle.idle();
  }

  /** Idle, every commit has its answer, those included that nodes made because of an answer, and what is to be kept is stored. */
  async settled(): Promise<void> {
    do {
      await this.idle();
      await Promise.all([...this.#replicas].map((replica) => replica.settled()));
      await this.idle();
      await this.#persistence.flush();
    } while ([...this.#replicas].some((replica) => replica.pendingCommits > 0));
  }

  /** What `read` gives once everything it reads is loaded and up to date: demands it, waits, and lets go. */
  async pullOnce<T>(read: () => T, clearance?: readonly string[]): Promise<T> {
    let value: { readonly of: T } | undefined;
    const node = this.register({
      kind: "effect",
      id: "pull",
      noAutoDebounce: true,
      ...(clearance === undefined ? {} : { clearance }),
      run: () => {
        value = undefined;
        value = { of: read() };
      },
    });
    try {
      // What arrives may lead to more that has to be loaded.
      for (let before = -1; before !== this.#loads(); ) {
        before = this.#loads();
        await this.#settle.quiet();
        await Promise.all([...this.#replicas].map((replica) => replica.loadsSettled()));
        await this.#settle.quiet();
      }
      if (value !== undefined) return value.of;
      throw node.error ?? new Error("the scheduler was disposed before it could be pulled");
    } finally {
      this.remove(node);
    }
  }

  #loads(): number {
    let loads = 0;
    for (const replica of this.#replicas) loads += replica.loadGeneration;
    return loads;
  }

  /** Work outside of the graph that `idle` waits for. */
  background(work: Promise<unknown>): void {
    this.#settle.background(work);
  }

  // Gates ----------------------------------------------------------------------------------------------------------------

  setDebounce(node: SchedulerNode, ms: number): void {
    this.#gates.setDebounce(node, ms);
    this.#persistence.changed(node);
  }

  clearDebounce(node: SchedulerNode): void {
    this.#gates.setDebounce(node, 0);
    this.#persistence.changed(node);
  }

  setThrottle(node: SchedulerNode, ms: number): void {
    this.#gates.setThrottle(node, ms);
    this.#persistence.changed(node);
  }

  clearThrottle(node: SchedulerNode): void {
    this.#gates.setThrottle(node, 0);
    this.#persistence.changed(node);
  }

  setNoAutoDebounce(node: SchedulerNode, off: boolean): void {
    this.#gates.setNoAutoDebounce(node, off);
    this.#persistence.changed(node);
  }

  /** Stops a node before its next run until the breakpoint is taken away. */
  setBreakpoint(node: SchedulerNode, on: boolean): void {
    this.#gates.setBreakpoint(node, on);
  }

  // Introspection --------------------------------------------------------------------------------------------------------

  getGraphSnapshot(): readonly NodeSnapshot[] {
    return this.#introspection.snapshot();
  }

  getStats(): SchedulerStats {
    return {
      nodes: this.#registry.size,
      runs: this.#introspection.runs,
      failures: this.#introspection.failures,
      readersVisited: this.#invalidation.visited,
      indexWrites: this.#graph.indexWrites,
      outsideWrites: this.#introspection.outsideWrites,
      queued: this.#agenda.size,
      gated: this.#gates.held.size,
      kept: this.#persistence.written,
      unwritten: this.#persistence.unwritten,
    };
  }

  getActionStats(): readonly ActionStats[] {
    return this.#introspection.actionStats();
  }

  /** What is wrong, if anything: contradictions of the scheduler itself, and nodes that misbehave. */
  runDiagnosis(): Diagnosis {
    return {
      contradiction: this.#contradiction(),
      nonSettling: this.#settle.nonSettling,
      ...this.#introspection.misbehaving(),
    };
  }

  #contradiction(): string | undefined {
    try {
      this.checkInvariants();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Throws if the scheduler contradicts itself. Not for the middle of a run. */
  checkInvariants(): void {
    checkScheduler({ registry: this.#registry, graph: this.#graph, agenda: this.#agenda, gates: this.#gates });
    this.#events.checkInvariants();
  }

  find(id: string): SchedulerNode | undefined {
    return this.#registry.find(id);
  }

  setTraceEnabled(on: boolean): void {
    this.#introspection.tracing = on;
  }

  getTrace(): readonly TraceEntry[] {
    return this.#introspection.trace;
  }

  why(id: string): readonly WhyStep[] {
    return this.#introspection.why(id);
  }

  whyNot(id: string): WhyNot {
    return this.#introspection.whyNot(id);
  }

  /** Whether every computation is run twice to see that it writes the same; for tests. */
  set idempotencyCheck(on: boolean) {
    this.#introspection.checksIdempotency = on;
  }

  get notIdempotent(): readonly string[] {
    return this.#introspection.notIdempotent;
  }

  /** Tells the error listeners of something that went wrong beside any node. */
  report(error: unknown): void {
    this.#introspection.report(error, undefined);
  }

  onError(listener: ErrorListener): () => void {
    return this.#introspection.onError(listener);
  }

  onConsole(listener: (line: string) => void): () => void {
    return this.#introspection.onConsole(listener);
  }
}
