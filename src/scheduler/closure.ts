/**
 * What the handler of one send, or a transaction, reads that nodes write: a demand for as long as the send is at the head of its queue (Scheduler v2
 * §7.5), or the transaction is open. The consistency gate is inverted: nothing walks up from what is read. Work that is ready runs by height, as it does inside
 * a node's read; only nodes that a gate holds back, and where there are materializers those that are left, are followed downstream to see whether they
 * lead here. Where nothing waits to run and what is read is live, none of this is needed, and a read costs a few comparisons.
 */
import { overlap } from "../store/path-operation.ts";
import type { Address, DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import { type Gates, isUnsettling } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { isDerived, linkedEdges, readersOf } from "./graph-walk.ts";
import type { SchedulerNode } from "./node.ts";
import type { Registry } from "./registry.ts";
import type { Runner } from "./runner.ts";

/** Runs nodes on behalf of a send; the settle component. */
export interface NodeWork {
  /** Runs what stands before the node; false where an asynchronous run is in the way. */
  finishBefore(node: SchedulerNode): boolean;
  /** Readers have not been told of everything, or an asynchronous run is awaited. */
  readonly isUnsettled: boolean;
  /** Readers have not been told of everything. */
  readonly hasUntold: boolean;
}

export interface ClosureParts {
  readonly registry: Registry;
  readonly graph: Graph;
  readonly agenda: Agenda;
  readonly gates: Gates;
  readonly runner: Runner;
  readonly work: NodeWork;
}

export class Closure {
  readonly #parts: ClosureParts;
  /** Whose reads they are, for people. */
  readonly #of: { toString(): string };
  /** What it demands, and whether only shallow. */
  #wanted: Map<Address, boolean> | undefined;
  /** Made by the first read that needs it. */
  #node: SchedulerNode | undefined;
  /** When all of it was up to date. */
  #upToDateAt = 0;
  /** Whether nodes that do not settle hold it up too. */
  readonly #waitsForUnsettling: boolean;

  constructor(parts: ClosureParts, of: { toString(): string }, { waitsForUnsettling = false } = {}) {
    this.#parts = parts;
    this.#of = of;
    this.#waitsForUnsettling = waitsForUnsettling;
  }

  /** Brings up to date what is not; false where that has to wait. */
  require(address: Address, shallow: boolean): boolean {
    const node = this.#demand(address, shallow);
    do {
      if (!this.#parts.work.finishBefore(node) || this.#isHeldUp(node)) return false;
    } while (this.#putBefore(node));
    // A computed value that waits for documents has to wait here too.
    if (!address.document.isReadable && isDerived(address.home)) return false;
    this.#upToDateAt = this.#parts.graph.tick;
    return true;
  }

  /** Whether what lies there is up to date, without running anything. */
  shows(address: Address, shallow: boolean): boolean {
    if (isCurrent(this.#parts, address.home)) return true;
    const known = this.#wanted?.get(address);
    const isRequired = known !== undefined && (shallow || !known);
    return (isRequired && this.#upToDateAt === this.#parts.graph.tick) || this.#isApart(address.home);
  }

  /**
   * Whether nothing that is under way or waits to run leads there: what stands lower could, and what is awaited. In the middle of a pass, or of an asynchronous
   * run, a transaction cannot wait for the end of that.
   */
  #isApart({ writers }: DocumentIndex): boolean {
    const { agenda, gates, graph, runner, work } = this.#parts;
    if (!agenda.idle.isEmpty || gates.held.size > 0 || work.hasUntold) return false;
    const { first } = agenda.primary;
    for (const writer of writers) {
      if (!writer.live || writer.status !== "clean" || (first !== undefined && first.height < writer.height))
        return false;
    }
    for (const run of runner.awaited) if (writers.some((writer) => leadsTo(run, writer))) return false;
    // Heights say nothing of what materializers may write.
    if (!graph.hasEnvelopes) return true;
    for (const queued of agenda.primary) if (writers.some((writer) => leadsTo(queued, writer))) return false;
    return true;
  }

  release(): void {
    const node = this.#node;
    if (node === undefined) return;
    this.#node = undefined;
    this.#wanted = undefined;
    const { graph, registry } = this.#parts;
    graph.unroot(node);
    graph.dropReads(node, null);
    registry.delete(node);
  }

  #demand(address: Address, shallow: boolean): SchedulerNode {
    const { registry, graph } = this.#parts;
    if (this.#node === undefined) {
      this.#node = registry.create({
        kind: "effect",
        id: `reads of ${this.#of}`,
        noAutoDebounce: true,
        whileLoading: "show",
        run: () => this.#readAgain(),
      });
      this.#node.status = "clean";
      graph.root(this.#node);
    }
    this.#wanted ??= new Map();
    const known = this.#wanted.get(address);
    if (known === undefined || (known && !shallow)) {
      this.#wanted.set(address, shallow);
      graph.addRead(this.#node, address, shallow, null);
    }
    return this.#node;
  }

  /** Something it reads has changed while the send waits: the demand stays. */
  #readAgain(): void {
    for (const [address, shallow] of this.#wanted ?? []) this.#parts.runner.read(address, shallow);
  }

  /** What does not settle holds up no send (I6): its value is seen as it is. Who can be refused, a transaction, is. */
  #isHeldUp(node: SchedulerNode): boolean {
    for (const held of this.#parts.gates.held) {
      const counts = held.status !== "clean" && held.live && (this.#waitsForUnsettling || !isUnsettling(held));
      if (counts && leadsTo(held, node)) return true;
    }
    return false;
  }

  /** Puts what is left to run and leads here before the node; true if there was any. What is left after heights have decided leads here over envelopes. */
  #putBefore(node: SchedulerNode): boolean {
    const { agenda, graph } = this.#parts;
    if (agenda.isEmpty || !graph.hasEnvelopes) return false;
    const before = [...agenda.idle, ...agenda.primary].filter((queued) => queued !== node && leadsTo(queued, node));
    for (const queued of before) {
      graph.heights.order(node, queued);
      if (queued.envelope !== undefined && !queued.promoted) agenda.promote(queued);
    }
    return before.length > 0;
  }
}

/** Whether nothing that writes there, or may, has anything left to do; most sends read nothing else, and need no closure. */
export function isCurrent({ agenda, gates, graph, work }: ClosureParts, home: DocumentIndex): boolean {
  const { writers } = home;
  if (writers.length === 0 && !graph.isInEnvelope(home)) return true;
  if (!agenda.isEmpty || gates.held.size > 0 || work.isUnsettled) return false;
  return writers.every((writer) => writer.live && writer.status === "clean");
}

/** Whether what a node writes, or may write, reaches another, over any number of nodes. */
export function leadsTo(from: SchedulerNode, to: SchedulerNode): boolean {
  const seen = new Set([from]);
  for (const node of seen) {
    if (node === to) return true;
    for (const reader of readersOf(node)) seen.add(reader);
    for (const place of node.envelope ?? NOTHING) for (const reader of readersInside(place)) seen.add(reader);
  }
  return false;
}

function* readersInside({ home, path }: Address): Iterable<SchedulerNode> {
  if (home.liveAddresses === 0) return;
  for (const { node, address } of linkedEdges(home.root)) if (overlap(path, address.path)) yield node;
}

const NOTHING: readonly Address[] = Object.freeze([]);
