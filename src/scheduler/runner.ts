/**
 * Runs a node (Scheduler v2 §7.3): reads are compared with the registered ones as they are made, the result goes into
 * the primary output, side-writes are one unit, and after an error the node stays subscribed. Knows which code executes
 * now, and so the owner of a read or a write: a run (`run-reads.ts`, `run-writes.ts`), the attempt of a handler, or
 * plain code.
 *
 * ```
 *   taken from the agenda: status clean, causes taken
 *      ├── returns ──────────────> reads trimmed, side-writes and output published, done
 *      ├── returns a promise ────> awaited; the pass waits with it
 *      ├── throws ───────────────> side-writes rolled back, output undefined, reported
 *      └── is abandoned ─────────> side-writes rolled back, queued again after the inputs that it found outdated
 * ```
 */
import { asyncContext } from "../host/async-context.ts";
import { NESTED_RUNS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { admit } from "../store/admit.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import { Attempt, type Views } from "../work/attempt.ts";
import { isThenable } from "../work/handler-call.ts";
import { requireCleared } from "./address-label.ts";
import type { Agenda } from "./agenda.ts";
import { Escapes, SelfWaits, waitsForItself } from "./await-guards.ts";
import { restoreCauses, takeCauses } from "./causes.ts";
import { requireNotComputed } from "./computed-error.ts";
import type { Graph } from "./graph.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { Introspection } from "./introspection.ts";
import type { Invalidation } from "./invalidation.ts";
import { isProcess, type NodeAddress, RUNNING, type RunHandle, type SchedulerNode, UNQUEUED } from "./node.ts";
import type { OutsideReads } from "./outside-reads.ts";
import type { Persistence } from "./persistence.ts";
import { NodeRunHandle, Run, type RunHome } from "./run.ts";
import type { Background } from "./run-commits.ts";
import { standingOf } from "./run-commits.ts";
import type { RunReads } from "./run-reads.ts";
import { NOT_TIMED, type RunTiming } from "./run-timing.ts";
import type { RunWrites } from "./run-writes.ts";
import type { WriteTurns } from "./turns.ts";
import type { WriteTarget } from "./write-unit.ts";

export class Runner implements RunHome {
  /** The run whose synchronous part is executing. */
  current: Run | null = null;
  /** The attempt of a handler whose synchronous part is executing. Nodes that run meanwhile do not belong to it. */
  attempt: Attempt | null = null;
  /** The views of this scheduler; attempts with other views belong to another scheduler. */
  views: Views | undefined;
  /** Reads register no dependency: code inside `untracked` executes. */
  isUntracked = false;
  /** Nodes whose asynchronous run has not ended. */
  readonly awaited = new Map<SchedulerNode, Run>();
  /** Waits for rest that the executing code has begun. */
  readonly selfWaits = new SelfWaits();
  readonly escapes: Escapes;
  /** Present depth of nested runs. */
  #depth = 0;
  /** One object for each depth reached so far. */
  readonly #runs: Run[] = [];
  #lastRun = 0;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #invalidation: Invalidation;
  readonly #timing: RunTiming;
  readonly #turns: WriteTurns;
  readonly #introspection: Introspection;
  readonly #persistence: Persistence;
  readonly #flow: InformationFlow;
  readonly #reads: RunReads;
  readonly #outsideReads: OutsideReads;
  readonly #writes: RunWrites;
  readonly #background: Background;

  constructor(parts: {
    graph: Graph;
    agenda: Agenda;
    invalidation: Invalidation;
    timing: RunTiming;
    turns: WriteTurns;
    introspection: Introspection;
    persistence: Persistence;
    flow: InformationFlow;
    reads: RunReads;
    outsideReads: OutsideReads;
    writes: RunWrites;
    background: Background;
  }) {
    this.escapes = new Escapes(parts.introspection);
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#invalidation = parts.invalidation;
    this.#background = parts.background;
    this.#timing = parts.timing;
    this.#turns = parts.turns;
    this.#introspection = parts.introspection;
    this.#persistence = parts.persistence;
    this.#flow = parts.flow;
    this.#reads = parts.reads;
    this.#outsideReads = parts.outsideReads;
    this.#writes = parts.writes;
  }

  /**
   * The attempt that the executing code belongs to: a synchronous one or, after an `await`, that of the async context.
   */
  get active(): Attempt | null {
    const attempt = this.attempt ?? this.#followed();
    return attempt === null || attempt.isOver ? null : attempt;
  }

  /** The same for a write; throws if the handler has ended. */
  #writer(): Attempt | null {
    const attempt = this.attempt ?? this.#followed();
    attempt?.requireOpen();
    return attempt;
  }

  #followed(): Attempt | null {
    const context = asyncContext.get();
    if (!(context instanceof Attempt) || context.views !== this.views) return null;
    // Plain code may have written since the handler's last await.
    if (!context.isOver) this.#turns.seal(context.replica);
    return context;
  }

  // Owners of reads and writes
  // -------------------------------------------------------------------------------------------

  /** A read by the executing code; in plain code outside of a transaction it just returns the value. */
  read(address: NodeAddress, shallow = false): Json | undefined {
    const run = this.current;
    if (run !== null)
      return this.isUntracked ? this.#peek(run, address, shallow) : this.#reads.read(run, address, shallow);
    return this.#readOutside(address, shallow);
  }

  #readOutside(address: NodeAddress, shallow: boolean): Json | undefined {
    const { document } = address;
    document.touched = true;
    // It reads as absent, and arrives as a change.
    if (document.state === "absent") address.home.replica.touch(document);
    const { active } = this;
    if (active !== null) return active.read(address, shallow);
    if (address.home.writers.length > 0) this.#outsideReads.bringUpToDate(address, shallow);
    // The label of a computed value is known only when it is up to date.
    if (document.labels !== undefined) requireCleared(address, shallow);
    return address.value;
  }

  /** A read inside a run that registers no dependency. The run still gets the label of the value. */
  #peek(run: Run, address: NodeAddress, shallow: boolean): Json | undefined {
    const { document, home } = address;
    document.touched = true;
    if (document.state === "absent") home.replica.touch(document);
    // Other nodes must not see the run's own writes, so after a write the value stays as it is.
    if (home.writers.length > 0 && this.mayNest(run)) this.#outsideReads.bringUpToDate(address, shallow);
    if (document.labels !== undefined) this.#flow.read(run, address, shallow);
    return address.value;
  }

  /** Runs code whose reads register no dependency of the running node. */
  untracked<T>(code: () => T): T {
    const outer = this.isUntracked;
    this.isUntracked = true;
    try {
      return code();
    } finally {
      this.isUntracked = outer;
    }
  }

  /** A read through the handle of a run, after an await. */
  readAs(handle: RunHandle, address: NodeAddress, shallow: boolean): Json | undefined {
    return this.#reads.read(this.#runOf(handle), address, shallow);
  }

  labelOf(handle: RunHandle): Label {
    return this.#runOf(handle).label;
  }

  /** The node's present run; between runs, an ended one. */
  #runOf({ node }: RunHandle): Run {
    if (this.current?.node === node) return this.current;
    const awaited = this.awaited.get(node);
    if (awaited !== undefined) return awaited;
    for (let depth = this.#depth - 1; depth >= 0; depth--) {
      const run = this.#runs[depth] as Run;
      if (run.node === node) return run;
    }
    const over = new Run(node, ++this.#lastRun);
    over.isOver = true;
    return over;
  }

  /**
   * Whether other nodes may run inside the run now: it has no side-writes that they would see, the nesting is not too
   * deep, and its code is executing. The last fails for a read through the handle after an await, outside of `within`.
   */
  mayNest(run: Run): boolean {
    if (run.unit !== null && !run.unit.isEmpty) return false;
    return this.#depth < NESTED_RUNS_MAX && this.current === run;
  }

  /** The value as the executing code sees it, without a registered read: a handler sees its own writes. */
  glance(address: NodeAddress): Json | undefined {
    const active = this.current === null ? this.active : null;
    return active === null ? address.value : active.glance(address);
  }

  /** Writes a value; a repeated write by the same code takes a short path. */
  write(address: NodeAddress, value: unknown): void {
    const isPlainCode = this.current === null && this.attempt === null && asyncContext.get() === undefined;
    if (!isPlainCode || !this.#turns.writeAgain(address, value)) this.targetFor(address).set(address, value);
  }

  /** The target of a write: the running node's unit, the attempt of a handler, or the ambient turn of the space. */
  targetFor(address: NodeAddress): WriteTarget {
    requireNotComputed(address);
    if (this.current !== null) return this.#unitFor(this.current, address);
    const attempt = this.#writer();
    if (attempt !== null) return attempt;
    this.escapes.wrote(address.home);
    return this.#turns.ambient(address.home.replica);
  }

  #unitFor(run: Run, address: NodeAddress): WriteTarget {
    const unit = this.#writes.unitFor(run, address);
    // Only for a write into the document, not for its replacement.
    if (address.parent !== null && !address.document.isKnown) this.#reads.bring(run, unit, address.home);
    return unit;
  }

  /**
   * Makes a plain write claim its read of a document that is not loaded. Runs and attempts claim their reads anyway.
   */
  restOn(address: NodeAddress): void {
    const { isKnown } = address.document;
    if (isKnown || this.current !== null || this.active !== null) return;
    this.#turns.ambient(address.home.replica).read(address, false);
  }

  /** A document that the running node derives besides its output. */
  derive(address: NodeAddress, value: unknown): void {
    if (this.current === null) throw new Error(`${address} can be derived only by a node that runs`);
    this.#writes.derive(this.current, address, value);
  }

  // Running
  // --------------------------------------------------------------------------------------------------------------

  /** Runs a node that was taken from the agenda; returns a promise if its function is asynchronous. */
  run(node: SchedulerNode): Promise<void> | undefined {
    takeCauses(node);
    const wasNew = node.status === "never-ran";
    // Set before the run: its own changes do not invalidate it, later changes by other code do.
    node.status = "clean";
    node.slot = RUNNING;
    const run = this.#begin(node);
    const isPlain = node.output !== undefined && node.extras === null;
    const began = isPlain ? NOT_TIMED : this.#beginOther(run);
    const outer = this.current;
    const outerUntracked = this.isUntracked;
    this.current = run;
    this.isUntracked = false;
    this.#depth++;
    let result: unknown;
    let thrown: unknown;
    let threw = false;
    try {
      result = node.run(node.handle ?? this.#handle(node));
    } catch (error) {
      thrown = error;
      threw = true;
    }
    this.current = outer;
    this.isUntracked = outerUntracked;
    if (!threw && isThenable(result)) {
      this.#depth--;
      return this.#finishLater(run, result, wasNew);
    }
    // A run that waits for documents does not count, so it starts no throttle.
    if ((began !== NOT_TIMED || node.extras !== null) && !run.isEarly) this.#timing.end(node, began);
    try {
      if (threw) this.#threw(run, thrown, wasNew);
      else this.#finish(run, result, wasNew);
    } finally {
      // Its run object is free only now, because listeners of its changes or errors may have caused nested runs.
      this.#depth--;
      this.#ended(run);
    }
    return undefined;
  }

  #begin(node: SchedulerNode): Run {
    const id = ++this.#lastRun;
    if (this.#depth === this.#runs.length) this.#runs.push(new Run(node, id));
    const run = this.#runs[this.#depth] as Run;
    run.begin(node, id);
    return run;
  }

  /** Further work for effects and for nodes with extras; returns the time of the start if the run is timed. */
  #beginOther(run: Run): number {
    const { node } = run;
    if (isProcess(node)) this.#flow.triggered(run);
    return this.#timing.begin(node);
  }

  #handle(node: SchedulerNode): RunHandle {
    node.handle ??= new NodeRunHandle(this, node);
    return node.handle;
  }

  async #finishLater(run: Run, promise: PromiseLike<unknown>, wasNew: boolean): Promise<void> {
    const { node } = run;
    this.awaited.set(node, run);
    this.selfWaits.refuse(run.id, node.id);
    // The run object now belongs to the node; the depth gets a new one.
    this.#runs[this.#depth] = new Run(node, 0);
    const began = this.#timing.now;
    let result: unknown;
    let thrown: unknown;
    let threw = false;
    try {
      // Writes in place must be committed before other code can read the documents.
      this.#endStretch(run);
    } catch (error) {
      this.#writes.rollBack(run);
      thrown = error;
      threw = true;
    }
    try {
      result = await promise;
    } catch (error) {
      if (!threw) thrown = error;
      threw = true;
    }
    if (!run.isEarly) this.#timing.end(node, began);
    if (threw) this.#threw(run, thrown, wasNew);
    else this.#finish(run, result, wasNew);
    run.isOver = true;
    this.awaited.delete(node);
    this.#ended(run);
  }

  /**
   * A wait for rest, begun by the executing code. If a run, or a stream's handler, continues after an await, it would
   * wait for itself.
   */
  waitsForRest<T>(wait: () => Promise<T>, waiter: Attempt | null = this.active): Promise<T> {
    const run = this.current;
    const holder = run === null && waiter?.holdsRest ? waiter : null;
    if (run === null && holder === null) return wait();
    const isAwaited = run === null ? holder?.isAwaited : this.awaited.get(run.node) === run;
    if (isAwaited) return Promise.reject(waitsForItself(run?.node.id ?? String(holder)));
    return this.selfWaits.unless(run?.id ?? (holder as Attempt), wait());
  }

  /** Synchronous code of an asynchronous run, after an await. */
  within<T>(handle: RunHandle, code: () => T): T {
    const { node } = handle;
    if (!node.registered) throw new Error(`node ${node.id} was removed while it ran`);
    const run = this.#runOf(handle);
    const outer = this.current;
    this.current = run;
    try {
      const result = code();
      if (outer !== run) this.#endStretch(run);
      return result;
    } catch (error) {
      if (outer !== run) this.#writes.rollBack(run);
      throw error;
    } finally {
      this.current = outer;
    }
  }

  #endStretch(run: Run): void {
    if (run.isAbandoned) this.#writes.rollBack(run);
    else this.#writes.commit(run);
  }

  /** Runs code that belongs to no run. */
  outsideRuns<T>(code: () => T): T {
    const { current } = this;
    this.current = null;
    try {
      return code();
    } finally {
      this.current = current;
    }
  }

  /**
   * Whether the commits are confirmed that the reads of the present run rest on. Undefined if the store has all of
   * them, and outside of runs.
   */
  standing(): Promise<boolean> | undefined {
    return this.current === null ? undefined : standingOf(this.current, this.#turns);
  }

  /** Runs code as part of the run: if it throws, only its own writes are rolled back. */
  atomically<T>(run: Run, code: () => T): T {
    const { unit } = run;
    if (unit !== null) return unit.atomically(code);
    try {
      return code();
    } catch (error) {
      this.#writes.rollBack(run);
      throw error;
    }
  }

  /** The node may be queued again, and must be if one of its inputs changed meanwhile. */
  #ended(run: Run): void {
    const { node } = run;
    node.slot = UNQUEUED;
    if (node.status !== "clean" && node.live && node.registered && !node.isWaiting) this.#agenda.offer(node);
  }

  #threw(run: Run, error: unknown, wasNew: boolean): void {
    if (run.isAbandoned) this.#startOver(run, wasNew);
    // Without an error object, the failure would be invisible.
    else this.#failed(run, error === undefined ? new Error(`${run.node.id} threw undefined`) : error);
  }

  #finish(run: Run, result: unknown, wasNew: boolean): void {
    const { node, tail } = run;
    if (!node.registered) return this.#writes.rollBack(run);
    if (run.isAbandoned) return this.#startOver(run, wasNew);
    if (run.isEarly && this.#mustWait(run)) {
      this.#graph.trimReads(node, tail);
      return this.#startOver(run, wasNew);
    }
    const { output, extras } = node;
    if (extras !== null && this.#hasReadTooEarly(run)) return;
    if ((tail === null ? node.reads : tail.next) !== null) this.#graph.trimReads(node, tail);
    try {
      if (run.unit !== null || extras !== null) this.#writes.commit(run);
      if (output !== undefined) {
        if (extras?.isHidden) this.#reveal(node, output);
        this.#writes.put(run, output, result);
      }
    } catch (error) {
      return this.#failed(run, error);
    }
    // Compared first: the write to the node would load a cache line that the run does not need.
    if (node.error !== undefined) {
      node.error = undefined;
      if (output !== undefined && output.value === undefined) this.#writes.touched(run, output);
    }
    node.runs++;
    this.#introspection.ran(run);
    if (extras !== null && node.record !== undefined) this.#persistence.ran(node, node.record);
    if (this.#introspection.checksIdempotency && node.kind === "computation") this.#rehearse(node);
  }

  /** Runs a computation again on the same inputs; it must write the same. Asynchronous ones are not checked. */
  #rehearse(node: SchedulerNode): void {
    const run = new Run(node, ++this.#lastRun, true);
    const outer = this.current;
    this.current = run;
    try {
      const result = node.run(this.#handle(node));
      if (isThenable(result)) return;
      const output = result === undefined ? undefined : admit(result, node.output?.value);
      this.#introspection.compare(node, output, run.unit !== null && !run.unit.isEmpty);
    } catch {
      // The first run did not throw.
      this.#introspection.compare(node, undefined, true);
    } finally {
      this.#writes.rollBack(run);
      this.current = outer;
    }
  }

  /** The reads of this run and of the last stay registered: a change of any of them is a reason to try again. */
  #failed(run: Run, error: unknown): void {
    const { node } = run;
    if (!node.registered) return this.#writes.rollBack(run);
    if (run.isEarly && this.#mustWait(run)) return this.#startOver(run, node.runs === 0 && run.causes.length === 0);
    if (this.#hasReadTooEarly(run)) return;
    this.#writes.rollBack(run);
    this.#graph.dropRepeatedReads(run);
    const before = node.error;
    node.error = error;
    node.runs++;
    const { output } = node;
    if (output !== undefined) {
      if (node.isHidden) this.#reveal(node, output);
      const hadValue = output.value !== undefined;
      this.#writes.put(run, output, undefined);
      // Readers throw the error, so it must invalidate them although the value stays undefined.
      if (!hadValue && before !== error) this.#writes.touched(run, output);
    }
    if (node.envelope !== undefined && run.label.length > 0) this.#writes.commit(run);
    if (!isPassedOn(node, error)) this.#introspection.failed(run, error);
    if (node.record !== undefined) this.#persistence.ran(node, node.record);
  }

  /**
   * A persisted node is not computed from documents that are being loaded: the run continues to find all of them, and
   * starts over.
   */
  #hasReadTooEarly(run: Run): boolean {
    if (run.node.record === undefined || !this.#reads.hasReadTooEarly(run)) return false;
    this.#startOver(run, run.node.runs === 0 && run.causes.length === 0);
    return true;
  }

  #startOver(run: Run, wasNew: boolean): void {
    const { node } = run;
    if (!node.registered) return this.#writes.rollBack(run);
    this.#writes.rollBack(run);
    node.status = wasNew ? "never-ran" : "invalid";
    restoreCauses(node, node.lastReason);
    if (!run.isEarly) return;
    // A run that was cut short keeps its older reads, each place once.
    this.#graph.dropRepeatedReads(run);
    if (this.#awaitsDocuments(node)) this.#hide(node);
  }

  // Documents that are not loaded
  // ---------------------------------------------------------------------------------------

  /**
   * Whether the result of a run that read too early is dropped. A node with `show` keeps it and is woken by the
   * documents.
   */
  #mustWait({ node }: Run): boolean {
    if (node.whileLoading !== "show") return true;
    this.#awaitsDocuments(node);
    return false;
  }

  /** Makes the node wait until one of the documents is loaded; false if all of them are. */
  #awaitsDocuments(node: SchedulerNode): boolean {
    const unknown = new Set<Replica>();
    for (let edge = node.reads; edge !== null; edge = edge.next)
      if (!edge.address.document.isReadable) unknown.add(edge.address.home.replica);
    if (unknown.size === 0) return false;
    node.isWaiting = true;
    for (const replica of unknown) this.#background.background(replica.loadsSettled());
    return true;
  }

  #hide(node: SchedulerNode): void {
    const { output } = node;
    if (output === undefined || node.isHidden || output.document.state !== "loaded") return;
    node.isHidden = true;
    output.document.state = "loading";
  }

  /** The node has run with all its inputs: wakes the nodes that wait for its output, even if the value is the same. */
  #reveal(node: SchedulerNode, { home }: NodeAddress): void {
    node.isHidden = false;
    home.document.madeHere();
    this.#invalidation.arrived(home);
  }
}

/** Whether the error was thrown by a computed value that the node read: it was reported there. */
function isPassedOn(node: SchedulerNode, error: unknown): boolean {
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if (edge.address.home.writers.some((writer) => writer !== node && writer.error === error)) return true;
  }
  return false;
}
