/**
 * Running a node (Scheduler v2 §7.3): one unit of writes, reads compared with the registered ones while they are made, the
 * result put into the primary output, errors reported with the node left subscribed.
 *
 * ```
 *   taken from the agenda: status clean, causes taken
 *      ├── returns ──────────────> reads trimmed, side-writes and output published, done
 *      ├── returns a promise ────> awaited; the pass waits with it
 *      ├── throws ───────────────> side-writes taken back, output undefined, reported
 *      └── read unfinished work ─> that work runs inside the read; where it cannot, the run starts over
 * ```
 *
 * A read that meets work below the reader (a computation that never ran, or slept through changes) must not return a value that is
 * about to change. The work is run right there, inside the read. Where runs are nested too deeply already, or the reader has
 * written something that the inner run must not see, the reader is abandoned by throwing `START_OVER` through its function and
 * queued again.
 */
import type { Host } from "../host/host.ts";
import { NESTED_RUNS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { admit } from "../store/admit.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import { PUBLIC } from "../store/label.ts";
import { overlap } from "../store/path-operation.ts";
import type { Address } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { Handling } from "./handling.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { Introspection } from "./introspection.ts";
import type { Invalidation } from "./invalidation.ts";
import { isProcess, NO_CAUSES, RUNNING, restoreCauses, type SchedulerNode, takeCauses, UNQUEUED } from "./node.ts";
import type { Persistence } from "./persistence.ts";
import { Run, type RunHome } from "./run.ts";
import type { RunCommits } from "./run-commits.ts";
import type { Turns } from "./turns.ts";
import { type WriteTarget, WriteUnit } from "./write-unit.ts";

/** Thrown through a node's function to abandon the run; not an error, so that it costs no stack trace. */
const START_OVER = Symbol("start over");

/** Runs the next piece of work; the settle component. */
export interface UpstreamWork {
  runNext(node: SchedulerNode): Promise<void> | undefined;
  /** An asynchronous run is awaited: nothing else may run. */
  readonly isWaiting: boolean;
  promoteBefore(node: SchedulerNode): boolean;
}

/**
 * An effect is timed in its first runs, in some more if one of them was slow, and then once in a while: reading the clock costs as much
 * as a run, and of ten thousand effects each runs now and then.
 */
const TIMED_RUNS = 2;
const TIMED_RUNS_OF_SLOW = 8;
const TIMED_AGAIN_MASK = 31;

export class Runner implements RunHome {
  /** The run whose synchronous part is executing. */
  current: Run | null = null;
  /** The handling of a send whose synchronous part is executing; what nodes do meanwhile is their own. */
  handling: Handling | null = null;
  /** Runs inside runs, now. */
  #depth = 0;
  #lastRun = 0;
  #upstream: UpstreamWork | undefined;
  readonly #host: Host;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #invalidation: Invalidation;
  readonly #turns: Turns;
  readonly #introspection: Introspection;
  readonly #commits: RunCommits;
  readonly #persistence: Persistence;
  /** Outputs on their way from the store that a run has met; it starts over when they are here. */
  loads: Promise<unknown> | undefined;
  readonly #flow: InformationFlow;

  constructor(parts: {
    host: Host;
    graph: Graph;
    agenda: Agenda;
    gates: Gates;
    invalidation: Invalidation;
    turns: Turns;
    introspection: Introspection;
    commits: RunCommits;
    persistence: Persistence;
    flow: InformationFlow;
  }) {
    this.#host = parts.host;
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#invalidation = parts.invalidation;
    this.#turns = parts.turns;
    this.#introspection = parts.introspection;
    this.#commits = parts.commits;
    this.#persistence = parts.persistence;
    this.#flow = parts.flow;
  }

  set upstream(upstream: UpstreamWork) {
    this.#upstream = upstream;
  }

  // Reading and writing from inside -------------------------------------------------------------------------------------

  /** A read by whatever runs now; in plain code outside of a transaction it is just the value. */
  read(address: Address, shallow: boolean): Json | undefined {
    const run = this.current;
    if (address.document.state !== "loaded") this.#notHere(run, address, shallow);
    if (run !== null) return this.#readIn(run, address, shallow);
    if (this.handling !== null) return this.handling.read(address, shallow);
    if (this.#turns.isTransacting) this.#turns.read(address, shallow);
    return address.value;
  }

  /** A read by a run that code holds in its hand, after an await. */
  readAs(run: Run, address: Address, shallow: boolean): Json | undefined {
    if (address.document.state !== "loaded") this.#notHere(run, address, shallow);
    return this.#readIn(run, address, shallow);
  }

  #readIn(run: Run, address: Address, shallow: boolean): Json | undefined {
    this.logRead(run, address, shallow);
    // After the read is registered and what is below has run: only then it is known how this is labelled.
    if (address.document.labels !== undefined) this.#flow.read(run, address, shallow);
    return address.value;
  }

  /** A document that is not loaded reads as absent, and arrives as a change; the output of a resumed node is waited for. */
  #notHere(run: Run | null, address: Address, shallow: boolean): void {
    const { document, replica } = address.home;
    if (document.state === "absent") replica.touch(document);
    if (run === null || run.rehearsal || !this.#persistence.isAwaited(address)) return;
    // Whoever has to compute it runs inside this.
    this.logRead(run, address, shallow);
    if (!this.#persistence.isAwaited(address)) return;
    this.loads = this.#persistence.missed(run.node, address);
    throw START_OVER;
  }

  /** What the last run has to wait for; asking takes it. */
  takeLoads(): Promise<unknown> | undefined {
    const { loads } = this;
    this.loads = undefined;
    return loads;
  }

  logRead(run: Run, address: Address, shallow: boolean): void {
    if (shallow) {
      if (address.shallowRun === run.id) return;
      address.shallowRun = run.id;
    } else {
      if (address.deepRun === run.id) return;
      address.deepRun = run.id;
    }
    const { node, tail } = run;
    const next = tail === null ? node.reads : tail.next;
    if (next !== null && next.address === address && next.shallow === shallow) {
      run.tail = next;
      return;
    }
    // Apart, like everything that a read or a run seldom does: the engine compiles small functions into their callers.
    if (!run.rehearsal && !run.isOver) this.#newRead(run, address, shallow);
  }

  #newRead(run: Run, address: Address, shallow: boolean): void {
    const { node, tail } = run;
    // Removed while it runs: its reads are gone, and nobody would take back another.
    if (!node.registered) return;
    run.tail = this.#graph.addRead(node, address, shallow, tail);
    if (address.home.writers.length === 0 && this.#agenda.idle.size === 0) return;
    this.#finishBelow(run);
    // What the work below wrote here is not news to the reader: it has yet to look.
    const readBefore = (shallow ? address.deepRun : address.shallowRun) === run.id;
    if (node.status === "invalid" && !readBefore) this.#disregard(node, address);
  }

  #disregard(node: SchedulerNode, address: Address): void {
    node.causes = node.causes.filter((cause) => cause !== address);
    if (node.causes.length > 0) return;
    node.status = "clean";
    node.causes = NO_CAUSES;
    this.#agenda.withdraw(node);
  }

  /** Where a write goes: to the running node's unit, to the handling of a send, or to the ambient turn of the space. */
  targetFor(address: Address): WriteTarget {
    const { replica } = address.home;
    const run = this.current;
    if (run === null) return this.handling ?? this.#turns.ambient(replica);
    if (run.node.kind === "computation" && !run.rehearsal && !isInSurface(run.node, address))
      this.#introspection.wroteOutside(run.node, address);
    if (run.label.length > 0) this.#flow.requireWritable(run, address.alone);
    run.unit ??= new WriteUnit(replica);
    if (run.unit.replica !== replica) {
      throw new Error(`node ${run.node.id} writes into two spaces; a run is one commit, and a commit is of one space`);
    }
    return run.unit;
  }

  /** A document that the running node derives besides its output. */
  derive(address: Address, value: unknown): void {
    const node = this.current?.node;
    if (node === undefined) throw new Error(`${address} can be derived only by a node that runs`);
    if (this.current?.rehearsal) return;
    const { document } = address.home;
    if (document.state === "absent") document.state = "loaded";
    document.derived = true;
    this.#put(this.current as Run, address, value);
  }

  /** Runs what has to come before the reader and was discovered by its read. */
  #finishBelow(run: Run): void {
    const { node } = run;
    const upstream = this.#upstream as UpstreamWork;
    if (this.#agenda.idle.size > 0 && node.envelope === undefined) upstream.promoteBefore(node);
    for (let first = this.#agenda.primary.first; first !== undefined; first = this.#agenda.primary.first) {
      if (first.height >= node.height) break;
      const written = run.unit !== null && !run.unit.isEmpty;
      if (written || this.#depth >= NESTED_RUNS_MAX || this.current !== run) throw START_OVER;
      // An asynchronous run cannot be waited for inside a synchronous read, and nothing runs beside it.
      if (upstream.isWaiting || upstream.runNext(first) !== undefined) throw START_OVER;
    }
  }

  // Running --------------------------------------------------------------------------------------------------------------

  /** Runs a node that the agenda has given out; a promise if its function is asynchronous. */
  run(node: SchedulerNode): Promise<void> | undefined {
    const causes = takeCauses(node);
    const wasNew = node.status === "never-ran";
    // Before the run: what it changes itself is not its business, what others change meanwhile is.
    node.status = "clean";
    node.slot = RUNNING;
    const run = new Run(this, node, ++this.#lastRun, causes, false);
    if (causes.length > 0 && isProcess(node)) this.#flow.triggered(run);
    const isTimed = node.kind === "effect" && isWorthTiming(node);
    const started = isTimed ? this.#host.monotonic() : 0;
    const outer = this.current;
    this.current = run;
    this.#depth++;
    let result: unknown;
    let thrown: unknown;
    let threw = false;
    try {
      result = node.run(run);
    } catch (error) {
      thrown = error;
      threw = true;
    }
    this.current = outer;
    this.#depth--;
    if (!threw && isPromise(result)) return this.#finishLater(run, result, wasNew);
    if (node.gate !== undefined || isTimed) this.#gates.ran(node, isTimed ? this.#host.monotonic() - started : 0);
    if (threw) this.#threw(run, thrown, wasNew);
    else this.#finish(run, result);
    this.#ended(run);
    return undefined;
  }

  async #finishLater(run: Run, promise: Promise<unknown>, wasNew: boolean): Promise<void> {
    const { node } = run;
    const started = this.#host.monotonic();
    let result: unknown;
    let thrown: unknown;
    let threw = false;
    try {
      // What it wrote in place cannot stay uncommitted while others get to the documents.
      this.#commit(run);
    } catch (error) {
      this.#takeBack(run);
      thrown = error;
      threw = true;
    }
    try {
      result = await promise;
    } catch (error) {
      if (!threw) thrown = error;
      threw = true;
    }
    this.#gates.ran(node, this.#host.monotonic() - started);
    if (threw) this.#threw(run, thrown, wasNew);
    else this.#finish(run, result);
    this.#ended(run);
  }

  /** Synchronous code of an asynchronous run, after an await. */
  within<T>(run: Run, code: () => T): T {
    if (!run.node.registered) throw new Error(`node ${run.node.id} was removed while it ran`);
    const outer = this.current;
    this.current = run;
    try {
      const result = code();
      if (outer !== run) this.#commit(run);
      return result;
    } catch (error) {
      if (outer !== run) this.#takeBack(run);
      throw error;
    } finally {
      this.current = outer;
    }
  }

  /** Its node may be queued again, and has to be if something it read has changed meanwhile. */
  #ended(run: Run): void {
    const { node } = run;
    run.isOver = true;
    node.slot = UNQUEUED;
    if (node.status !== "clean" && node.live && node.registered) this.#agenda.offer(node);
  }

  #threw(run: Run, error: unknown, wasNew: boolean): void {
    if (error === START_OVER) this.#startOver(run, wasNew);
    else this.#failed(run, error);
  }

  #finish(run: Run, result: unknown): void {
    const { node, tail } = run;
    if (!node.registered) return this.#takeBack(run);
    if (node.record !== undefined && this.#hasReadTooEarly(run)) return;
    if ((tail === null ? node.reads : tail.next) !== null) this.#graph.trimReads(node, tail);
    const { output } = node;
    try {
      if (run.unit !== null || node.envelope !== undefined) this.#commit(run);
      if (output !== undefined) this.#put(run, output, result);
    } catch (error) {
      return this.#failed(run, error);
    }
    // Only where it is another: what is written to a node is written to memory that nobody else needs now.
    if (node.error !== undefined) node.error = undefined;
    node.runs++;
    this.#introspection.ran(run);
    if (node.record !== undefined) this.#persistence.ran(node, node.record);
    if (this.#introspection.checksIdempotency && node.kind === "computation") this.#rehearse(node);
  }

  /** Commits what the run has written so far; throws, with nothing committed, where it could be read by who must not know. */
  #commit(run: Run): void {
    if (run.label.length > 0) {
      if (run.unit !== null) this.#flow.requireWritable(run, run.unit.addresses());
      this.#raise(run);
    }
    this.#commits.commit(run);
  }

  /** Labels all that a materializer may write. */
  #raise(run: Run): void {
    const raises = this.#flow.raises(run);
    const place = run.node.envelope?.[0];
    if (raises.length === 0 || place === undefined) return;
    run.unit ??= new WriteUnit(place.home.replica);
    run.unit.labels = raises;
  }

  #takeBack(run: Run): void {
    run.unit?.undo();
    run.unit = null;
  }

  /** Runs a computation again on what it has just read; it must write the same. Asynchronous ones are not checked. */
  #rehearse(node: SchedulerNode): void {
    const run = new Run(this, node, ++this.#lastRun, NO_CAUSES, true);
    const outer = this.current;
    this.current = run;
    try {
      const result = node.run(run);
      if (isPromise(result)) return;
      const output = result === undefined ? undefined : admit(result, node.output?.value);
      this.#introspection.compare(node, output, run.unit !== null && !run.unit.isEmpty);
    } catch {
      // It did not throw the first time.
      this.#introspection.compare(node, undefined, true);
    } finally {
      this.#takeBack(run);
      this.current = outer;
    }
  }

  /** Puts what a node has derived into a document: at once for readers here, without a commit. */
  #put({ node, label }: Run, root: Address, value: unknown): void {
    const { document } = root;
    if (label !== PUBLIC || document.labels !== undefined) this.#flow.derive(node, root, label);
    const before = document.value;
    const after = value === undefined ? undefined : admit(value, before);
    // What was admitted is neither NaN nor -0.
    if (before === after) return;
    document.value = after;
    this.#invalidation.changed(root, before, after, node, node.changeGroup);
  }

  /** Everything it read stays registered, now and before: whatever changes, it is worth another try. */
  #failed(run: Run, error: unknown): void {
    const { node } = run;
    if (!node.registered) return this.#takeBack(run);
    if (node.record !== undefined && this.#hasReadTooEarly(run)) return;
    this.#takeBack(run);
    this.#graph.dropRepeatedReads(run);
    node.error = error;
    node.runs++;
    const { output } = node;
    if (output !== undefined) this.#put(run, output, undefined);
    if (node.envelope !== undefined && run.label.length > 0) this.#commit(run);
    this.#introspection.failed(run, error);
    if (node.record !== undefined) this.#persistence.ran(node, node.record);
  }

  /** What is kept is not computed from documents that are on their way: the run goes on to find all of them, and starts over. */
  #hasReadTooEarly(run: Run): boolean {
    const loads = this.#persistence.loadsOf(run.node);
    if (loads === undefined) return false;
    this.loads = loads;
    this.#startOver(run, run.node.runs === 0 && run.causes.length === 0);
    return true;
  }

  #startOver(run: Run, wasNew: boolean): void {
    const { node, causes } = run;
    if (!node.registered) return this.#takeBack(run);
    this.#takeBack(run);
    node.status = wasNew ? "never-ran" : "invalid";
    restoreCauses(node, causes);
  }
}

function isWorthTiming({ runs, gate }: SchedulerNode): boolean {
  if (runs < TIMED_RUNS || (runs & TIMED_AGAIN_MASK) === 0) return true;
  return gate !== undefined && gate.slowRuns > 0 && runs < TIMED_RUNS_OF_SLOW;
}

/** Whether a computation has declared that it writes there. A slot of another scope is its own affair. */
function isInSurface(node: SchedulerNode, address: Address): boolean {
  if (address.home.document.scope !== SHARED_SCOPE) return true;
  if (node.outputs.some((output) => output.home === address.home)) return true;
  const { path } = address;
  return node.envelope?.some((place) => place.home === address.home && overlap(place.path, path)) ?? false;
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
