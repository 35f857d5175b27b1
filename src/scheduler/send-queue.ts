/**
 * The sends of one space, in the order they were sent (I4). One queue for each space: what happens in one does not hold up another.
 * A send that comes back after a rejection takes its old place, not the end. Bounded: what is over the bound is refused, visibly.
 *
 * How many handlings may be on their way to the store at once: as many as the bound says while commits last; one after a
 * conflict, since everything that was stacked on the fallen commit was run for nothing; from there twice as many with each commit
 * that lasts.
 */
import type { Host } from "../host/host.ts";
import { SENDS_IN_FLIGHT_MAX, SENDS_WAITING_MAX } from "../limits.ts";
import type { Replica } from "../store/replica.ts";
import { Receipts } from "../work/receipts.ts";
import type { Send } from "./send.ts";

export class SendQueue {
  readonly replica: Replica;
  /** Names what plain code sends here; the replica's own session changes when a commit goes unanswered. */
  readonly session: string;
  /** The send whose handler is under way across awaits; nothing else of this queue is dispatched before it has ended. */
  running: Send | undefined;
  /** Handlings whose commit has no answer yet. */
  inFlight = 0;
  /** Sends that stand aside, at their streams. */
  aside = 0;
  closed = false;
  /** A commit has fallen and those who made it have not heard of it: what comes back may belong before the head. */
  isShaken = false;
  #inFlightMax = SENDS_IN_FLIGHT_MAX;
  /** Ascending by `order`, from `#first` on. */
  #sends: Send[] = [];
  #first = 0;
  #lastOrder = 0;
  /** Made by the first send with an id of its caller. */
  #receipts: Receipts | undefined;

  constructor(replica: Replica) {
    this.replica = replica;
    this.session = replica.session;
  }

  /** Which sends of the space were handled. */
  receipts(host: Host): Receipts {
    this.#receipts ??= new Receipts(host, this.replica);
    return this.#receipts;
  }

  get head(): Send | undefined {
    return this.#sends[this.#first];
  }

  get size(): number {
    return this.#sends.length - this.#first;
  }

  get isFull(): boolean {
    return this.size + this.inFlight >= SENDS_WAITING_MAX;
  }

  /** Whether the store has as many of this queue's commits as it may have. */
  get isAhead(): boolean {
    return this.inFlight >= this.#inFlightMax;
  }

  push(send: Send): void {
    send.order = ++this.#lastOrder;
    send.state = "queued";
    this.#sends.push(send);
  }

  /** Takes the head. */
  shift(): void {
    this.#first++;
    // Cut off when it is more than what waits: each is moved once at most.
    if (this.#first * 2 < this.#sends.length) return;
    this.#sends = this.#sends.slice(this.#first);
    this.#first = 0;
  }

  /** Puts a send back where it was: before everything that was sent after it. */
  requeue(send: Send): void {
    send.state = "queued";
    let at = this.#first;
    while (at < this.#sends.length && (this.#sends[at] as Send).order < send.order) at++;
    this.#sends.splice(at, 0, send);
  }

  /** Puts back what stood aside, in order, each where it was. */
  takeBack(sends: readonly Send[]): void {
    for (const send of sends) send.state = "queued";
    this.#sends = [...sends, ...this.waiting()].sort((a, b) => a.order - b.order);
    this.#first = 0;
  }

  /** Takes a send out, wherever it stands. */
  remove(send: Send): void {
    if (send === this.head) return this.shift();
    const at = this.#sends.indexOf(send, this.#first);
    if (at >= 0) this.#sends.splice(at, 1);
  }

  /** All that wait, in order. */
  waiting(): Send[] {
    return this.#sends.slice(this.#first);
  }

  conflicted(): void {
    this.#inFlightMax = 1;
  }

  lasted(): void {
    this.#inFlightMax = Math.min(this.#inFlightMax * 2, SENDS_IN_FLIGHT_MAX);
  }

  /** Throws if it contradicts itself. */
  checkInvariants(): void {
    let order = 0;
    for (const send of this.waiting()) {
      if (send.order <= order) throw new Error(`send ${send.id} stands after one that was sent later`);
      if (send.state !== "queued" && send !== this.running)
        throw new Error(`send ${send.id} is queued and ${send.state}`);
      order = send.order;
    }
    if (this.inFlight < 0) throw new Error("more commits were answered than made");
    if (this.aside < 0) throw new Error("more sends have come back than stood aside");
  }
}
