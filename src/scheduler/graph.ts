/**
 * The graph: documents and their addresses, who writes what, which node reads what, and what follows from that: demand
 * (liveness, §5) and height (order, I9).
 *
 * Demand. A node is live while something demands it: itself (`rooted`), its creating pass (`provisional`), or a live reader of
 * one of its outputs. Granting is counting. Withdrawing is counting too, but a circle of nodes that read each other keeps its own
 * counts up; so once circles exist, a withdrawal that leaves a count above zero re-derives the region upstream of it.
 *
 * Height. A live reader is higher than the writers of what it reads. A raise that comes back to where it started is a
 * circle; there the order is open and budgets decide (§7.7).
 *
 * Nothing here recurses: a chain may be as long as memory allows.
 */

import type { DocumentRef } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import { type Address, DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import { Edge, type SchedulerNode } from "./node.ts";

export class Graph {
  /** Counts changes; addresses are stamped with it. */
  tick = 1;
  /** Raises that came back to their start. While it is 0, counts alone decide liveness. */
  circles = 0;
  /** Counted work, for tests and `getStats`: edges made and dropped. */
  indexWrites = 0;
  readonly #agenda: Agenda;
  /** Nodes whose demand has just begun; worked off before `grant` returns. */
  readonly #waking: SchedulerNode[] = [];
  /** Nodes that have just lost a demand. */
  readonly #suspects: SchedulerNode[] = [];

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  // Documents and addresses --------------------------------------------------------------------------------------------

  /** The document's index, made when it is first needed. Loads nothing. */
  index(replica: Replica, ref: DocumentRef): DocumentIndex {
    const document = replica.place(ref);
    // The slot is the scheduler's own: nobody else puts anything there.
    const known = document.attachment as DocumentIndex | undefined;
    if (known !== undefined) return known;
    const index = new DocumentIndex(replica, document);
    document.attachment = index;
    document.observers++;
    return index;
  }

  /** Forgets an address that nobody needs, and with the last one the document's index. */
  forget(address: Address): void {
    address.prune();
    const { root, writers, document } = address.home;
    if (root.children?.size || root.edges > 0 || root.pins > 0 || writers.length > 0) return;
    if (document.attachment !== address.home) return;
    document.attachment = undefined;
    document.observers--;
  }

  // Reads ----------------------------------------------------------------------------------------------------------------

  /** Adds a read after `tail` (null: at the front) to a node's list. */
  addRead(node: SchedulerNode, address: Address, shallow: boolean, tail: Edge | null): Edge {
    const edge = new Edge(node, address, shallow);
    this.indexWrites++;
    address.edges++;
    if (tail === null) {
      edge.next = node.reads;
      node.reads = edge;
    } else {
      edge.next = tail.next;
      tail.next = edge;
    }
    edge.seen = this.tick;
    if (node.live) {
      this.#link(edge);
      this.#wakeAll();
    }
    return edge;
  }

  /** Drops a node's reads after `tail` (null: all of them). */
  dropReads(node: SchedulerNode, tail: Edge | null): void {
    let edge = tail === null ? node.reads : tail.next;
    if (edge === null) return;
    if (tail === null) node.reads = null;
    else tail.next = null;
    for (; edge !== null; edge = edge.next) {
      this.indexWrites++;
      edge.address.edges--;
      if (edge.linked) this.#unlink(edge);
      this.forget(edge.address);
    }
    this.#sleepAll();
  }

  // Demand ---------------------------------------------------------------------------------------------------------------

  /** Gives a node a demand of its own. */
  root(node: SchedulerNode): void {
    if (node.rooted) return;
    node.rooted = true;
    this.grant(node);
  }

  unroot(node: SchedulerNode): void {
    if (!node.rooted) return;
    node.rooted = false;
    this.withdraw(node);
  }

  grant(node: SchedulerNode): void {
    node.demand++;
    if (!node.live) this.#waking.push(node);
    this.#wakeAll();
  }

  withdraw(node: SchedulerNode): void {
    node.demand--;
    this.#suspects.push(node);
    this.#sleepAll();
  }

  /** A node came to write a document that may have live readers already. */
  addWriter(node: SchedulerNode, index: DocumentIndex): void {
    index.writers.push(node);
    if (index.liveEdges === 0) return;
    for (const edge of linkedEdges(index.root)) {
      if (edge.node === node) continue;
      node.demand++;
      this.#raise(edge.node, node);
    }
    if (node.demand > 0 && !node.live) this.#waking.push(node);
    this.#wakeAll();
  }

  removeWriter(node: SchedulerNode, index: DocumentIndex): void {
    index.writers.splice(index.writers.indexOf(node), 1);
    for (const edge of linkedEdges(index.root)) if (edge.node !== node) node.demand--;
    this.forget(index.root);
  }

  #link(edge: Edge): void {
    const { address, node } = edge;
    edge.linked = true;
    edge.newer = null;
    edge.older = address.readers;
    if (address.readers !== null) address.readers.newer = edge;
    address.readers = edge;
    const { home } = address;
    home.liveEdges++;
    for (const writer of home.writers) {
      if (writer === node) continue;
      writer.demand++;
      if (!writer.live) this.#waking.push(writer);
      if (writer.height >= node.height) this.#raise(node, writer);
    }
  }

  #unlink(edge: Edge): void {
    const { address, node } = edge;
    edge.linked = false;
    edge.seen = this.tick;
    if (edge.newer === null) address.readers = edge.older;
    else edge.newer.older = edge.older;
    if (edge.older !== null) edge.older.newer = edge.newer;
    edge.newer = null;
    edge.older = null;
    address.home.liveEdges--;
    for (const writer of address.home.writers) {
      if (writer === node) continue;
      writer.demand--;
      this.#suspects.push(writer);
    }
  }

  /** Makes the waking nodes live: links their reads, verifies what they saw, and offers those that have to run. */
  #wakeAll(): void {
    for (let node = this.#waking.pop(); node !== undefined; node = this.#waking.pop()) {
      if (node.live || node.demand === 0) continue;
      node.live = true;
      for (let edge = node.reads; edge !== null; edge = edge.next) {
        const { address, shallow, seen } = edge;
        // A dormant node is verified here and nowhere else: has anything it read moved since it last knew?
        if (node.status !== "never-ran" && (shallow ? address.shape : address.stamp) > seen)
          this.#invalid(node, address);
        this.#link(edge);
      }
      if (node.status !== "clean") this.#agenda.offer(node);
    }
  }

  #invalid(node: SchedulerNode, cause: Address): void {
    node.status = "invalid";
    if (Object.isFrozen(node.causes)) node.causes = [cause];
    else if (!node.causes.includes(cause)) node.causes.push(cause);
  }

  /** Lets those of the suspects go dormant that nothing live demands any more, and what only they demanded. */
  #sleepAll(): void {
    for (let node = this.#suspects.pop(); node !== undefined; node = this.#suspects.pop()) {
      if (!node.live) continue;
      if (node.demand === 0) this.#sleep(node);
      else if (this.circles > 0 && !node.rooted && !node.provisional) this.#rederive(node);
    }
  }

  #sleep(node: SchedulerNode): void {
    node.live = false;
    this.#agenda.withdraw(node);
    for (let edge = node.reads; edge !== null; edge = edge.next) if (edge.linked) this.#unlink(edge);
  }

  /** Which of the nodes upstream of this one are demanded from outside of them; the others sleep. */
  #rederive(start: SchedulerNode): void {
    const region = upstream(start);
    const inner = new Map<SchedulerNode, number>();
    for (const node of region) {
      for (const writer of writersRead(node)) if (region.has(writer)) inner.set(writer, (inner.get(writer) ?? 0) + 1);
    }
    const alive = new Set<SchedulerNode>();
    const open = [...region].filter((node) => node.demand > (inner.get(node) ?? 0));
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (alive.has(node)) continue;
      alive.add(node);
      for (const writer of writersRead(node)) if (region.has(writer)) open.push(writer);
    }
    for (const node of region) if (!alive.has(node) && node.live) this.#sleep(node);
  }

  // Height ---------------------------------------------------------------------------------------------------------------

  /** Puts a reader above a writer, and its own readers above it, as far as they are not. False where that closes a circle. */
  #raise(reader: SchedulerNode, writer: SchedulerNode): boolean {
    if (reader.height > writer.height || reader === writer) return true;
    const onPath = new Set([writer]);
    const frames: { readonly node: SchedulerNode; readonly readers: SchedulerNode[] }[] = [];
    let closed = false;
    const lift = (node: SchedulerNode, height: number) => {
      node.height = height;
      this.#agenda.raised(node);
      onPath.add(node);
      frames.push({ node, readers: readersOf(node) });
    };
    lift(reader, writer.height + 1);
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const next = frame.readers.pop();
      if (next === undefined) {
        onPath.delete(frame.node);
        frames.pop();
      } else if (next.height <= frame.node.height) {
        if (onPath.has(next)) closed = true;
        else lift(next, frame.node.height + 1);
      }
    }
    if (closed) this.circles++;
    return !closed;
  }

  /** Whether `reader` stands above `writer`, as it must for the writer to be able to run first. */
  isOrdered(reader: SchedulerNode, writer: SchedulerNode): boolean {
    return reader.height > writer.height;
  }
}

/** All linked edges in the trie below an address. */
export function* linkedEdges(root: Address): Iterable<Edge> {
  const open = [root];
  for (let address = open.pop(); address !== undefined; address = open.pop()) {
    for (let edge = address.readers; edge !== null; edge = edge.older) yield edge;
    if (address.children !== null) open.push(...address.children.values());
  }
}

/** The live nodes that read one of the node's outputs. */
export function readersOf(node: SchedulerNode): SchedulerNode[] {
  const readers: SchedulerNode[] = [];
  for (const output of node.outputs) {
    for (const edge of linkedEdges(output.home.root)) if (edge.node !== node) readers.push(edge.node);
  }
  return readers;
}

/** The writers of what a node reads, once per read. */
export function* writersRead(node: SchedulerNode): Iterable<SchedulerNode> {
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if (!edge.linked) continue;
    for (const writer of edge.address.home.writers) if (writer !== node) yield writer;
  }
}

/** A node and all live nodes that it reads from, directly or not. */
function upstream(start: SchedulerNode): Set<SchedulerNode> {
  const found = new Set([start]);
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const writer of writersRead(node)) {
      if (found.has(writer) || !writer.live) continue;
      found.add(writer);
      open.push(writer);
    }
  }
  return found;
}
