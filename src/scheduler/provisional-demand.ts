/**
 * Demand on credit (Scheduler v2 §5.3): what a live node's run has created is demanded until the pass ends in which it was created and
 * it has run, so that whoever made it can look at it. By then somebody demands it, or it sleeps.
 */
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { SchedulerNode } from "./node.ts";

export class ProvisionalDemand {
  readonly #graph: Graph;
  readonly #gates: Gates;
  readonly #nodes = new Set<SchedulerNode>();

  constructor({ graph, gates }: { graph: Graph; gates: Gates }) {
    this.#graph = graph;
    this.#gates = gates;
  }

  /** The run of a live node has created the node. */
  grant(node: SchedulerNode): void {
    this.#gates.createdByRun(node);
    node.provisional = true;
    this.#nodes.add(node);
    this.#graph.grant(node);
  }

  /** A pass ends. */
  expire(): void {
    // Mostly there are none, and a pass may be a single run.
    if (this.#nodes.size === 0) return;
    for (const node of this.#nodes) {
      if (node.status === "never-ran") continue;
      this.#nodes.delete(node);
      node.provisional = false;
      this.#graph.withdraw(node);
    }
  }

  forget(node: SchedulerNode): void {
    this.#nodes.delete(node);
  }
}
