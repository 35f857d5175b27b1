/**
 * What there is to do: nodes that are invalid, live and eligible now (`primary`), materializers among them (`idle`, run when
 * nothing else is left), and those that wait for a time gate. Whoever makes a node invalid or live offers it here; the pass
 * takes from here. It decides nothing about values or demand.
 */
import type { Gates } from "./gates.ts";
import { RUNNING, type SchedulerNode, UNQUEUED } from "./node.ts";
import { WorkQueue } from "./work-queue.ts";

/** Who is told that there is work; the settle component. */
export interface Waker {
  wake(): void;
}

export class Agenda {
  readonly primary = new WorkQueue();
  readonly idle = new WorkQueue();
  readonly #gates: Gates;
  #waker: Waker | undefined;
  /** Effects that wait until a read of plain code is over; undefined while none is under way. */
  #heldEffects: SchedulerNode[] | undefined;

  constructor(gates: Gates) {
    this.#gates = gates;
  }

  set waker(waker: Waker) {
    this.#waker = waker;
  }

  /** The node is not clean and live: it runs now, or when its gate opens. */
  offer(node: SchedulerNode): void {
    if (node.particulars !== null) {
      node.particulars.isWaiting = false;
      if (this.#isHeld(node)) return;
    }
    // One that runs is offered again by the runner, when it has ended.
    if (node.slot !== UNQUEUED) return;
    if (this.#heldEffects !== undefined && node.kind === "effect") return void this.#heldEffects.push(node);
    this.#queueOf(node).push(node);
    this.#waker?.wake();
  }

  /** Effects do not run before `releaseEffects`. */
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

  /** Takes a queued node, to run it. */
  take(node: SchedulerNode): void {
    if (node.particulars === null) this.primary.remove(node);
    else this.withdraw(node);
  }

  /** The node became clean by other means, dormant, or is gone. */
  withdraw(node: SchedulerNode): void {
    this.#unqueue(node);
    if (node.gate !== undefined) this.#gates.release(node);
  }

  #unqueue(node: SchedulerNode): void {
    if (node.slot >= 0) this.#queueOf(node).remove(node);
    if (node.promoted) node.promoted = false;
  }

  #queueOf(node: SchedulerNode): WorkQueue {
    const isPrimary = node.particulars === null || node.envelope === undefined || node.promoted;
    return isPrimary ? this.primary : this.idle;
  }

  /** A materializer that primary work is about to read runs with it. */
  promote(node: SchedulerNode): void {
    this.idle.remove(node);
    node.promoted = true;
    this.primary.push(node);
  }

  /** The node's height is another. */
  moved(node: SchedulerNode): void {
    if (node.slot >= 0) this.#queueOf(node).moved(node);
  }

  get isEmpty(): boolean {
    return this.primary.isEmpty && this.idle.isEmpty;
  }

  get size(): number {
    return [...this.primary, ...this.idle].length;
  }
}
