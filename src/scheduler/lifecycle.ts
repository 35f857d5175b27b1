/**
 * Registers and removes nodes (Scheduler v2 §4.4). Registering enters a node into the components that need it, and
 * reads no data. Removing a node also removes the nodes that its runs created.
 */
import type { Agenda } from "./agenda.ts";
import { restoreCauses } from "./causes.ts";
import type { Documents } from "./documents.ts";
import { type Gates, requireDuration } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { type Edge, type NodeSpec, type SchedulerNode, UNKNOWN } from "./node.ts";
import type { Persisted } from "./node-state.ts";
import type { Persistence } from "./persistence.ts";
import type { ProvisionalDemand } from "./provisional-demand.ts";
import type { Registry } from "./registry.ts";
import type { Run } from "./run.ts";
import type { RunReads } from "./run-reads.ts";
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
  readonly #reads: RunReads;
  /** How far the reads of the last creating run were examined; a cache of `#newestKnown`. */
  readonly #look: { run: number; tail: Edge | null; stamp: number } = { run: 0, tail: null, stamp: 0 };

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
    reads: RunReads;
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
    this.#reads = parts.reads;
  }

  register(spec: NodeSpec): SchedulerNode {
    // Checked first, so that a throw leaves no registration behind.
    if (spec.debounceMs !== undefined) requireDuration(spec.debounceMs, "a debounce");
    if (spec.throttleMs !== undefined) requireDuration(spec.throttleMs, "a throttle");
    const run = this.#runner.current;
    const creator = run?.node;
    const parent = spec.parent ?? creator;
    const node = this.#registry.create(parent === undefined ? spec : { ...spec, parent });
    if (parent !== undefined) node.height = Math.max(node.height, parent.height + 1);
    // The existence of the node, and the values that its function captured, have the label of the run.
    if (run !== null) {
      node.label = run.label;
      node.madeBy(run.id, run.node.status === "clean" ? this.#graph.tick : UNKNOWN);
    }
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

  /**
   * The run of its creator makes a computation again, with a new function. The result of the old function stays valid
   * as long as no value changed that the run has read so far: then both functions captured the same. Within one run,
   * the first function counts.
   */
  remake(node: SchedulerNode, compute: NodeSpec["run"], persisted: Persisted | undefined): void {
    const run = this.#runner.current;
    if (run === null || run.rehearsal || node.madeIn === run.id) return;
    const before = node.caughtAt;
    const isSame = node.run === compute;
    const isOtherCode = node.record !== undefined && this.#persistence.remade(node, node.record, persisted);
    const newest = isSame ? before : this.#newestKnown(run);
    const isOutdated = isOtherCode || newest === UNKNOWN || before < newest;
    // Newer than all that the old function captured, so that nodes which this node creates are outdated too.
    if (isOutdated && newest !== UNKNOWN) node.madeBy(run.id, ++this.#graph.tick);
    else node.madeBy(run.id, isOutdated ? UNKNOWN : before);
    if (isSame) return;
    node.run = compute;
    node.label = run.label;
    if (isOutdated) this.#outdated(node, run);
  }

  /** The present result came from the old function. */
  #outdated(node: SchedulerNode, run: Run): void {
    if (node.record !== undefined && this.#persistence.isKept(node, node.record)) return;
    if (node.status === "never-ran") return;
    node.status = "invalid";
    restoreCauses(node, run.node.lastReason);
    this.#gates.invalidated(node);
    if (!node.live) return;
    this.#agenda.offer(node);
    if (node.height < run.node.height) this.#reads.finishRemade(run);
  }

  /**
   * The newest stamp among the captures of the run's own function and its reads. `UNKNOWN` if one of these has changed
   * since.
   */
  #newestKnown({ id, node, tail }: Run): number {
    const look = this.#look;
    if (look.run !== id) {
      look.run = id;
      look.tail = null;
      look.stamp = node.caughtAt;
    }
    let edge = look.tail === null ? node.reads : look.tail.next;
    for (; look.tail !== tail && edge !== null; edge = edge.next) {
      look.tail = edge;
      look.stamp = Math.max(look.stamp, edge.shallow ? edge.address.shape : edge.address.stamp);
    }
    return node.status === "clean" && node.caughtAt !== UNKNOWN ? look.stamp : UNKNOWN;
  }

  /** Removes a node, and the nodes that its runs created. */
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

  /** Removes a node for good, with its stored row and output. */
  discard(node: SchedulerNode): void {
    if (!node.registered) return;
    this.remove(node);
    this.#persistence.dropped(node);
  }
}
