/**
 * Nodes that do not converge (Scheduler v2 §7.7). A node that exhausts its budget in one pass waits behind a backoff
 * gate. The episode is reported once, with the path of the circle, and ends when all of its nodes have settled or are
 * dormant. Two circles are two episodes; readers of a circle belong to its episode.
 */
import { PASS_RUN_BUDGET } from "../limits.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import { circleThrough, upstream } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";

export class Episode {
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #introspection: Introspection;
  /** Nodes that exhausted their budget and have not settled since. */
  readonly #nodes = new Set<SchedulerNode>();
  /** The pass of the last report. */
  #reportedIn = 0;

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
    if (this.#nodes.has(node)) return;
    const circle = circleThrough(node);
    if (this.#isAnother(node, circle)) {
      this.#reportedIn = node.pass;
      this.#introspection.nonSettling(node, circle, delayMs);
    }
    this.#nodes.add(node);
  }

  /** Whether the node belongs to no reported episode. */
  #isAnother(node: SchedulerNode, circle: readonly SchedulerNode[]): boolean {
    const below = upstream(node);
    for (const known of this.#nodes) if (known.live && below.has(known)) return false;
    // Writes of effects into cells form no edges, so nodes without a circle that exhaust in one pass count as one
    // episode.
    return circle.length > 1 || this.#reportedIn !== node.pass;
  }

  /** A pass ended: a node has settled if it did not exhaust its budget again, or is dormant. */
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

  /** Without dormant nodes, which have settled although no pass has ended since. */
  get nodes(): readonly string[] {
    return [...this.#nodes].filter(({ live }) => live).map(({ id }) => id);
  }
}
