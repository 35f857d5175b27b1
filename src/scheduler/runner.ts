/**
 * Running a node (Scheduler v2 §7.3): one unit of writes, reads compared with the registered ones while they are made, the
 * result put into the primary output, errors reported with the node left subscribed. Knows whose code executes now, and so
 * where a read or a write belongs: to a run (`run-reads.ts`, `run-writes.ts`), to the attempt of a handler, or to plain code.
 *
 * ```
 *   taken from the agenda: status clean, causes taken
 *      ├── returns ──────────────> reads trimmed, side-writes and output published, done
 *      ├── returns a promise ────> awaited; the pass waits with it
 *      ├── throws ───────────────> side-writes taken back, output undefined, reported
 *      └── is abandoned ─────────> side-writes taken back, queued again: what it read has to run or to come first
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
import type { Address } from "./address.ts";
import { requireCleared } from "./address-label.ts";
import type { Agenda } from "./agenda.ts";
import { restoreCauses, takeCauses } from "./causes.ts";
import { requireNotComputed } from "./computed-error.ts";
import type { Graph } from "./graph.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { Introspection } from "./introspection.ts";
import type { Invalidation } from "./invalidation.ts";
import { isProcess, RUNNING, type SchedulerNode, UNQUEUED } from "./node.ts";
import type { OutsideReads } from "./outside-reads.ts";
import type { Persistence } from "./persistence.ts";
import { Run } from "./run.ts";
import type { Background } from "./run-commits.ts";
import { RunHandle, type RunHome } from "./run-handle.ts";
import type { RunReads } from "./run-reads.ts";
import { standingOf } from "./run-standing.ts";
import { NOT_TIMED, type RunTiming } from "./run-timing.ts";
import type { RunWrites } from "./run-writes.ts";
import { SelfWaits, waitsForItself } from "./self-waits.ts";
import type { Turns } from "./turns.ts";
import type { WriteTarget } from "./write-unit.ts";

export class Runner implements RunHome {
  /** The run whose synchronous part is executing. */
  current: Run | null = null;
  /** The attempt of a handler whose synchronous part is executing. Nodes that run meanwhile are not part of it. */
  attempt: Attempt | null = null;
  /** Those of its scheduler: attempts of another are none of its own. */
  views: Views | undefined;
  /** Reads register no dependency: the code inside `untracked` executes. */
  isUntracked = false;
  /** Nodes whose asynchronous run has not ended. */
  readonly awaited = new Set<SchedulerNode>();
  /** What the code that executes has begun to wait for. */
  readonly selfWaits = new SelfWaits();
  /** Runs inside runs, now. */
  #depth = 0;
  /** One for each depth, as far as it has ever been. */
  readonly #runs: Run[] = [];
  #lastRun = 0;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #invalidation: Invalidation;
  readonly #timing: RunTiming;
  readonly #turns: Turns;
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
    turns: Turns;
    introspection: Introspection;
    persistence: Persistence;
    flow: InformationFlow;
    reads: RunReads;
    outsideReads: OutsideReads;
    writes: RunWrites;
    background: Background;
  }) {
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

  /** The attempt that the code which executes is part of: that of the slot or, after an `await`, that of the async context. */
  get active(): Attempt | null {
    const attempt = this.attempt ?? this.#followed();
    return attempt === null || attempt.isOver ? null : attempt;
  }

  /** The same for a write, which a handler that has ended may not make. */
  #writer(): Attempt | null {
    const attempt = this.attempt ?? this.#followed();
    attempt?.requireOpen();
    return attempt;
  }

  #followed(): Attempt | null {
    const context = asyncContext.get();
    if (!(context instanceof Attempt) || context.views !== this.views) return null;
    // Plain code may have written since the handler's last stretch.
    if (!context.isOver) this.#turns.seal(context.replica);
    return context;
  }

  // Whose reads and writes -----------------------------------------------------------------------------------------------

  /** A read by whatever runs now; in plain code outside of a transaction it is just the value. */
  read(address: Address, shallow: boolean): Json | undefined {
    const run = this.current;
    if (run !== null)
      return this.isUntracked ? this.#peek(run, address, shallow) : this.#reads.read(run, address, shallow);
    return this.#readOutside(address, shallow);
  }

  #readOutside(address: Address, shallow: boolean): Json | undefined {
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

  /** A read inside a run that registers no dependency. The run carries the label of the value all the same. */
  #peek(run: Run, address: Address, shallow: boolean): Json | undefined {
    const { document, home } = address;
    document.touched = true;
    if (document.state === "absent") home.replica.touch(document);
    // Other nodes must not see the run's own writes, so after a write the value stays as it is.
    if (home.writers.length > 0 && this.mayNest(run)) this.#outsideReads.bringUpToDate(address, shallow);
    if (document.labels !== undefined) this.#flow.read(run, address, shallow);
    return address.value;
  }

  /** Runs code whose reads register no dependency of the node that runs now. */
  untracked<T>(code: () => T): T {
    const outer = this.isUntracked;
    this.isUntracked = true;
    try {
      return code();
    } finally {
      this.isUntracked = outer;
    }
  }

  /** A read by a run that code holds in its hand, after an await. */
  readAs(handle: RunHandle, address: Address, shallow: boolean): Json | undefined {
    return this.#reads.read(this.#runOf(handle), address, shallow);
  }

  labelOf(handle: RunHandle): Label {
    return this.#runOf(handle).label;
  }

  /** The run that the node is in; between two, one that is over. */
  #runOf({ node, awaited }: RunHandle): Run {
    if (this.current?.node === node) return this.current;
    if (awaited !== null) return awaited;
    for (let depth = this.#depth - 1; depth >= 0; depth--) {
      const run = this.#runs[depth] as Run;
      if (run.node === node) return run;
    }
    const over = new Run(node, ++this.#lastRun);
    over.isOver = true;
    return over;
  }

  /**
   * Whether others may run inside the run, now: it has written nothing that they would see, it is not nested too deeply, and its code is
   * what executes. A read through the handle after an await, outside of `within`, comes from nowhere.
   */
  mayNest(run: Run): boolean {
    if (run.unit !== null && !run.unit.isEmpty) return false;
    return this.#depth < NESTED_RUNS_MAX && this.current === run;
  }

  /** The value as the code that runs now sees it, without reading it: a handler sees its own writes. */
  glance(address: Address): Json | undefined {
    const active = this.current === null ? this.active : null;
    return active === null ? address.value : active.glance(address);
  }

  /** Writes a value, mostly where the same code has just written. */
  write(address: Address, value: unknown): void {
    const isPlainCode = this.current === null && this.attempt === null && asyncContext.get() === undefined;
    if (!isPlainCode || !this.#turns.writeAgain(address, value)) this.targetFor(address).set(address, value);
  }

  /** Where a write goes: to the running node's unit, to the attempt of a handler, or to the ambient turn of the space. */
  targetFor(address: Address): WriteTarget {
    requireNotComputed(address);
    if (this.current !== null) return this.#unitFor(this.current, address);
    return this.#writer() ?? this.#turns.ambient(address.home.replica);
  }

  #unitFor(run: Run, address: Address): WriteTarget {
    const unit = this.#writes.unitFor(run, address);
    // Before it is written into, and not merely replaced.
    if (address.parent !== null && !address.document.isKnown) this.#reads.bring(run, unit, address.home);
    return unit;
  }

  /** A write of plain code rests on what it has read of a document that is not here. Whoever else reads, rests on it anyway. */
  restOn(address: Address): void {
    const { isKnown } = address.document;
    if (isKnown || this.current !== null || this.active !== null) return;
    this.#turns.ambient(address.home.replica).read(address, false);
  }

  /** A document that the running node derives besides its output. */
  derive(address: Address, value: unknown): void {
    if (this.current === null) throw new Error(`${address} can be derived only by a node that runs`);
    this.#writes.derive(this.current, address, value);
  }

  // Running --------------------------------------------------------------------------------------------------------------

  /** Runs a node that the agenda has given out; a promise if its function is asynchronous. */
  run(node: SchedulerNode): Promise<void> | undefined {
    takeCauses(node);
    const wasNew = node.status === "never-ran";
    // Before the run: what it changes itself is not its business, what others change meanwhile is.
    node.status = "clean";
    node.slot = RUNNING;
    const run = this.#begin(node);
    const isPlain = node.output !== undefined && node.particulars === null;
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
    // A run that waits for documents opens no window of a gate: it has not happened yet.
    if ((began !== NOT_TIMED || node.particulars !== null) && !run.isEarly) this.#timing.end(node, began);
    try {
      if (threw) this.#threw(run, thrown, wasNew);
      else this.#finish(run, result, wasNew);
    } finally {
      // Its place is free only now: whoever was told of what it did, or of its error, may have read what had to run for that.
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

  /** What is more to do for an effect, and for a node about which something is particular; gives when it began if it is timed. */
  #beginOther(run: Run): number {
    const { node } = run;
    if (isProcess(node)) this.#flow.triggered(run);
    return this.#timing.begin(node);
  }

  #handle(node: SchedulerNode): RunHandle {
    node.handle ??= new RunHandle(this, node);
    return node.handle;
  }

  async #finishLater(run: Run, promise: PromiseLike<unknown>, wasNew: boolean): Promise<void> {
    const { node } = run;
    const handle = this.#handle(node);
    handle.awaited = run;
    this.awaited.add(node);
    this.selfWaits.refuse(run.id, node.id);
    // Nobody else's from now on; it had the place that is the next to be used.
    this.#runs[this.#depth] = new Run(node, 0);
    const began = this.#timing.now;
    let result: unknown;
    let thrown: unknown;
    let threw = false;
    try {
      // Writes made in place must not stay uncommitted while other code gets to the documents.
      this.#endStretch(run);
    } catch (error) {
      this.#writes.takeBack(run);
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
    handle.awaited = null;
    this.awaited.delete(node);
    this.#ended(run);
  }

  /** A wait for rest, begun by the code that executes now. A run or a stream's handler that goes on after an await would wait for itself. */
  waitsForRest<T>(wait: () => Promise<T>, waiter: Attempt | null = this.active): Promise<T> {
    const run = this.current;
    const holder = run === null && waiter?.holdsRest ? waiter : null;
    if (run === null && holder === null) return wait();
    const isAwaited = run === null ? holder?.isAwaited : run.node.handle?.awaited === run;
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
      if (outer !== run) this.#writes.takeBack(run);
      throw error;
    } finally {
      this.current = outer;
    }
  }

  #endStretch(run: Run): void {
    if (run.isAbandoned) this.#writes.takeBack(run);
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
   * Whether the commits last that the reads of the present run rest on, once that is known; undefined where the store has all of
   * them, and outside of runs.
   */
  standing(): Promise<boolean> | undefined {
    return this.current === null ? undefined : standingOf(this.current, this.#turns);
  }

  /** Runs code that is a part of the run: if it throws, what it has written is taken back, and nothing else. */
  atomically<T>(run: Run, code: () => T): T {
    const { unit } = run;
    if (unit !== null) return unit.atomically(code);
    try {
      return code();
    } catch (error) {
      this.#writes.takeBack(run);
      throw error;
    }
  }

  /** Its node may be queued again, and has to be if something it read has changed meanwhile. */
  #ended(run: Run): void {
    const { node } = run;
    node.slot = UNQUEUED;
    if (node.status !== "clean" && node.live && node.registered && !node.isWaiting) this.#agenda.offer(node);
  }

  #threw(run: Run, error: unknown, wasNew: boolean): void {
    if (run.isAbandoned) this.#startOver(run, wasNew);
    // Nothing is no error that anybody could see.
    else this.#failed(run, error === undefined ? new Error(`${run.node.id} threw undefined`) : error);
  }

  #finish(run: Run, result: unknown, wasNew: boolean): void {
    const { node, tail } = run;
    if (!node.registered) return this.#writes.takeBack(run);
    if (run.isAbandoned) return this.#startOver(run, wasNew);
    if (run.isEarly && this.#mustWait(run)) {
      this.#graph.trimReads(node, tail);
      return this.#startOver(run, wasNew);
    }
    const { output, particulars } = node;
    if (particulars !== null && this.#hasReadTooEarly(run)) return;
    if ((tail === null ? node.reads : tail.next) !== null) this.#graph.trimReads(node, tail);
    try {
      if (run.unit !== null || particulars !== null) this.#writes.commit(run);
      if (output !== undefined) {
        if (particulars?.isHidden) this.#reveal(node, output);
        this.#writes.put(run, output, result);
      }
    } catch (error) {
      return this.#failed(run, error);
    }
    // Only where it is another: what is written to a node is written to memory that nobody else needs now.
    if (node.error !== undefined) {
      node.error = undefined;
      if (output !== undefined && output.value === undefined) this.#writes.touched(run, output);
    }
    node.runs++;
    this.#introspection.ran(run);
    if (particulars !== null && node.record !== undefined) this.#persistence.ran(node, node.record);
    if (this.#introspection.checksIdempotency && node.kind === "computation") this.#rehearse(node);
  }

  /** Runs a computation again on what it has just read; it must write the same. Asynchronous ones are not checked. */
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
      // It did not throw the first time.
      this.#introspection.compare(node, undefined, true);
    } finally {
      this.#writes.takeBack(run);
      this.current = outer;
    }
  }

  /** Everything it read stays registered, now and before: whatever changes, it is worth another try. */
  #failed(run: Run, error: unknown): void {
    const { node } = run;
    if (!node.registered) return this.#writes.takeBack(run);
    if (run.isEarly && this.#mustWait(run)) return this.#startOver(run, node.runs === 0 && run.causes.length === 0);
    if (this.#hasReadTooEarly(run)) return;
    this.#writes.takeBack(run);
    this.#graph.dropRepeatedReads(run);
    const before = node.error;
    node.error = error;
    node.runs++;
    const { output } = node;
    if (output !== undefined) {
      if (node.isHidden) this.#reveal(node, output);
      const hadValue = output.value !== undefined;
      this.#writes.put(run, output, undefined);
      // Readers throw the error: it is news to them, though the value is as undefined as before.
      if (!hadValue && before !== error) this.#writes.touched(run, output);
    }
    if (node.envelope !== undefined && run.label.length > 0) this.#writes.commit(run);
    if (!isPassedOn(node, error)) this.#introspection.failed(run, error);
    if (node.record !== undefined) this.#persistence.ran(node, node.record);
  }

  /** What is kept is not computed from documents that are on their way: the run goes on to find all of them, and starts over. */
  #hasReadTooEarly(run: Run): boolean {
    if (run.node.record === undefined || !this.#reads.hasReadTooEarly(run)) return false;
    this.#startOver(run, run.node.runs === 0 && run.causes.length === 0);
    return true;
  }

  #startOver(run: Run, wasNew: boolean): void {
    const { node } = run;
    if (!node.registered) return this.#writes.takeBack(run);
    this.#writes.takeBack(run);
    node.status = wasNew ? "never-ran" : "invalid";
    restoreCauses(node, node.lastReason);
    if (!run.isEarly) return;
    // A run that was cut short keeps its older reads, each place once.
    this.#graph.dropRepeatedReads(run);
    if (this.#awaitsDocuments(node)) this.#hide(node);
  }

  // Documents that are not loaded ------------------------------------------------------------------------------------------

  /** Whether the result of a run that read too early is dropped. A node that shows it hears of the documents all the same. */
  #mustWait({ node }: Run): boolean {
    if (node.whileLoading !== "show") return true;
    this.#awaitsDocuments(node);
    return false;
  }

  /** Takes the node from the agenda until one of the documents is known; false if all of them are by now. */
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

  /** The node has run with all its inputs: nodes that waited for its output run, also if that is the same. */
  #reveal(node: SchedulerNode, { home }: Address): void {
    node.isHidden = false;
    home.document.madeHere();
    this.#invalidation.arrived(home);
  }
}

/** Whether the error is that of a computed value which the node has read: it was reported there. */
function isPassedOn(node: SchedulerNode, error: unknown): boolean {
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if (edge.address.home.writers.some((writer) => writer !== node && writer.error === error)) return true;
  }
  return false;
}
