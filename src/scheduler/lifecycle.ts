/**
 * How nodes come and go (Scheduler v2 §4.4): registering enters them into every component that has to know them and reads no data;
 * removing takes them out again, with what their runs have created.
 */
import type { Agenda } from "./agenda.ts";
import type { Documents } from "./documents.ts";
import { type Gates, requireDuration } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { NodeSpec, SchedulerNode } from "./node.ts";
import type { Persistence } from "./persistence.ts";
import type { ProvisionalDemand } from "./provisional-demand.ts";
import type { Registry } from "./registry.ts";
import type { Runner } from "./runner.ts";
import type { Settle } from "./settle.ts";

const NO_READS: readonly never[] = Object.freeze([]);

export class Lifecycle {
  readonly #registry: Registry;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #documents: Documents;
  readonly #runner: Runner;
  readonly #persistence: Persistence;
  readonly #provisional: ProvisionalDemand;
  readonly #settle: Settle;

  constructor(parts: {
    registry: Registry;
    graph: Graph;
    agenda: Agenda;
    gates: Gates;
    documents: Documents;
    runner: Runner;
    persistence: Persistence;
    provisional: ProvisionalDemand;
    settle: Settle;
  }) {
    this.#registry = parts.registry;
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#documents = parts.documents;
    this.#runner = parts.runner;
    this.#persistence = parts.persistence;
    this.#provisional = parts.provisional;
    this.#settle = parts.settle;
  }

  register(spec: NodeSpec): SchedulerNode {
    // Before anything is there that would have to be taken back.
    if (spec.debounceMs !== undefined) requireDuration(spec.debounceMs, "a debounce");
    if (spec.throttleMs !== undefined) requireDuration(spec.throttleMs, "a throttle");
    const run = this.#runner.current;
    const creator = run?.node;
    const parent = spec.parent ?? creator;
    const node = this.#registry.create(parent === undefined ? spec : { ...spec, parent });
    if (parent !== undefined) node.height = Math.max(node.height, parent.height + 1);
    // That it is there, and what it has caught in its function, is what the run knows.
    if (run !== null) node.label = run.label;
    if (spec.debounceMs) this.#gates.state(node).debounceMs = spec.debounceMs;
    if (spec.throttleMs) this.#gates.state(node).throttleMs = spec.throttleMs;
    if (spec.noAutoDebounce) this.#gates.state(node).noAutoDebounce = true;
    this.#persistence.register(node, spec);
    let tail = null;
    for (const address of spec.declaredReads ?? NO_READS) tail = this.#graph.addRead(node, address, false, tail);
    this.#documents.claim(node, spec);
    if (node.kind === "effect" || node.envelope !== undefined) this.#graph.root(node);
    else if (creator?.live) this.#provisional.grant(node);
    return node;
  }

  /** Removes a node, and what its runs have created. */
  remove(node: SchedulerNode): void {
    const open = [node];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (!next.registered) continue;
      this.#removeOne(next);
      for (const child of this.#registry.takeChildren(next)) open.push(child);
    }
  }

  #removeOne(node: SchedulerNode): void {
    this.#registry.delete(node);
    this.#agenda.withdraw(node);
    this.#graph.dropReads(node, null);
    this.#documents.release(node);
    node.live = false;
    node.reason = null;
    this.#graph.heights.forget(node);
    this.#settle.forget(node);
    this.#persistence.removed(node);
  }

  /** Removes a node that will not come back: nothing of it is kept. */
  discard(node: SchedulerNode): void {
    if (!node.registered) return;
    this.remove(node);
    this.#persistence.dropped(node);
  }
}
