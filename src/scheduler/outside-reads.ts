/**
 * A plain read brings a computed value up to date before it returns, by a demand for the length of the read: a
 * temporary observer makes the computations upstream live, the unclean ones run by height, and the demand ends. Effects
 * wait for their pass. A value that cannot be computed now stays as it is: because of an asynchronous run, a gate, or
 * an input that is not loaded. SPEC: R80, R81.
 */
import type { Agenda } from "./agenda.ts";
import type { Graph } from "./graph.ts";
import { upstream } from "./graph-walk.ts";
import type { DocumentIndex, NodeAddress, SchedulerNode } from "./node.ts";
import type { Registry } from "./registry.ts";

/** An abandoned run adds the reads that it found; a node is abandoned at most a few times before it runs or waits. */
const SWEEPS_WITHOUT_RUN_MAX = 100;

/** Runs nodes for a read; implemented by the settle component. */
export interface ReadWork {
  /** Reports the writes so far to readers, and gives the read a pass of its own for run budgets. */
  beginRead(): void;
  runNext(node: SchedulerNode): Promise<void> | undefined;
  /** Withdraws demand that only the read gave. */
  endRead(): void;
  /** Readers have not been told of every write. */
  readonly hasUntold: boolean;
}

export class OutsideReads {
  #work: ReadWork | undefined;
  readonly #registry: Registry;
  readonly #graph: Graph;
  readonly #agenda: Agenda;

  constructor(parts: { registry: Registry; graph: Graph; agenda: Agenda }) {
    this.#registry = parts.registry;
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
  }

  set work(work: ReadWork) {
    this.#work = work;
  }

  /** Brings the nodes that write the document up to date, as far as possible now. */
  bringUpToDate(address: NodeAddress, shallow: boolean): void {
    const work = this.#work as ReadWork;
    // Short enough to be compiled into every read.
    if (address.home.upToDateAt !== this.#graph.tick || work.hasUntold) this.#bringUpToDate(address, shallow, work);
  }

  #bringUpToDate(address: NodeAddress, shallow: boolean, work: ReadWork): void {
    const { home } = address;
    if (!work.hasUntold && this.#isClean(home)) {
      // The end of a gate is no change of a value, so it would not move the tick.
      if (!this.#agenda.hasGated) home.upToDateAt = this.#graph.tick;
      return;
    }
    work.beginRead();
    const observer = this.#observe(address, shallow);
    this.#agenda.holdEffects();
    try {
      this.#runUpstream(observer, work);
      home.upToDateAt = this.#graph.tick;
    } finally {
      this.#release(observer);
      this.#agenda.releaseEffects();
      work.endRead();
    }
  }

  /** No queued node could change it. */
  #isClean({ writers }: DocumentIndex): boolean {
    return this.#agenda.isEmpty && writers.every(({ live, status }) => live && status === "clean");
  }

  #observe(address: NodeAddress, shallow: boolean): SchedulerNode {
    const observer = this.#registry.create({ kind: "effect", id: `read of ${address}`, run: () => undefined });
    observer.status = "clean";
    this.#graph.root(observer);
    this.#graph.addRead(observer, address, shallow, null);
    return observer;
  }

  /**
   * One sweep by height runs a chain of any length. A run that reads other places than before changes the graph, so the
   * sweep starts again. A sweep in which no run ends has found only nodes that must wait.
   */
  #runUpstream(observer: SchedulerNode, work: ReadWork): void {
    for (let sweeps = 0; sweeps < SWEEPS_WITHOUT_RUN_MAX; sweeps++) {
      const edges = this.#graph.indexWrites;
      let isDone = true;
      for (const node of [...upstream(observer)].sort((a, b) => a.height - b.height)) {
        if (node === observer || node.slot < 0 || node.envelope !== undefined) continue;
        const { runs } = node;
        work.runNext(node);
        if (node.runs !== runs) sweeps = 0;
        if (this.#graph.indexWrites === edges) continue;
        isDone = false;
        break;
      }
      if (isDone) return;
    }
  }

  #release(observer: SchedulerNode): void {
    this.#agenda.withdraw(observer);
    this.#graph.unroot(observer);
    this.#graph.dropReads(observer, null);
    this.#registry.delete(observer);
  }
}
