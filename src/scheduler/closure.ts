/**
 * What the handler of one send, or a transaction, reads that nodes write: a demand for as long as the send is at the head of its queue (Scheduler v2
 * §7.5), or the transaction is open. The consistency gate is inverted: nothing walks up from what is read. Work that is ready runs by height, as it does inside
 * a node's read; only nodes that a gate holds back are followed downstream to see whether they lead here. Where nothing waits to
 * run and what is read is live, none of this is needed, and a read costs a few comparisons.
 */
import { overlap } from "../store/path-operation.ts";
import type { Address, DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { readersOf } from "./graph-walk.ts";
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

  constructor(parts: ClosureParts, of: { toString(): string }) {
    this.#parts = parts;
    this.#of = of;
  }

  /** Brings up to date what is not; false where that has to wait. */
  require(address: Address, shallow: boolean): boolean {
    const node = this.#demand(address, shallow);
    if (!this.#parts.work.finishBefore(node) || this.#isHeldUp(node)) return false;
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
    const { agenda, gates, runner, work } = this.#parts;
    if (!agenda.idle.isEmpty || gates.held.size > 0 || work.hasUntold) return false;
    const { first } = agenda.primary;
    for (const writer of writers) {
      if (!writer.live || writer.status !== "clean" || (first !== undefined && first.height < writer.height))
        return false;
    }
    for (const run of runner.awaited) if (writers.some((writer) => leadsTo(run, writer))) return false;
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

  #isHeldUp(node: SchedulerNode): boolean {
    for (const held of this.#parts.gates.held) {
      if (held.status !== "clean" && held.live && (leadsTo(held, node) || this.#coversRead(held))) return true;
    }
    return false;
  }

  #coversRead({ envelope }: SchedulerNode): boolean {
    if (envelope === undefined) return false;
    for (const { home, path } of this.#wanted?.keys() ?? []) {
      if (envelope.some((place) => place.home === home && overlap(place.path, path))) return true;
    }
    return false;
  }
}

/** Whether nothing that writes there has anything left to do; most sends read nothing else, and need no closure. */
export function isCurrent({ agenda, gates, work }: ClosureParts, { writers }: DocumentIndex): boolean {
  if (writers.length === 0 && agenda.idle.isEmpty && gates.held.size === 0) return true;
  if (!agenda.isEmpty || gates.held.size > 0 || work.isUnsettled) return false;
  return writers.every((writer) => writer.live && writer.status === "clean");
}

/** Whether what a node writes reaches another, over any number of nodes. */
function leadsTo(from: SchedulerNode, to: SchedulerNode): boolean {
  const seen = new Set([from]);
  for (const node of seen) {
    if (node === to) return true;
    for (const reader of readersOf(node)) seen.add(reader);
  }
  return false;
}
