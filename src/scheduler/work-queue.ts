/**
 * A priority queue of nodes, by height and then by registration. A node knows its slot.
 *
 * It has two parts. The line is sorted: changes usually reach readers in the order of registration, so most nodes join
 * near its end, or at its front (a reader of the node that has just run), in constant time. All others join the heap,
 * in O(log n). Slots of the line are even, those of the heap odd. A bucket per height would not work, because heights
 * start as registration ordinals.
 */
import { type SchedulerNode, UNQUEUED } from "./node.ts";

/** Where an empty line begins, with room before it. */
const LINE_START = 16;
/** The maximal distance from the end at which a node may join the line. */
const LINE_REACH = 8;
/** Free places before the line that trigger a move to the front. */
const LINE_SLACK = 1024;

export class WorkQueue {
  /** Sorted from `#head` to before `#tail`, which both hold nodes; undefined where a node was removed in between. */
  readonly #line: (SchedulerNode | undefined)[] = [];
  #head = LINE_START;
  #tail = LINE_START;
  readonly #heap: SchedulerNode[] = [];
  /** The number of queued nodes, because every run asks several times whether there are any. */
  #size = 0;

  constructor() {
    for (let at = 0; at < LINE_START; at++) this.#line.push(undefined);
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  get first(): SchedulerNode | undefined {
    if (this.#size === 0) return undefined;
    if (this.#heap.length > 0) return this.#firstOfBoth(this.#heap[0] as SchedulerNode);
    return this.#line[this.#head];
  }

  #firstOfBoth(inHeap: SchedulerNode): SchedulerNode {
    if (this.#head === this.#tail) return inHeap;
    const inLine = this.#line[this.#head] as SchedulerNode;
    return comesBefore(inLine, inHeap) ? inLine : inHeap;
  }

  /** Queues a node that is not queued. */
  push(node: SchedulerNode): void {
    this.#size++;
    if (this.#head !== this.#tail) return this.#joinOthers(node);
    this.#head = LINE_START;
    this.#tail = LINE_START + 1;
    this.#stand(node, LINE_START);
  }

  remove(node: SchedulerNode): void {
    const { slot } = node;
    if (slot < 0) return;
    node.slot = UNQUEUED;
    this.#size--;
    if ((slot & 1) === 1) this.#leaveHeap(slot >> 1);
    else this.#leaveLine(slot >> 1);
  }

  /** The node's height changed. */
  moved(node: SchedulerNode): void {
    if (node.slot < 0) return;
    this.remove(node);
    this.push(node);
  }

  *[Symbol.iterator](): Iterator<SchedulerNode> {
    for (let at = this.#head; at < this.#tail; at++) {
      const node = this.#line[at];
      if (node !== undefined) yield node;
    }
    yield* this.#heap;
  }

  // The line
  // -------------------------------------------------------------------------------------------------------------

  #joinOthers(node: SchedulerNode): void {
    const line = this.#line;
    if (comesBefore(line[this.#tail - 1] as SchedulerNode, node)) {
      if (this.#head > LINE_SLACK && this.#tail === line.length) this.#moveUp();
      this.#stand(node, this.#tail++);
    } else if (this.#head > 0 && comesBefore(node, line[this.#head] as SchedulerNode)) {
      this.#stand(node, --this.#head);
    } else if (!this.#joinNearEnd(node)) {
      this.#heap.push(node);
      this.#up(node, this.#heap.length - 1);
    }
  }

  #joinNearEnd(node: SchedulerNode): boolean {
    const line = this.#line;
    const farthest = Math.max(this.#head, this.#tail - LINE_REACH);
    for (let at = this.#tail - 1; at > farthest; at--) {
      const before = line[at - 1];
      if (before === undefined) return false;
      if (!comesBefore(before, node)) continue;
      for (let i = this.#tail++; i > at; i--) this.#stand(line[i - 1] as SchedulerNode, i);
      this.#stand(node, at);
      return true;
    }
    return false;
  }

  #stand(node: SchedulerNode, at: number): void {
    this.#line[at] = node;
    node.slot = at << 1;
  }

  #leaveLine(at: number): void {
    const line = this.#line;
    line[at] = undefined;
    if (at === this.#head) {
      let head = at + 1;
      while (head < this.#tail && line[head] === undefined) head++;
      this.#head = head;
    } else if (at === this.#tail - 1) {
      while (line[this.#tail - 1] === undefined) this.#tail--;
    }
  }

  /** Reuses the free places at the front. */
  #moveUp(): void {
    let to = LINE_START;
    for (let at = this.#head; at < this.#tail; at++) {
      const node = this.#line[at];
      this.#line[at] = undefined;
      if (node !== undefined) this.#stand(node, to++);
    }
    this.#head = LINE_START;
    this.#tail = to;
  }

  // The heap
  // -------------------------------------------------------------------------------------------------------------

  #leaveHeap(at: number): void {
    const last = this.#heap.pop() as SchedulerNode;
    if (at === this.#heap.length) return;
    this.#up(last, at);
    if (last.slot >> 1 === at) this.#down(last, at);
  }

  #up(node: SchedulerNode, from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as SchedulerNode;
      if (!comesBefore(node, parent)) break;
      this.#settleAt(parent, at);
      at = above;
    }
    this.#settleAt(node, at);
  }

  #down(node: SchedulerNode, from: number): void {
    const heap = this.#heap;
    let at = from;
    for (let below = 2 * at + 1; below < heap.length; below = 2 * at + 1) {
      let child = heap[below] as SchedulerNode;
      const other = heap[below + 1];
      if (other !== undefined && comesBefore(other, child)) {
        child = other;
        below++;
      }
      if (!comesBefore(child, node)) break;
      this.#settleAt(child, at);
      at = below;
    }
    this.#settleAt(node, at);
  }

  #settleAt(node: SchedulerNode, at: number): void {
    this.#heap[at] = node;
    node.slot = (at << 1) | 1;
  }

  /** Throws if an invariant is violated. */
  checkInvariants(): void {
    const ensure = (holds: boolean, node: SchedulerNode, problem: string) => {
      if (!holds) throw new Error(`Scheduler: node ${node.id} ${problem}`);
    };
    if ([...this].length !== this.#size) throw new Error("Scheduler: a work queue has counted wrong");
    let before: SchedulerNode | undefined;
    for (let at = this.#head; at < this.#tail; at++) {
      const node = this.#line[at];
      if (node === undefined) continue;
      ensure(node.slot === at << 1, node, "is not in its slot of the line");
      ensure(before === undefined || comesBefore(before, node), node, "stands in the line in the wrong order");
      before = node;
    }
    this.#heap.forEach((node, at) => {
      const parent = this.#heap[(at - 1) >> 1];
      ensure(node.slot === ((at << 1) | 1), node, "is not in its slot of the heap");
      ensure(parent === undefined || !comesBefore(node, parent), node, "lies in the heap in the wrong order");
    });
  }
}

export function comesBefore(a: SchedulerNode, b: SchedulerNode): boolean {
  return a.height !== b.height ? a.height < b.height : a.ordinal < b.ordinal;
}
