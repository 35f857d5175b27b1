/**
 * Which node comes before which beyond their heights: parents before children (Scheduler v2 §7.4), materializers before those who read
 * what they may write (§4.3), and nodes of circles in whatever order is possible today. All of it is found out when a node's turn comes,
 * and put right by moving nodes; it holds nothing itself.
 */
import { overlap } from "../store/path-operation.ts";
import type { Agenda } from "./agenda.ts";
import type { Graph } from "./graph.ts";
import { upstream } from "./graph-walk.ts";
import type { SchedulerNode } from "./node.ts";

export class Precedence {
  readonly #graph: Graph;
  readonly #agenda: Agenda;

  constructor({ graph, agenda }: { graph: Graph; agenda: Agenda }) {
    this.#graph = graph;
    this.#agenda = agenda;
  }

  /** Whether something turned out that has to run before the node; then the order has been changed. */
  comesLater(node: SchedulerNode): boolean {
    const mayHaveToWait = node.particulars !== null || !this.#agenda.idle.isEmpty || this.#graph.heights.hasCircles;
    return mayHaveToWait && this.#hasToWait(node);
  }

  #hasToWait(node: SchedulerNode): boolean {
    if (!this.#agenda.idle.isEmpty && node.envelope === undefined && this.promoteBefore(node)) return true;
    const { heights } = this.#graph;
    if (heights.hasCircles && heights.isUnordered(node) && heights.retry(node)) return true;
    return node.parent !== undefined && this.#parentFirst(node, node.parent);
  }

  /** A parent may remove its children, so it goes first unless it reads from them; true if the child has moved. */
  #parentFirst(child: SchedulerNode, parent: SchedulerNode): boolean {
    if (parent.slot < 0 || parent.height < child.height || upstream(parent).has(child)) return false;
    this.#graph.heights.order(child, parent);
    return child.height > parent.height;
  }

  /** Puts queued materializers whose envelope the node reads before it; true if there were any. */
  promoteBefore(node: SchedulerNode): boolean {
    let promoted = false;
    for (const materializer of [...this.#agenda.idle]) {
      if (!readsInside(node, materializer)) continue;
      // What the materializer reads from the node itself comes first, and then it is the other way round.
      if (upstream(materializer).has(node)) continue;
      this.#graph.heights.order(node, materializer);
      this.#agenda.promote(materializer);
      promoted = true;
    }
    return promoted;
  }
}

function readsInside(reader: SchedulerNode, materializer: SchedulerNode): boolean {
  for (let edge = reader.reads; edge !== null; edge = edge.next) {
    for (const place of materializer.envelope ?? []) {
      if (place.home === edge.address.home && overlap(place.path, edge.address.path)) return true;
    }
  }
  return false;
}
