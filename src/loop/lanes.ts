/**
 * Messages that wait to be routed (RFC 0032 §8): the system lane, the user lane, and the loop's own microtasks. It also
 * owns the set of connections that left while the lanes may hold their messages, and the callers that wait for rest.
 * SPEC: L2, L3, L6. Not here: taking messages (`Turns`), answers to refused messages (`Answers`).
 */

import { Fifo } from "../host/fifo.ts";
import { Waiters } from "../host/waiters.ts";
import { causationOf } from "../message/envelope.ts";
import type { Inbound, LaneName } from "./inbound.ts";
import type { Connection, Origin } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";

/** Takes messages out of the lanes. */
export interface LanesListener {
  /** A message or microtask waits, and turns must begin in a task of their own. */
  wake(): void;
  /** A message came in a task of its adapter: turns begin when that callback is over. */
  beginAfterThis(): void;
}

export class Lanes {
  readonly #pending: PendingTable;
  readonly #max: number;
  readonly #system = new Fifo<Inbound>();
  readonly #user = new Fifo<Inbound>();
  readonly #microtasks = new Fifo<() => void>();
  /** Connections that left while the lanes were not empty; cleared when they are. */
  readonly #gone = new Set<Connection>();
  readonly #restWaiters = new Waiters();
  #isClosed = false;
  /** Whether a slice of turns runs or is about to; set by `Turns`. */
  isTurning = false;
  listener: LanesListener | undefined;
  /** Called when the lanes come to rest, and for every change between slices that a waiter may wait for. */
  onRest: (() => void) | undefined;

  constructor(parts: { pending: PendingTable; laneMax: number }) {
    this.#pending = parts.pending;
    this.#max = parts.laneMax;
  }

  /** Puts a message into a lane and begins turns; the reason if it is not taken. */
  put(inbound: Inbound, lane: LaneName): string | undefined {
    const refusal = this.#refusal(inbound, lane);
    if (refusal !== undefined) return refusal;
    this.#lane(lane).push(inbound);
    this.listener?.wake();
    return undefined;
  }

  /** The same for a message that an adapter brings in a task of its own, such as a socket's event. */
  putFromAdapter(inbound: Inbound): string | undefined {
    const refusal = this.#refusal(inbound, "user");
    if (refusal !== undefined) return refusal;
    this.#user.push(inbound);
    this.listener?.beginAfterThis();
    return undefined;
  }

  /** The loop shuts down and takes no messages. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  #refusal(inbound: Inbound, lane: LaneName): string | undefined {
    if (this.#isClosed) return "the kernel is shutting down";
    if (this.#lane(lane).length < this.#max || this.#isAwaited(inbound)) return undefined;
    return `the ${lane} lane is full (${this.#max})`;
  }

  /** A full lane takes an answer that a requester waits for: there are no more of them than pending requests. */
  #isAwaited({ message, origin }: Inbound): boolean {
    if ((message.kind !== "reply" && message.kind !== "error") || origin.kind !== "actor") return false;
    return this.#pending.get(causationOf(message) ?? "")?.actor === origin.actor;
  }

  microtask(task: () => void): void {
    this.#microtasks.push(task);
    this.listener?.wake();
  }

  /** The next message, system lane first. */
  take(): Inbound | undefined {
    return this.#system.shift() ?? this.#user.shift();
  }

  takeMicrotask(): (() => void) | undefined {
    return this.#microtasks.shift();
  }

  #lane(name: LaneName): Fifo<Inbound> {
    return name === "system" ? this.#system : this.#user;
  }

  length(lane: LaneName): number {
    return this.#lane(lane).length;
  }

  get microtasks(): number {
    return this.#microtasks.length;
  }

  get isEmpty(): boolean {
    return this.#system.length === 0 && this.#user.length === 0 && this.#microtasks.length === 0;
  }

  /** From now on every message is refused. */
  close(): void {
    this.#isClosed = true;
  }

  // Connections that left
  // -----------------------------------------------------------------------------------------------

  disconnect(connection: Connection): void {
    if (!this.isEmpty) this.#gone.add(connection);
  }

  /** Whether the sender of a message left before its turn came. */
  isGone(origin: Origin): boolean {
    return this.#gone.size > 0 && origin.kind === "adapter" && this.#gone.has(origin.connection);
  }

  forgetGone(): void {
    if (this.#gone.size > 0 && this.isEmpty) this.#gone.clear();
  }

  // Rest
  // ----------------------------------------------------------------------------------------------------------------

  /** The lanes are empty, and no slice runs or is about to. */
  get isResting(): boolean {
    return !this.isTurning && this.isEmpty;
  }

  /** Resolves at the end of a slice that left the lanes empty, or when `checkRest` is called between slices. */
  rest(): Promise<void> {
    return this.#restWaiters.wait();
  }

  checkRest(): void {
    if (this.isTurning) return;
    this.onRest?.();
    if (this.#restWaiters.isEmpty) return;
    this.#restWaiters.release();
  }
}
