/**
 * Heights: a live reader has a greater height than the writers of its inputs, so that the queue runs writers first
 * (I9).
 *
 * Lifting a reader above a writer also lifts the reader's readers, each once, in the order of their old heights. If
 * that reaches the writer, the new read closes a circle: no node is lifted, the read stays *unordered*, and the run
 * budget limits the circle (§7.7). Each circle has such a read. Its reader is tried again whenever it is about to run,
 * so that the order returns when the circle is gone.
 */
import type { Agenda } from "./agenda.ts";
import { readersOf, writersRead } from "./graph-walk.ts";
import type { SchedulerNode } from "./node.ts";

export class Heights {
  readonly #agenda: Agenda;
  /** Live nodes with a read that could not be ordered. Without them there is no circle. */
  readonly #unordered = new Set<SchedulerNode>();
  /**
   * A cached copy of `#unordered.size > 0`, because every run asks. With circles, a demand count above zero does not
   * prove that a node is live.
   */
  hasCircles = false;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  isUnordered(node: SchedulerNode): boolean {
    return this.#unordered.has(node);
  }

  /** Lifts a reader above a writer. */
  order(reader: SchedulerNode, writer: SchedulerNode): void {
    if (this.#above(reader, writer)) return;
    this.#unordered.add(reader);
    this.hasCircles = true;
  }

  /** Tries again to order a node above its inputs; true if a height changed. */
  retry(node: SchedulerNode): boolean {
    let isOrdered = true;
    let hasMoved = false;
    for (const writer of writersRead(node)) {
      if (node.height > writer.height) continue;
      if (this.#above(node, writer)) hasMoved = true;
      else isOrdered = false;
    }
    if (isOrdered) this.forget(node);
    return hasMoved;
  }

  /** Called when the node becomes dormant or is removed. */
  forget(node: SchedulerNode): void {
    this.#unordered.delete(node);
    this.hasCircles = this.#unordered.size > 0;
  }

  /** False, with no change of heights, if that closes a circle. */
  #above(reader: SchedulerNode, writer: SchedulerNode): boolean {
    if (reader.height > writer.height || reader === writer) return true;
    if (standsOnNobody(writer)) {
      // The writer moves down, so no reader is lifted: a chain that is registered readers first, or reversed, costs one
      // step each.
      this.#move(writer, reader.height - 1);
      return true;
    }
    const lifts = liftsFor(reader, writer);
    if (lifts === undefined) return false;
    for (const [node, height] of lifts) this.#move(node, height);
    return true;
  }

  #move(node: SchedulerNode, height: number): void {
    node.height = height;
    this.#agenda.moved(node);
  }
}

/** Whether the node reads no other node's output. */
function standsOnNobody(node: SchedulerNode): boolean {
  for (const _ of writersRead(node)) return false;
  return true;
}

/** The new heights for the reader and the nodes above it; undefined if the writer is one of these. */
function liftsFor(reader: SchedulerNode, writer: SchedulerNode): Map<SchedulerNode, number> | undefined {
  const lifts = new Map([[reader, writer.height + 1]]);
  const open = new LowestFirst(reader);
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const least = (lifts.get(node) as number) + 1;
    for (const above of readersOf(node)) {
      if (above === writer) return undefined;
      // An unordered read belongs to another circle and is not followed.
      if (above.height <= node.height) continue;
      const lifted = lifts.get(above);
      if ((lifted ?? above.height) >= least) continue;
      if (lifted === undefined) open.push(above);
      lifts.set(above, least);
    }
  }
  return lifts;
}

/** A binary heap of nodes by their present height, which does not change meanwhile. */
class LowestFirst {
  readonly #heap: SchedulerNode[];

  constructor(first: SchedulerNode) {
    this.#heap = [first];
  }

  push(node: SchedulerNode): void {
    const heap = this.#heap;
    let slot = heap.length;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = heap[parentSlot] as SchedulerNode;
      if (parent.height <= node.height) break;
      heap[slot] = parent;
      slot = parentSlot;
    }
    heap[slot] = node;
  }

  pop(): SchedulerNode | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let slot = 0;
    for (let below = 1; below < heap.length; below = 2 * slot + 1) {
      const right = heap[below + 1];
      if (right !== undefined && right.height < (heap[below] as SchedulerNode).height) below++;
      const child = heap[below] as SchedulerNode;
      if (child.height >= last.height) break;
      heap[slot] = child;
      slot = below;
    }
    heap[slot] = last;
    return first;
  }
}
