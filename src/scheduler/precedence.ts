/**
 * Order between nodes beyond their heights: parents before children (Scheduler v2 §7.4), materializers before readers
 * of their envelope (§4.3), and nodes of circles as far as possible. It is checked when a node is about to run, and
 * corrected by changing heights. It has no state.
 */
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

  /** Whether another node must run first; then the order has been changed. */
  comesLater(node: SchedulerNode): boolean {
    const mayHaveToWait = node.extras !== null || !this.#agenda.idle.isEmpty || this.#graph.heights.hasCircles;
    return mayHaveToWait && this.#hasToWait(node);
  }

  #hasToWait(node: SchedulerNode): boolean {
    if (!this.#agenda.idle.isEmpty && node.envelope === undefined && this.promoteBefore(node)) return true;
    const { heights } = this.#graph;
    if (heights.hasCircles && heights.isUnordered(node) && heights.retry(node)) return true;
    return node.parent !== undefined && this.#parentFirst(node, node.parent);
  }

  /**
   * A parent may remove its children, so it runs first unless it reads from them; true if the child's height changed.
   */
  #parentFirst(child: SchedulerNode, parent: SchedulerNode): boolean {
    if (parent.slot < 0 || parent.height < child.height || upstream(parent).has(child)) return false;
    this.#graph.heights.order(child, parent);
    return child.height > parent.height;
  }

  /** Orders queued materializers whose envelope the node reads before it; true if there were any. */
  promoteBefore(node: SchedulerNode): boolean {
    let promoted = false;
    for (const materializer of this.#agenda.envelopes.readBy(node)) {
      // If the materializer reads from the node, the node runs first.
      if (upstream(materializer).has(node)) continue;
      this.#graph.heights.order(node, materializer);
      this.#agenda.promote(materializer);
      promoted = true;
    }
    return promoted;
  }
}
