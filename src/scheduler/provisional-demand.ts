/**
 * Keeps nodes that a live node's run creates demanded until they have run and their creating pass ends, so that their
 * creator can read them (Scheduler v2 §5.3). Without other demand they become dormant then.
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

  /** Called at the end of a pass. */
  expire(): void {
    // The usual case, and a pass may be a single run.
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
