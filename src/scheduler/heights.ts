/**
 * Heights: a live reader stands higher than the writers of what it reads, so that the queue runs writers first (I9).
 *
 * Putting a reader above a writer moves what reads the reader, and so on, each once and in the order of their old heights. If
 * that comes to the writer itself, the new read closes a circle: nothing moves, the read stays *unordered*, and budgets decide
 * there (§7.7). Every circle has such a read; its reader is remembered and tried again whenever it is about to run, so that order
 * returns when the circle is gone.
 */
import type { Agenda } from "./agenda.ts";
import { readersOf, writersRead } from "./graph-walk.ts";
import type { SchedulerNode } from "./node.ts";

export class Heights {
  readonly #agenda: Agenda;
  /** Live nodes with a read that could not be ordered. While there are none there is no circle. */
  readonly #unordered = new Set<SchedulerNode>();
  /** Whether there may be circles: then counting alone does not tell who is live. Every run asks. */
  hasCircles = false;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  isUnordered(node: SchedulerNode): boolean {
    return this.#unordered.has(node);
  }

  /** Puts a reader above a writer. */
  order(reader: SchedulerNode, writer: SchedulerNode): void {
    if (this.#above(reader, writer)) return;
    this.#unordered.add(reader);
    this.hasCircles = true;
  }

  /** Tries again to order a node above what it reads; true if it, or what it reads, has moved. */
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

  /** The node is dormant or gone: it reads nothing. */
  forget(node: SchedulerNode): void {
    this.#unordered.delete(node);
    this.hasCircles = this.#unordered.size > 0;
  }

  /** False where that closes a circle; then nothing has moved. */
  #above(reader: SchedulerNode, writer: SchedulerNode): boolean {
    if (reader.height > writer.height || reader === writer) return true;
    if (standsOnNobody(writer)) {
      // It can go down, and nobody has to move: a chain registered readers first, or turned around, costs one step each.
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

/** Whether it reads nothing that another node writes. */
function standsOnNobody(node: SchedulerNode): boolean {
  for (const _ of writersRead(node)) return false;
  return true;
}

/** The new heights that put the reader, and all above it, over the writer; undefined if the writer is among them. */
function liftsFor(reader: SchedulerNode, writer: SchedulerNode): Map<SchedulerNode, number> | undefined {
  const lifts = new Map([[reader, writer.height + 1]]);
  const open = new LowestFirst(reader);
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const least = (lifts.get(node) as number) + 1;
    for (const above of readersOf(node)) {
      if (above === writer) return undefined;
      // A read that is unordered already belongs to another circle and is not followed around it.
      if (above.height <= node.height) continue;
      const lifted = lifts.get(above);
      if ((lifted ?? above.height) >= least) continue;
      if (lifted === undefined) open.push(above);
      lifts.set(above, least);
    }
  }
  return lifts;
}

/** Nodes by the height they have, which does not change meanwhile: a binary heap. */
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
