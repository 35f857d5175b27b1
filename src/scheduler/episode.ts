/**
 * Nodes that do not come to rest (Scheduler v2 §7.7). Convergence is bounded, not forced: a node that exhausts its budget in one pass waits
 * behind an escalating gate, and the episode is reported once, with the circle's path. It ends when all of its nodes have settled, or sleep. Two
 * circles are two episodes; what only reads from a circle belongs to it.
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
  /** Those that have exhausted their budget and not settled since. */
  readonly #nodes = new Set<SchedulerNode>();
  /** The pass in which one was reported last. */
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

  /** Whether what does not settle there is none of what was reported. */
  #isAnother(node: SchedulerNode, circle: readonly SchedulerNode[]): boolean {
    const below = upstream(node);
    for (const known of this.#nodes) if (known.live && below.has(known)) return false;
    // Over what effects write into cells no way leads: those that go on together are taken for one.
    return circle.length > 1 || this.#reportedIn !== node.pass;
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

  /** Those that sleep have settled, though no pass has ended since. */
  get nodes(): readonly string[] {
    return [...this.#nodes].filter(({ live }) => live).map(({ id }) => id);
  }
}
