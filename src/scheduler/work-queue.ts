/**
 * The nodes that are invalid, live and eligible, by height and then by registration: a binary heap. A node knows its slot, so
 * joining and leaving cost O(log n) in the number of queued nodes, whatever else exists.
 *
 * Heights start as registration ordinals, so there is no ladder of buckets to walk: most graphs are registered writers first
 * and never move a height at all.
 */
import { type SchedulerNode, UNQUEUED } from "./node.ts";

export class WorkQueue {
  readonly #heap: SchedulerNode[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): SchedulerNode | undefined {
    return this.#heap[0];
  }

  push(node: SchedulerNode): void {
    if (node.slot >= 0) return;
    this.#heap.push(node);
    this.#up(node, this.#heap.length - 1);
  }

  pop(): SchedulerNode | undefined {
    const first = this.#heap[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  remove(node: SchedulerNode): void {
    const { slot } = node;
    if (slot < 0) return;
    node.slot = UNQUEUED;
    const last = this.#heap.pop() as SchedulerNode;
    if (last === node) return;
    this.#up(last, slot);
    if (last.slot === slot) this.#down(last, slot);
  }

  /** The node's height is another. */
  moved(node: SchedulerNode): void {
    const { slot } = node;
    if (slot < 0) return;
    this.#up(node, slot);
    if (node.slot === slot) this.#down(node, slot);
  }

  *[Symbol.iterator](): Iterator<SchedulerNode> {
    yield* this.#heap;
  }

  #up(node: SchedulerNode, from: number): void {
    const heap = this.#heap;
    let slot = from;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = heap[parentSlot] as SchedulerNode;
      if (!comesBefore(node, parent)) break;
      heap[slot] = parent;
      parent.slot = slot;
      slot = parentSlot;
    }
    heap[slot] = node;
    node.slot = slot;
  }

  #down(node: SchedulerNode, from: number): void {
    const heap = this.#heap;
    const length = heap.length;
    let slot = from;
    for (;;) {
      let childSlot = 2 * slot + 1;
      if (childSlot >= length) break;
      let child = heap[childSlot] as SchedulerNode;
      const other = heap[childSlot + 1];
      if (other !== undefined && comesBefore(other, child)) {
        child = other;
        childSlot++;
      }
      if (!comesBefore(child, node)) break;
      heap[slot] = child;
      child.slot = slot;
      slot = childSlot;
    }
    heap[slot] = node;
    node.slot = slot;
  }
}

export function comesBefore(a: SchedulerNode, b: SchedulerNode): boolean {
  return a.height !== b.height ? a.height < b.height : a.ordinal < b.ordinal;
}
