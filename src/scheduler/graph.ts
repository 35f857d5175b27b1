/**
 * The graph: documents and their addresses, writers, reads, and the demand (liveness, §5) that follows from them. The
 * order that follows is in `heights.ts`.
 *
 * Demand: a node is live while it is demanded by itself (`rooted`), by its creating pass (`provisional`), or by a live
 * reader of one of its outputs. Demand is a count. A circle of nodes that read each other keeps its own counts above
 * zero, so while circles exist, a withdrawal that leaves a count above zero re-derives the region upstream.
 *
 * Nothing recurses: a chain may be as long as memory allows.
 */

import type { DocumentRef } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import { DocumentTrie } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import { addCause, causesOf } from "./causes.ts";
import { linkedEdges, upstream, writersRead } from "./graph-walk.ts";
import { Heights } from "./heights.ts";
import { type DocumentIndex, Edge, type NodeAddress, RUNNING, type SchedulerNode } from "./node.ts";
import { enterReads, hasForeignOutput, isUnverified } from "./node-record.ts";
import type { Run } from "./run.ts";

const SPARE_EDGES_MAX = 1024;

export class Graph {
  /** Counts changes; addresses are stamped with it. */
  tick = 1;
  /** Edges made and dropped, for tests and `getStats`. */
  indexWrites = 0;
  readonly heights: Heights;
  readonly #agenda: Agenda;
  /** Nodes whose demand has just begun; processed before `grant` returns. */
  readonly #waking: SchedulerNode[] = [];
  /** Dropped edges for reuse, linked by `next`, so that code with alternating reads allocates none. */
  #spare: Edge | null = null;
  #spares = 0;
  /** Nodes that have just lost a demand. */
  readonly #suspects: SchedulerNode[] = [];
  #isSettling = false;
  /** Documents that materializers may write, and the number of declared places in each. */
  readonly #envelopes = new Map<DocumentIndex, number>();

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
    this.heights = new Heights(agenda);
  }

  // Documents and addresses
  // --------------------------------------------------------------------------------------------

  /** The document's index, created when it is first needed. Loads no document. */
  index(replica: Replica, ref: DocumentRef): DocumentIndex {
    const document = replica.place(ref);
    // Only the scheduler uses the attachment, so the cast is safe.
    const known = document.attachment as DocumentIndex | undefined;
    if (known !== undefined) return known;
    const index = new DocumentTrie<Edge, SchedulerNode>(replica, document);
    document.attachment = index;
    return index;
  }

  // Reads
  // ----------------------------------------------------------------------------------------------------------------

  /** Adds a read after `tail` (null: at the front) to a node's list. */
  addRead(node: SchedulerNode, address: NodeAddress, shallow: boolean, tail: Edge | null): Edge {
    const edge = this.#edge(node, address, shallow);
    this.indexWrites++;
    if (address.edges++ === 0) address.hold();
    if (tail === null) {
      edge.next = node.reads;
      node.reads = edge;
    } else {
      edge.next = tail.next;
      tail.next = edge;
    }
    if (!node.live) edge.seen = this.tick;
    else this.#linkNew(edge);
    return edge;
  }

  /** Drops a node's reads after `tail` (null: all of them). */
  dropReads(node: SchedulerNode, tail: Edge | null): void {
    let edge = tail === null ? node.reads : tail.next;
    if (edge === null) return;
    if (tail === null) node.reads = null;
    else tail.next = null;
    for (; edge !== null; edge = edge.next) this.#drop(edge);
    this.#settleDemand();
  }

  /** Drops the reads after `tail` that the node's run has not made again, and keeps their edges for reuse. */
  trimReads(node: SchedulerNode, tail: Edge | null): void {
    const first = tail === null ? node.reads : tail.next;
    this.dropReads(node, tail);
    if (this.heights.isUnordered(node)) this.heights.retry(node);
    for (let edge = first; edge !== null && this.#spares < SPARE_EDGES_MAX; this.#spares++) {
      const { next } = edge;
      edge.next = this.#spare;
      this.#spare = edge;
      edge = next;
    }
  }

  #edge(node: SchedulerNode, address: NodeAddress, shallow: boolean): Edge {
    const edge = this.#spare;
    if (edge === null) return new Edge(node, address, shallow);
    this.#spare = edge.next;
    this.#spares--;
    edge.node = node;
    edge.address = address;
    edge.shallow = shallow;
    return edge;
  }

  /** After a failed run: drops those of the older reads that the run has made again. */
  dropRepeatedReads({ node, tail, id }: Run): void {
    let last = tail;
    for (let edge = tail === null ? node.reads : tail.next; edge !== null; edge = edge.next) {
      const { address, shallow } = edge;
      if ((shallow ? address.shallowRun : address.deepRun) !== id) {
        last = edge;
        continue;
      }
      if (last === null) node.reads = edge.next;
      else last.next = edge.next;
      this.#drop(edge);
    }
    this.#settleDemand();
  }

  #drop(edge: Edge): void {
    this.indexWrites++;
    const { address } = edge;
    if (--address.edges === 0) address.letGo();
    if (edge.linked) this.#unlink(edge);
  }

  // Demand
  // ---------------------------------------------------------------------------------------------------------------

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
    this.#settleDemand();
  }

  withdraw(node: SchedulerNode): void {
    node.demand--;
    this.#suspects.push(node);
    this.#settleDemand();
  }

  /** Adds a writer to a document that may have live readers already. */
  addWriter(node: SchedulerNode, index: DocumentIndex): void {
    index.writers = index.writers.length === 0 ? [node] : [...index.writers, node];
    // The value may be another one now, for plain reads of all computations downstream too.
    this.tick++;
    index.root.hold();
    if (index.liveAddresses === 0) return;
    for (const edge of linkedEdges(index.root)) {
      if (edge.node === node) continue;
      node.demand++;
      this.heights.order(edge.node, node);
    }
    if (node.demand > 0 && !node.live) this.#waking.push(node);
    this.#settleDemand();
  }

  removeWriter(node: SchedulerNode, index: DocumentIndex): void {
    index.writers = index.writers.filter((writer) => writer !== node);
    index.root.letGo();
    for (const edge of linkedEdges(index.root)) if (edge.node !== node) node.demand--;
  }

  /**
   * Adds a place of a materializer's envelope. That makes the node no writer: an envelope alone gives neither order nor
   * demand.
   */
  addEnvelope(place: NodeAddress): void {
    place.hold();
    this.#envelopes.set(place.home, (this.#envelopes.get(place.home) ?? 0) + 1);
  }

  removeEnvelope(place: NodeAddress): void {
    place.letGo();
    const places = (this.#envelopes.get(place.home) ?? 0) - 1;
    if (places > 0) this.#envelopes.set(place.home, places);
    else this.#envelopes.delete(place.home);
  }

  get hasEnvelopes(): boolean {
    return this.#envelopes.size > 0;
  }

  /** Whether a materializer may write into the document. */
  isInEnvelope(index: DocumentIndex): boolean {
    return this.#envelopes.size > 0 && this.#envelopes.has(index);
  }

  #linkNew(edge: Edge): void {
    this.#link(edge);
    this.#settleDemand();
  }

  #link(edge: Edge): void {
    const { address } = edge;
    const { home } = address;
    edge.linked = true;
    const oldest = address.readers;
    if (oldest === null) {
      address.readers = edge;
      edge.older = edge;
      home.liveAddresses++;
    } else {
      const newest = oldest.older as Edge;
      newest.newer = edge;
      edge.older = newest;
      oldest.older = edge;
    }
    if (home.writers.length > 0) this.#demandWriters(edge);
  }

  #demandWriters({ node, address }: Edge): void {
    for (const writer of address.home.writers) {
      if (writer === node) continue;
      writer.demand++;
      if (!writer.live) this.#waking.push(writer);
      if (writer.height >= node.height) this.#order(node, writer);
    }
  }

  #unlink(edge: Edge): void {
    const { address } = edge;
    edge.linked = false;
    edge.seen = this.tick;
    const oldest = address.readers as Edge;
    const { newer, older } = edge;
    if (edge === oldest) address.readers = newer;
    else (older as Edge).newer = newer;
    if (newer !== null) newer.older = older;
    else if (edge !== oldest) oldest.older = older;
    edge.newer = null;
    edge.older = null;
    const { home } = address;
    if (address.readers === null) home.liveAddresses--;
    if (home.writers.length > 0) this.#releaseWriters(edge);
  }

  #releaseWriters({ node, address }: Edge): void {
    for (const writer of address.home.writers) {
      if (writer === node) continue;
      writer.demand--;
      this.#suspects.push(writer);
    }
  }

  #order(reader: SchedulerNode, writer: SchedulerNode): void {
    if (writer.status === "invalid" && writer.slot !== RUNNING && !isUnverified(writer)) this.#dropDoubtful(writer);
    this.heights.order(reader, writer);
  }

  /**
   * Drops the reads of an invalid node after the first one that changed, because the next run may not repeat them.
   * Otherwise they would show circles where there are none, and reversed links would invalidate each other forever.
   */
  #dropDoubtful(node: SchedulerNode): void {
    let edge = node.reads;
    while (edge !== null && !causesOf(node).includes(edge.address)) edge = edge.next;
    if (edge !== null) this.dropReads(node, edge);
  }

  /** Processes gained and lost demand. Calls during the processing return at once. */
  #settleDemand(): void {
    if (this.#isSettling || (this.#waking.length === 0 && this.#suspects.length === 0)) return;
    this.#isSettling = true;
    this.#wakeAll();
    this.#sleepAll();
    this.#isSettling = false;
  }

  /** Makes the waking nodes live: links their reads, verifies them, and offers the nodes that must run. */
  #wakeAll(): void {
    for (let node = this.#waking.pop(); node !== undefined; node = this.#waking.pop()) {
      if (node.live || node.demand === 0) continue;
      if (node.extras !== null) enterReads(node);
      node.live = true;
      let last: Edge | null = null;
      for (let edge = node.reads; edge !== null; edge = edge.next) {
        const { address, shallow, seen } = edge;
        // The only place that verifies a dormant node: has one of its inputs changed since its last run?
        const hasMoved =
          (shallow ? address.shape : address.stamp) > seen || (isUnverified(node) && address.document.isKnown);
        if (hasMoved && node.status !== "never-ran") this.#invalid(node, address);
        const isDoubtful = isAgainstOrder(edge) || (!hasMoved && address.home.writers.length > 0);
        if (node.status === "invalid" && node.slot !== RUNNING && isDoubtful && !isUnverified(node)) {
          // The node is about to read anew: a read that may not be repeated must neither move other nodes nor make them
          // run. The reads of a running node stay, because its run adds reads behind the last one.
          this.dropReads(node, last);
          break;
        }
        this.#link(edge);
        last = edge;
      }
      if (node.extras !== null && hasForeignOutput(node)) this.#invalid(node, node.output as NodeAddress);
      if (node.status !== "clean") this.#agenda.offer(node);
    }
  }

  #invalid(node: SchedulerNode, cause: NodeAddress): void {
    node.status = "invalid";
    addCause(node, cause);
  }

  /** Makes suspects dormant that no live node demands, and then the nodes that only those demanded. */
  #sleepAll(): void {
    for (let node = this.#suspects.pop(); node !== undefined; node = this.#suspects.pop()) {
      if (!node.live) continue;
      if (node.demand === 0) this.#sleep(node);
      else if (this.heights.hasCircles && !node.rooted && !node.provisional) this.#rederive(node);
    }
  }

  #sleep(node: SchedulerNode): void {
    node.live = false;
    this.#agenda.withdraw(node);
    this.heights.forget(node);
    for (let edge = node.reads; edge !== null; edge = edge.next) if (edge.linked) this.#unlink(edge);
  }

  /** Makes those nodes of the region upstream dormant that are not demanded from outside of the region. */
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
}

/** Whether a writer of the place is not below its reader in the order. */
function isAgainstOrder({ node, address }: Edge): boolean {
  for (const writer of address.home.writers) if (writer !== node && writer.height >= node.height) return true;
  return false;
}
