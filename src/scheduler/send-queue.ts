/**
 * The sends of one space, in the order in which they were sent (I4). Spaces have separate queues, so that they do not
 * block each other. After a rejection, a send returns to its old place. The queue is bounded: further sends are refused
 * with an outcome.
 *
 * The number of commits in flight is bounded too. A conflict sets the bound to one, because all handlings stacked on
 * the rolled-back commit ran in vain; each confirmed commit doubles it, up to the maximum.
 */
import type { Host, Timer } from "../host/host.ts";
import { SENDS_IN_FLIGHT_MAX, SENDS_WAITING_MAX } from "../limits.ts";
import type { Replica } from "../store/replica.ts";

/** The life of a send (`send.ts`). */
export type SendState = "launched" | "queued" | "aside" | "resting" | "running" | "committing" | "over";

/** A send as its queue sees it. */
export interface QueuedSend {
  readonly id: string;
  /** Its place in the queue, set when it is first queued. */
  order: number;
  state: SendState;
}

export class OrderedQueue<Send extends QueuedSend> {
  readonly replica: Replica;
  /** Part of the ids of plain sends; the replica's own session changes after an unknown outcome. */
  readonly session: string;
  /** The send whose asynchronous handler is running; the queue dispatches no other send before its end. */
  running: Send | undefined;
  /** Handlings whose commit has no outcome yet. */
  inFlight = 0;
  /** Sends that wait at their streams for a handler. */
  aside = 0;
  closed = false;
  /** A commit was rolled back, and its caller has not heard yet: the returning send may belong before the head. */
  hasRollback = false;
  #inFlightMax = SENDS_IN_FLIGHT_MAX;
  /** Ascending by `order`, from `#first` on. */
  #sends: Send[] = [];
  #first = 0;
  #lastOrder = 0;
  /** Sends that wait for their next attempt, with their timers: outside of the order until then. */
  readonly #resting = new Map<Send, Timer>();
  /** Sends whose next attempt is due; they return to their places before the next dispatch. */
  #due: Send[] = [];

  constructor(replica: Replica) {
    this.replica = replica;
    this.session = replica.session;
  }

  get head(): Send | undefined {
    return this.#sends[this.#first];
  }

  get size(): number {
    return this.#sends.length - this.#first;
  }

  get isFull(): boolean {
    return this.size + this.restingCount + this.inFlight >= SENDS_WAITING_MAX;
  }

  /** Whether as many commits are in flight as may be. */
  get isAhead(): boolean {
    return this.inFlight >= this.#inFlightMax;
  }

  push(send: Send): void {
    send.order = ++this.#lastOrder;
    send.state = "queued";
    this.#sends.push(send);
  }

  shift(): void {
    this.#first++;
    // Cut off when more than half is used, so that each send is moved at most once.
    if (this.#first * 2 < this.#sends.length) return;
    this.#sends = this.#sends.slice(this.#first);
    this.#first = 0;
  }

  /** Puts a send back at its place, before all later ones. */
  requeue(send: Send): void {
    send.state = "queued";
    let at = this.#first;
    while (at < this.#sends.length && (this.#sends[at] as Send).order < send.order) at++;
    this.#sends.splice(at, 0, send);
  }

  /** Puts the sends back at their places in the order. */
  requeueAll(sends: readonly Send[]): void {
    for (const send of sends) send.state = "queued";
    this.#sends = [...sends, ...this.waiting()].sort((a, b) => a.order - b.order);
    this.#first = 0;
  }

  get restingCount(): number {
    return this.#resting.size + this.#due.length;
  }

  get hasDue(): boolean {
    return this.#due.length > 0;
  }

  /** Keeps a send outside of the order until its next attempt is due; then calls `due`. */
  rest(send: Send, delayMs: number, host: Host, due: () => void): void {
    send.state = "resting";
    const expire = () => {
      this.#resting.delete(send);
      this.#due.push(send);
      due();
    };
    // A stream's handler does not keep the process alive, so its retry does not either.
    this.#resting.set(send, host.timer(delayMs, expire, { keepAlive: false }));
  }

  /** Puts due sends back at their places. */
  returnDue(): void {
    if (this.#due.length === 0) return;
    const due = this.#due.sort((a, b) => a.order - b.order);
    this.#due = [];
    this.requeueAll(due);
  }

  /** All sends that wait for their next attempt. */
  resting(): Send[] {
    return [...this.#resting.keys(), ...this.#due];
  }

  #endRest(send: Send): void {
    this.#resting.get(send)?.cancel();
    this.#resting.delete(send);
    this.#due = this.#due.filter((other) => other !== send);
  }

  /** Removes a send from any place. */
  remove(send: Send): void {
    if (send.state === "resting") return this.#endRest(send);
    if (send === this.head) return this.shift();
    const at = this.#sends.indexOf(send, this.#first);
    if (at >= 0) this.#sends.splice(at, 1);
  }

  /** All waiting sends, in order. */
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
