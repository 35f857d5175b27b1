/**
 * The derived inputs of one send's handler, or of a transaction. They are demanded while the send is at the head of its
 * queue (Scheduler v2 §7.5), or while the transaction is open. Ready work runs by height, as for a node's read. Only
 * gated nodes, and queued nodes if there are materializers, are followed downstream to see whether they lead to an
 * input. If no node is queued and the inputs are live, a read costs a few comparisons.
 */
import { overlap } from "../store/path-operation.ts";
import type { Agenda } from "./agenda.ts";
import { type Gates, isUnsettling } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { isDerived, linkedEdges, readersOf } from "./graph-walk.ts";
import type { DocumentIndex, NodeAddress, SchedulerNode } from "./node.ts";
import type { Registry } from "./registry.ts";
import type { Runner } from "./runner.ts";

/** Runs nodes on behalf of a send; implemented by the settle component. */
export interface NodeWork {
  /** Runs the nodes before this one; false if an asynchronous run blocks them. */
  finishBefore(node: SchedulerNode): boolean;
  /** Changes have not reached all readers yet, or an asynchronous run is awaited. */
  readonly isUnsettled: boolean;
  /** Changes have not reached all readers yet. */
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
  /** The name of the handler or transaction, for the node's id. */
  readonly #of: { toString(): string };
  /** The demanded addresses, and whether only shallowly. */
  #wanted: Map<NodeAddress, boolean> | undefined;
  /** Created by the first read that needs it. */
  #node: SchedulerNode | undefined;
  /** The graph's tick when all inputs were up to date. */
  #upToDateAt = 0;
  /** Whether nodes that exhausted their budget block it too. */
  readonly #waitsForUnsettling: boolean;

  constructor(parts: ClosureParts, of: { toString(): string }, { waitsForUnsettling = false } = {}) {
    this.#parts = parts;
    this.#of = of;
    this.#waitsForUnsettling = waitsForUnsettling;
  }

  /** Brings the place up to date; false if that must wait. */
  require(address: NodeAddress, shallow: boolean): boolean {
    const node = this.#demand(address, shallow);
    do {
      if (!this.#parts.work.finishBefore(node) || this.#isHeldUp(node)) return false;
    } while (this.#orderBefore(node));
    // If a computed value waits for documents, its reader waits too.
    if (!address.document.isReadable && isDerived(address.home)) return false;
    this.#upToDateAt = this.#parts.graph.tick;
    return true;
  }

  /** Whether the value at the place is up to date; runs no node. */
  shows(address: NodeAddress, shallow: boolean): boolean {
    if (isCurrent(this.#parts, address.home)) return true;
    const known = this.#wanted?.get(address);
    const isRequired = known !== undefined && (shallow || !known);
    return (isRequired && this.#upToDateAt === this.#parts.graph.tick) || this.#isApart(address.home);
  }

  /**
   * Whether no active or queued work leads to the document: neither a queued node of lower height nor an awaited run. A
   * transaction in the middle of a pass, or of an asynchronous run, cannot wait for its end.
   */
  #isApart({ writers }: DocumentIndex): boolean {
    const { agenda, gates, graph, runner, work } = this.#parts;
    if (!agenda.idle.isEmpty || gates.held.size > 0 || work.hasUntold) return false;
    const { first } = agenda.primary;
    for (const writer of writers) {
      if (!writer.live || writer.status !== "clean" || (first !== undefined && first.height < writer.height))
        return false;
    }
    for (const node of runner.awaited.keys()) if (writers.some((writer) => leadsTo(node, writer))) return false;
    // Heights do not cover the places that materializers may write.
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

  #demand(address: NodeAddress, shallow: boolean): SchedulerNode {
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

  /** An input changed while the send waits: the demand stays. */
  #readAgain(): void {
    for (const [address, shallow] of this.#wanted ?? []) this.#parts.runner.read(address, shallow);
  }

  /**
   * A node that exhausted its budget does not block a send, which reads its value as it is (I6). It blocks a
   * transaction, which can be refused.
   */
  #isHeldUp(node: SchedulerNode): boolean {
    for (const held of this.#parts.gates.held) {
      const counts = held.status !== "clean" && held.live && (this.#waitsForUnsettling || !isUnsettling(held));
      if (counts && leadsTo(held, node)) return true;
    }
    return false;
  }

  /**
   * Orders queued nodes that lead to this node before it; true if there were any. Nodes that are left after ordering by
   * height lead here over envelopes.
   */
  #orderBefore(node: SchedulerNode): boolean {
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

/** Whether every writer of the document is up to date. This holds for most sends, which then need no closure. */
export function isCurrent({ agenda, gates, graph, work }: ClosureParts, home: DocumentIndex): boolean {
  const { writers } = home;
  if (writers.length === 0 && !graph.isInEnvelope(home)) return true;
  if (!agenda.isEmpty || gates.held.size > 0 || work.isUnsettled) return false;
  return writers.every((writer) => writer.live && writer.status === "clean");
}

/** Whether the outputs or envelope of one node reach another, over any number of nodes. */
export function leadsTo(from: SchedulerNode, to: SchedulerNode): boolean {
  const seen = new Set([from]);
  for (const node of seen) {
    if (node === to) return true;
    for (const reader of readersOf(node)) seen.add(reader);
    for (const place of node.envelope ?? NONE) for (const reader of readersInside(place)) seen.add(reader);
  }
  return false;
}

function* readersInside({ home, path }: NodeAddress): Iterable<SchedulerNode> {
  if (home.liveAddresses === 0) return;
  for (const { node, address } of linkedEdges(home.root)) if (overlap(path, address.path)) yield node;
}

const NONE: readonly NodeAddress[] = Object.freeze([]);
