/**
 * The queues of nodes that must run: invalid, live and eligible nodes (`primary`), and materializers (`idle`), which
 * run when `primary` is empty. Nodes behind a closed time gate are held by `gates.ts`. Components that invalidate or
 * demand a node offer it here; the pass takes nodes from here. It knows neither values nor demand.
 */
import { overlap } from "../store/path-operation.ts";
import type { Gates } from "./gates.ts";
import { type DocumentIndex, type NodeAddress, RUNNING, type SchedulerNode, UNQUEUED } from "./node.ts";
import { WorkQueue } from "./work-queue.ts";

/** Starts a pass; implemented by the settle component. */
export interface Waker {
  wake(): void;
}

export class Agenda {
  readonly primary = new WorkQueue();
  readonly idle = new WorkQueue();
  /** Of the nodes in `idle`. */
  readonly envelopes = new EnvelopeIndex();
  readonly #gates: Gates;
  #waker: Waker | undefined;
  /** Effects held back until a plain read ends; undefined if no plain read is in progress. */
  #heldEffects: SchedulerNode[] | undefined;

  constructor(gates: Gates) {
    this.#gates = gates;
  }

  set waker(waker: Waker) {
    this.#waker = waker;
  }

  /** Queues a live node that is not clean: now, or when its gate opens. */
  offer(node: SchedulerNode): void {
    if (node.extras !== null) {
      node.extras.isWaiting = false;
      if (this.#isHeld(node)) return;
    }
    // The runner offers a running node again when its run ends.
    if (node.slot !== UNQUEUED) return;
    if (this.#heldEffects !== undefined && node.kind === "effect") return void this.#heldEffects.push(node);
    const queue = this.#queueOf(node);
    queue.push(node);
    if (queue === this.idle) this.envelopes.add(node);
    this.#waker?.wake();
  }

  /** Holds effects back until `releaseEffects`. */
  holdEffects(): void {
    this.#heldEffects = [];
    for (const node of [...this.primary]) {
      if (node.kind !== "effect" || node.promoted) continue;
      this.primary.remove(node);
      this.#heldEffects.push(node);
    }
  }

  releaseEffects(): void {
    const held = this.#heldEffects ?? [];
    this.#heldEffects = undefined;
    for (const node of held) if (node.registered && node.live && node.status !== "clean") this.offer(node);
  }

  #isHeld(node: SchedulerNode): boolean {
    if (node.gate === undefined || node.slot === RUNNING || !this.#gates.hold(node)) return false;
    this.#unqueue(node);
    return true;
  }

  /** Removes a queued node because it runs now. */
  take(node: SchedulerNode): void {
    if (node.extras === null) this.primary.remove(node);
    else this.withdraw(node);
  }

  /** Removes a node that became clean or dormant, or was removed. */
  withdraw(node: SchedulerNode): void {
    this.#unqueue(node);
    if (node.gate !== undefined) this.#gates.release(node);
  }

  #unqueue(node: SchedulerNode): void {
    if (node.slot >= 0) {
      const queue = this.#queueOf(node);
      queue.remove(node);
      if (queue === this.idle) this.envelopes.remove(node);
    }
    if (node.promoted) node.promoted = false;
  }

  #queueOf(node: SchedulerNode): WorkQueue {
    const isPrimary = node.extras === null || node.envelope === undefined || node.promoted;
    return isPrimary ? this.primary : this.idle;
  }

  /** Moves a materializer to the primary queue because primary work is about to read its output. */
  promote(node: SchedulerNode): void {
    this.idle.remove(node);
    this.envelopes.remove(node);
    node.promoted = true;
    this.primary.push(node);
  }

  /** The node's height changed. */
  moved(node: SchedulerNode): void {
    if (node.slot >= 0) this.#queueOf(node).moved(node);
  }

  get isEmpty(): boolean {
    return this.primary.isEmpty && this.idle.isEmpty;
  }

  /** Nodes wait for the end of their time gate. */
  get hasGated(): boolean {
    return this.#gates.held.size > 0;
  }

  get size(): number {
    return [...this.primary, ...this.idle].length;
  }
}

const NO_NODES: ReadonlySet<SchedulerNode> = new Set();

/**
 * The queued materializers by the documents of their envelopes: a read finds those that it must wait for without a look
 * at the others. SPEC: R222.
 */
class EnvelopeIndex {
  readonly #places = new Map<DocumentIndex, Map<SchedulerNode, NodeAddress[]>>();
  /** Materializers that were compared with a read. Tests bound it. */
  visited = 0;

  add(node: SchedulerNode): void {
    for (const place of node.envelope ?? []) {
      const nodes = this.#places.get(place.home) ?? new Map<SchedulerNode, NodeAddress[]>();
      this.#places.set(place.home, nodes.set(node, [...(nodes.get(node) ?? []), place]));
    }
  }

  remove(node: SchedulerNode): void {
    for (const { home } of node.envelope ?? []) {
      const nodes = this.#places.get(home);
      if (nodes?.delete(node) && nodes.size === 0) this.#places.delete(home);
    }
  }

  /** The materializers with a place in their envelope that overlaps a place that the reader reads. */
  readBy(reader: SchedulerNode): ReadonlySet<SchedulerNode> {
    let found: Set<SchedulerNode> | undefined;
    for (let edge = reader.reads; edge !== null; edge = edge.next) {
      const { home, path } = edge.address;
      const nodes = this.#places.get(home);
      if (nodes === undefined) continue;
      found ??= new Set();
      for (const [node, places] of nodes) {
        this.visited++;
        if (places.some((place) => overlap(place.path, path))) found.add(node);
      }
    }
    return found ?? NO_NODES;
  }

  /** Throws unless it has exactly the given nodes. */
  checkInvariants(queued: Iterable<SchedulerNode>): void {
    const expected = new Set(queued);
    const here = new Set([...this.#places.values()].flatMap((nodes) => [...nodes.keys()]));
    for (const node of here)
      if (!expected.has(node)) throw new Error(`Scheduler: ${node.id} is indexed, but not queued`);
    for (const node of expected)
      if (!here.has(node) && (node.envelope ?? []).length > 0)
        throw new Error(`Scheduler: ${node.id} is queued, but not indexed`);
  }
}
