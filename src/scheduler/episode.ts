/**
 * Nodes that do not come to rest (Scheduler v2 §7.7). Convergence is bounded, not forced: a node that exhausts its budget in one pass waits
 * behind an escalating gate, and the episode is reported once, with the circle's path. It ends when all of its nodes have settled.
 */
import { PASS_RUN_BUDGET } from "../limits.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import { circleThrough } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";

export class Episode {
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #introspection: Introspection;
  /** Those that have exhausted their budget and not settled since. */
  readonly #nodes = new Set<SchedulerNode>();

  constructor(parts: { agenda: Agenda; gates: Gates; introspection: Introspection }) {
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#introspection = parts.introspection;
  }

  /** Whether the node may run once more in the pass; if not, it waits behind its gate now. */
  allows(node: SchedulerNode, pass: number): boolean {
    if (node.pass !== pass) {
      node.pass = pass;
      node.passRuns = 0;
    }
    if (node.passRuns < PASS_RUN_BUDGET) return true;
    this.#exhausted(node);
    return false;
  }

  #exhausted(node: SchedulerNode): void {
    const delayMs = this.#gates.exhausted(node);
    this.#agenda.offer(node);
    if (this.#nodes.size === 0) this.#introspection.nonSettling(node, circleThrough(node), delayMs);
    this.#nodes.add(node);
  }

  /** A pass has ended: nodes that came to rest without exhausting their budget again, or sleep, have settled. */
  passed(pass: number): void {
    if (this.#nodes.size === 0) return;
    for (const node of this.#nodes) {
      if (node.pass === pass && node.passRuns >= PASS_RUN_BUDGET) continue;
      if (node.live && (node.status !== "clean" || node.pass !== pass)) continue;
      this.#nodes.delete(node);
      this.#gates.settled(node);
    }
  }

  forget(node: SchedulerNode): void {
    this.#nodes.delete(node);
  }

  get nodes(): readonly string[] {
    return [...this.#nodes].map(({ id }) => id);
  }
}
