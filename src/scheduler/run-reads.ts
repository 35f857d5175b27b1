/**
 * The reads of a run: compared with the node's registered reads as they are made, so that the same reads in the same
 * order change no index.
 *
 * A read that finds work below the reader (a computation that never ran, or has missed changes) must not return an
 * outdated value. That work runs inside the read. If runs are nested too deeply, or the inner run would see uncommitted
 * writes of the reader, the reader is abandoned by throwing `START_OVER` through its function, and queued again. A run
 * is abandoned in the same way when it reads a persisted output, or writes into a document, that is not loaded; it
 * starts over after the load.
 *
 * Not here: reads of plain code, transactions and handlers, which register no edges (`runner.ts` tells them apart).
 */
import type { Json } from "../message/json.ts";
import type { Agenda } from "./agenda.ts";
import { causesOf, dropCause } from "./causes.ts";
import type { Graph } from "./graph.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { DocumentIndex, NodeAddress, SchedulerNode } from "./node.ts";
import type { Persistence } from "./persistence.ts";
import type { Precedence } from "./precedence.ts";
import type { Run } from "./run.ts";
import type { WriteUnit } from "./write-unit.ts";

/** Thrown through a node's function to abandon the run; not an `Error`, so that it costs no stack trace. */
export const START_OVER = Symbol("start over");

/** Runs a node; implemented by the settle component. */
export interface UpstreamWork {
  runNext(node: SchedulerNode): Promise<void> | undefined;
  /** Whether other nodes may run inside the run now. */
  mayNest(run: Run): boolean;
  /** An asynchronous run is awaited: no other node may run. */
  readonly isWaiting: boolean;
}

export class RunReads {
  /** Loads of outputs that a run has met; it starts over when they end. */
  loads: Promise<unknown> | undefined;
  #upstream: UpstreamWork | undefined;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #precedence: Precedence;
  readonly #persistence: Persistence;
  readonly #flow: InformationFlow;

  constructor(parts: {
    graph: Graph;
    agenda: Agenda;
    precedence: Precedence;
    persistence: Persistence;
    flow: InformationFlow;
  }) {
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#precedence = parts.precedence;
    this.#persistence = parts.persistence;
    this.#flow = parts.flow;
  }

  set upstream(upstream: UpstreamWork) {
    this.#upstream = upstream;
  }

  read(run: Run, address: NodeAddress, shallow: boolean): Json | undefined {
    if ((shallow ? address.shallowRun : address.deepRun) !== run.id) this.#firstRead(run, address, shallow);
    // The label is known only after the read is registered and the nodes below have run.
    if (address.document.labels !== undefined) this.#flow.read(run, address, shallow);
    return address.value;
  }

  /** The run's first read of the address; further reads cost one comparison. */
  #firstRead(run: Run, address: NodeAddress, shallow: boolean): void {
    if (address.document.state !== "loaded") this.#notHere(run, address, shallow);
    this.#log(run, address, shallow);
    // After the work below, which may have loaded the document, or found that it cannot be loaded.
    if (address.document.state !== "loaded") this.#early(run, address);
  }

  /** The run read before the document is loaded (R55). The read is registered, so that the load wakes the node. */
  #early(run: Run, { document }: NodeAddress): void {
    if (document.isReadable || run.rehearsal || run.isOver) return;
    run.isEarly = true;
    if (run.node.whileLoading === "abandon") throw abandon(run);
  }

  #log(run: Run, address: NodeAddress, shallow: boolean): void {
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
    // A function of its own, because the engine inlines small functions.
    if (!run.rehearsal && !run.isOver) this.#newRead(run, address, shallow);
  }

  #newRead(run: Run, address: NodeAddress, shallow: boolean): void {
    const { node, tail } = run;
    // If the node was removed while it runs, no later call would drop the read.
    if (!node.registered) return;
    run.tail = this.#graph.addRead(node, address, shallow, tail);
    if (address.home.writers.length === 0 && this.#agenda.idle.isEmpty) return;
    this.#finishBelow(run);
    // The reader has not read the value yet, so a change by the work below does not invalidate it.
    const readBefore = (shallow ? address.deepRun : address.shallowRun) === run.id;
    if (node.status === "invalid" && !readBefore) this.#disregard(node, address);
  }

  #disregard(node: SchedulerNode, address: NodeAddress): void {
    if (!dropCause(node, address)) return;
    node.status = "clean";
    this.#agenda.withdraw(node);
  }

  /** Runs the nodes that must run before the reader, as its read has shown. */
  #finishBelow(run: Run): void {
    const { node } = run;
    const upstream = this.#upstream as UpstreamWork;
    if (!this.#agenda.idle.isEmpty && node.envelope === undefined) this.#precedence.promoteBefore(node);
    for (let first = this.#agenda.primary.first; first !== undefined; first = this.#agenda.primary.first) {
      if (first.height >= node.height) break;
      if (!upstream.mayNest(run)) throw abandon(run);
      // A synchronous read cannot wait for an asynchronous run, and no other node runs beside it.
      if (upstream.isWaiting || upstream.runNext(first) !== undefined) throw abandon(run);
    }
  }

  /** Runs the nodes below after the run made a computation again; their changes do not invalidate the run either. */
  finishRemade(run: Run): void {
    const { node } = run;
    this.#finishBelow(run);
    if (node.status !== "invalid") return;
    for (const cause of [...causesOf(node)])
      if (cause.deepRun !== run.id && cause.shallowRun !== run.id) this.#disregard(node, cause);
  }

  // Documents that are not loaded
  // ---------------------------------------------------------------------------------------

  /** Requests the document. For the output of a resumed node, the run is abandoned until it is loaded. */
  #notHere(run: Run, address: NodeAddress, shallow: boolean): void {
    const { document, replica } = address.home;
    if (document.state === "absent") replica.touch(document);
    if (run.rehearsal || !this.#persistence.isAwaited(address)) return;
    // If the node must be computed, it runs inside this call.
    this.#log(run, address, shallow);
    if (!this.#persistence.isAwaited(address)) return;
    this.loads = this.#persistence.missed(run.node, address);
    throw abandon(run);
  }

  /**
   * A run writes into a document that is not loaded: it starts over after the load. The read keeps the document loaded.
   */
  bring(run: Run, unit: WriteUnit, home: DocumentIndex): void {
    const { document, replica, root } = home;
    if (document.loadError !== undefined || run.rehearsal || unit.hasPut(home)) return;
    this.#log(run, root, true);
    if (document.state === "absent") replica.touch(document);
    this.loads = replica.loadsSettled();
    throw abandon(run);
  }

  /** Whether the run has read a document that is being loaded and will arrive. */
  hasReadTooEarly({ node }: Run): boolean {
    const loads = this.#persistence.loadsOf(node);
    if (loads === undefined) return false;
    this.loads = loads;
    return true;
  }

  /** Takes the loads that the last run must wait for. */
  takeLoads(): Promise<unknown> | undefined {
    const { loads } = this;
    this.loads = undefined;
    return loads;
  }
}

/** Marks the run and returns the signal to throw. Code that catches the signal cannot keep the run. */
function abandon(run: Run): typeof START_OVER {
  run.isAbandoned = true;
  return START_OVER;
}
