/**
 * What a run reads: compared with the node's registered reads while it is made, so that the same reads in the same order write no index.
 *
 * A read that meets work below the reader (a computation that never ran, or slept through changes) must not return a value that is
 * about to change. The work is run right there, inside the read. Where runs are nested too deeply already, or the reader has
 * written something that the inner run must not see, the reader is abandoned by throwing `START_OVER` through its function and
 * queued again. So it is when it meets a kept output that is still in the store, or writes into a document that is: it starts over when
 * that is here.
 *
 * Not here: reads of plain code, transactions and handlers, which register nothing (`runner.ts` tells them apart).
 */
import type { Json } from "../message/json.ts";
import type { Address, DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import { dropCause } from "./causes.ts";
import type { Graph } from "./graph.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { SchedulerNode } from "./node.ts";
import type { Persistence } from "./persistence.ts";
import type { Precedence } from "./precedence.ts";
import type { Run } from "./run.ts";
import type { WriteUnit } from "./write-unit.ts";

/** Thrown through a node's function to abandon the run; not an error, so that it costs no stack trace. */
export const START_OVER = Symbol("start over");

/** Runs the next piece of work; the settle component. */
export interface UpstreamWork {
  runNext(node: SchedulerNode): Promise<void> | undefined;
  /** Whether others may run inside the run, now. */
  mayNest(run: Run): boolean;
  /** An asynchronous run is awaited: nothing else may run. */
  readonly isWaiting: boolean;
}

export class RunReads {
  /** Outputs on their way from the store that a run has met; it starts over when they are here. */
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

  read(run: Run, address: Address, shallow: boolean): Json | undefined {
    if ((shallow ? address.shallowRun : address.deepRun) !== run.id) this.#firstRead(run, address, shallow);
    // After the read is registered and what is below has run: only then it is known how this is labelled.
    if (address.document.labels !== undefined) this.#flow.read(run, address, shallow);
    return address.value;
  }

  /** The first of the run there; the others cost one comparison. */
  #firstRead(run: Run, address: Address, shallow: boolean): void {
    if (address.document.state !== "loaded") this.#notHere(run, address, shallow);
    this.#log(run, address, shallow);
    // After the work below: it may have made the document known, or have found that it cannot.
    if (address.document.state !== "loaded") this.#early(run, address);
  }

  /** The run has read before the document is known (R55). The read is registered, so that the node hears when it is. */
  #early(run: Run, { document }: Address): void {
    if (document.isReadable || run.rehearsal || run.isOver) return;
    run.isEarly = true;
    if (run.node.whileLoading === "abandon") throw abandon(run);
  }

  #log(run: Run, address: Address, shallow: boolean): void {
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
    if (address.home.writers.length === 0 && this.#agenda.idle.isEmpty) return;
    this.#finishBelow(run);
    // What the work below wrote here is not news to the reader: it has yet to look.
    const readBefore = (shallow ? address.deepRun : address.shallowRun) === run.id;
    if (node.status === "invalid" && !readBefore) this.#disregard(node, address);
  }

  #disregard(node: SchedulerNode, address: Address): void {
    if (!dropCause(node, address)) return;
    node.status = "clean";
    this.#agenda.withdraw(node);
  }

  /** Runs what has to come before the reader and was discovered by its read. */
  #finishBelow(run: Run): void {
    const { node } = run;
    const upstream = this.#upstream as UpstreamWork;
    if (!this.#agenda.idle.isEmpty && node.envelope === undefined) this.#precedence.promoteBefore(node);
    for (let first = this.#agenda.primary.first; first !== undefined; first = this.#agenda.primary.first) {
      if (first.height >= node.height) break;
      if (!upstream.mayNest(run)) throw abandon(run);
      // An asynchronous run cannot be waited for inside a synchronous read, and nothing runs beside it.
      if (upstream.isWaiting || upstream.runNext(first) !== undefined) throw abandon(run);
    }
  }

  /** Runs what has to come before what the run reads next, since it has made a computation again: that is not news to it either. */
  finishRemade(run: Run): void {
    const { node } = run;
    this.#finishBelow(run);
    if (node.status !== "invalid") return;
    for (const cause of [...node.causes])
      if (cause.deepRun !== run.id && cause.shallowRun !== run.id) this.#disregard(node, cause);
  }

  // What is not loaded ---------------------------------------------------------------------------------------------------

  /** Asks for the document. The output of a resumed node is waited for. */
  #notHere(run: Run, address: Address, shallow: boolean): void {
    const { document, replica } = address.home;
    if (document.state === "absent") replica.touch(document);
    if (run.rehearsal || !this.#persistence.isAwaited(address)) return;
    // Whoever has to compute it runs inside this.
    this.#log(run, address, shallow);
    if (!this.#persistence.isAwaited(address)) return;
    this.loads = this.#persistence.missed(run.node, address);
    throw abandon(run);
  }

  /** A run writes into a document that is not here: it starts over when it is. Until then it reads it, so that it stays. */
  bring(run: Run, unit: WriteUnit, home: DocumentIndex): void {
    const { document, replica, root } = home;
    if (document.loadError !== undefined || run.rehearsal || unit.hasPut(home)) return;
    this.#log(run, root, true);
    if (document.state === "absent") replica.touch(document);
    this.loads = replica.loadsSettled();
    throw abandon(run);
  }

  /** Whether the run has read what is on its way from the store: then there is something to wait for. */
  hasReadTooEarly({ node }: Run): boolean {
    const loads = this.#persistence.loadsOf(node);
    if (loads === undefined) return false;
    this.loads = loads;
    return true;
  }

  /** What the last run has to wait for; asking takes it. */
  takeLoads(): Promise<unknown> | undefined {
    const { loads } = this;
    this.loads = undefined;
    return loads;
  }
}

/** Marks the run and gives the signal to throw through the node's function. Code that catches it cannot keep the run. */
function abandon(run: Run): typeof START_OVER {
  run.isAbandoned = true;
  return START_OVER;
}
