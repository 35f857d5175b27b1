/**
 * The nodes that are invalid, live and eligible, by height and then by registration. A node knows its slot.
 *
 * Two parts. The line is in order: changes mostly reach readers in the order in which they were registered, so most nodes join at
 * its end or near it, or at its front (a reader of what has just run), at no cost that depends on how many are queued. Any other
 * joins the heap, O(log n). Slots of the line are even, those of the heap odd.
 *
 * Heights start as registration ordinals, so there is no ladder of buckets to walk.
 */
import { type SchedulerNode, UNQUEUED } from "./node.ts";

/** Where the line begins when it was empty: there is room before it. */
const LINE_START = 16;
/** How many places from its end a node may join the line. */
const LINE_REACH = 8;
/** Places before the line that are used again only when there are so many. */
const LINE_SLACK = 1024;

export class WorkQueue {
  /** In order from `#head` to before `#tail`, both of which hold nodes; undefined where one has left from between. */
  readonly #line: (SchedulerNode | undefined)[] = [];
  #head = LINE_START;
  #tail = LINE_START;
  readonly #heap: SchedulerNode[] = [];
  /** How many are queued. Every run asks several times whether there are any. */
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

  /** Queues a node that is not. */
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

  /** The node's height is another. */
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

  // The line -------------------------------------------------------------------------------------------------------------

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

  /** Uses the places again that were left at the front. */
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

  // The heap -------------------------------------------------------------------------------------------------------------

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

  /** Throws if it contradicts itself. */
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
