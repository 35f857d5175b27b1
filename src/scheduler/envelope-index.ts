/**
 * The queued materializers, by the documents of their envelopes. A read finds those that it must wait for without a
 * look at the others. The agenda keeps it: a materializer is here while it is in the idle queue. SPEC: R222.
 */
import { overlap } from "../store/path-operation.ts";
import type { Address, DocumentIndex } from "./address.ts";
import type { SchedulerNode } from "./node.ts";

const NO_NODES: ReadonlySet<SchedulerNode> = new Set();

export class EnvelopeIndex {
  readonly #places = new Map<DocumentIndex, Map<SchedulerNode, Address[]>>();
  /** Materializers that were compared with a read. Tests bound it. */
  visited = 0;

  add(node: SchedulerNode): void {
    for (const place of node.envelope ?? []) {
      const nodes = this.#places.get(place.home) ?? new Map<SchedulerNode, Address[]>();
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
