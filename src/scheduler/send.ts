/**
 * A send: one value for one stream. Every send has exactly one outcome.
 *
 * ```
 *   launched ──its attempt's commit is applied──> queued ──handler ran──> committing ──confirmed──> over
 *      (only if an attempt sent it)               ^ │ ^└─ waiting at the head, for the reason `wait`
 *                                                 │ │ └── stale: again, at its old place
 *                        a handler is registered  └aside: its stream has no handler
 *
 *   running ──handler failed, and may be tried again──> resting ──its time has come──> queued, at its old place
 * ```
 */

import type { Host } from "../host/host.ts";
import { periodOf } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import type { Commit } from "../store/commit.ts";
import { join, type Label, PUBLIC } from "../store/label.ts";
import { Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import type { Demand, Home } from "../work/attempt.ts";
import type { AttemptLineage } from "../work/lineage.ts";
import type { Retries } from "../work/retries.ts";
import { EventStem, linkText, originHash } from "./event-id.ts";
import type { NodeAddress } from "./node.ts";
import { OrderedQueue, type SendState } from "./send-queue.ts";
import type { RegisteredHandler } from "./stream-handler.ts";
import { StreamError } from "./stream-handler.ts";

/** Why a send has failed for good. */
export type SendFailure =
  /** The handler threw. */
  | "threw"
  /** The handler took longer than its timeout. */
  | "timeout"
  /** The preflight threw. */
  | "preflight"
  /** A document that the handler reads, or the handler itself, could not be loaded. */
  | "load"
  /** The result of the handler cannot be stored. */
  | "result"
  /** The store refuses the commit for good. */
  | "rejected"
  /** The time window for retries has ended. */
  | "gave-up";

/** The outcome of a send. */
export type SendOutcome =
  /** This send's handling is committed; `result` is the handler's result. */
  | { readonly kind: "handled"; readonly id: string; readonly result: Json }
  /** The event was handled before, here or elsewhere; `result` is the result of that handling. */
  | { readonly kind: "already"; readonly id: string; readonly result: Json }
  | {
      readonly kind: "failed";
      readonly id: string;
      readonly reason: SendFailure;
      readonly message: string;
      readonly error?: unknown;
      /** The last answer of the store; its class tells whether a retry could have succeeded. */
      readonly rejection?: Rejection;
    }
  /** It will not be handled: its sender failed, or no handler is left. */
  | {
      readonly kind: "dropped";
      readonly id: string;
      readonly reason: "origin-failed" | "no-handler" | "closed";
      readonly message: string;
    }
  /** The queue is full: send it again later. */
  | { readonly kind: "refused"; readonly id: string; readonly reason: "queue-full"; readonly message: string };

/** Options of `stream.send`. */
export interface SendOptions {
  /** The caller's own id: two sends with the same id and session are handled once. */
  readonly id?: string;
  /** The caller's identity beyond this process; by default, ids count while the space is open here. */
  readonly session?: string;
  /** The event id of an earlier send: the same event again, even if another process sent it first. */
  readonly eventId?: string;
  /** A commit that this send depends on: the send waits for its confirmation, and is dropped if it fails. */
  readonly origin?: Commit;
  /** Called with the outcome, once. */
  readonly onOutcome?: (outcome: SendOutcome) => void;
}

/** A send on its way: its id, and its outcome. */
export interface Sent {
  /** The durable event id. */
  readonly id: string;
  /** Never rejects. */
  readonly outcome: Promise<SendOutcome>;
}

/** The reason why the head of a queue waits. */
export type Wait =
  /** Nodes that it reads from are gated, or an asynchronous run is awaited: checked in every pass. */
  | { readonly kind: "nodes" }
  /** Documents that it reads are being loaded. */
  | { readonly kind: "load"; readonly missing: ReadonlySet<Home> }
  /** A handler is being loaded. */
  | { readonly kind: "handler-load" }
  /** The commit of its sender is not confirmed. */
  | { readonly kind: "origin" }
  /** Its commit was stale: changes are being read, or it pauses. */
  | { readonly kind: "retry" }
  /** Its receipt is being looked up. */
  | { readonly kind: "receipt" }
  /** Its handler's `presync` is running. */
  | { readonly kind: "presync" };

export class Send implements Sent {
  readonly stream: StreamRecord;
  readonly value: Json;
  /** The attempt that sent it; undefined for plain code. */
  readonly origin: AttemptLineage | undefined;
  /** The label of its sender's reads at that time. */
  readonly #sentUnder: Label;
  /** Its place in the queue, set when it is first queued. */
  order = 0;
  state: SendState = "launched";
  wait: Wait | undefined;
  /** The demand for its handler's inputs, while it waits and runs. */
  closure: Demand | undefined;
  /** Calls of its handler, also those that were rejected by a conflict. */
  runs = 0;
  /** Attempts that have failed. */
  failures = 0;
  /** The time in the ids of its messages, once its handler has sent one. */
  bornMs: number | undefined;
  /** Created by the first rejection of its commit. */
  retries: Retries | undefined;
  /**
   * Documents that its handler reads and that were not loaded: held until the end, so that none is dropped while
   * another is loaded.
   */
  #needed: ReplicaDocument[] | undefined;
  /** Whether the caller gave the id: then it may have been handled before, and its receipt is looked up. */
  mayBeKnown = false;
  /** Whether `presync` has ended. */
  synced = false;
  /** The event's id, or the number that it is derived from when it is needed. */
  readonly #name: string | number;
  /** The prefix of an id that is derived from a number. */
  #stem: EventStem | undefined;
  readonly #onOutcome: ((outcome: SendOutcome) => void) | undefined;
  #result: SendOutcome | undefined;
  /** The handler's result, until the outcome is asked for. */
  #returned: Json | undefined;
  #outcome: Promise<SendOutcome> | undefined;
  #resolve: ((outcome: SendOutcome) => void) | undefined;

  constructor(parts: {
    name: string | number;
    stream: StreamRecord;
    value: Json;
    origin?: AttemptLineage | undefined;
    label?: Label | undefined;
    onOutcome?: ((outcome: SendOutcome) => void) | undefined;
  }) {
    this.#name = parts.name;
    this.stream = parts.stream;
    this.value = parts.value;
    this.origin = parts.origin;
    this.#sentUnder = parts.label ?? PUBLIC;
    this.#onOutcome = parts.onOutcome;
  }

  /**
   * The label of its sender's reads: at the time of the send, and at the end of the attempt, which decides whether it
   * was sent at all.
   */
  get label(): Label {
    return this.origin === undefined ? this.#sentUnder : join(this.#sentUnder, this.origin.label);
  }

  get id(): string {
    return typeof this.#name === "number" ? this.#minted().id(this.#name) : this.#name;
  }

  receipt(result: Json): Receipt {
    if (typeof this.#name === "number") return this.#minted().receipt(this.#name, result);
    return new Receipt(receiptOf({ kind: "send", id: this.#name }), result);
  }

  #minted(): EventStem {
    this.#stem ??= this.stream.stem;
    return this.#stem;
  }

  /** Created when it is first asked for: few callers wait for a single send. */
  get outcome(): Promise<SendOutcome> {
    if (this.#returned !== undefined) this.#result ??= { kind: "handled", id: this.id, result: this.#returned };
    this.#outcome ??= this.#result
      ? Promise.resolve(this.#result)
      : new Promise((resolve) => {
          this.#resolve = resolve;
        });
    return this.#outcome;
  }

  /** Keeps documents that are being loaded for its handler. */
  needs(documents: readonly Home[]): void {
    this.#needed ??= [];
    for (const { document } of documents) {
      document.observers++;
      this.#needed.push(document);
    }
  }

  /** Sets the one outcome; later calls have no effect. */
  end(outcome: SendOutcome): void {
    if (this.state === "over") return;
    this.#letGo();
    this.#result = outcome;
    this.#resolve?.(outcome);
    this.#onOutcome?.(outcome);
  }

  /** Whether a caller waits for the outcome. */
  get isAwaited(): boolean {
    return this.#resolve !== undefined || this.#onOutcome !== undefined;
  }

  /** The short path for most sends: the result is committed, and no caller waits for it. */
  endUnheard(result: Json): void {
    if (this.state === "over") return;
    this.#letGo();
    this.#returned = result;
  }

  #letGo(): void {
    this.state = "over";
    this.wait = undefined;
    this.closure?.release();
    this.closure = undefined;
    if (this.#needed !== undefined) for (const document of this.#needed) document.observers--;
  }
}

/** The sends of one space. */
export class SendQueue extends OrderedQueue<Send> {}

/**
 * The scheduler's record of a stream: its link, its queue, and its one handler. A second handler is refused, because
 * two handlings of one event would race for one receipt.
 */
export class StreamRecord {
  readonly address: NodeAddress;
  readonly queue: SendQueue;
  /** The full link, as part of event ids. */
  readonly link: string;
  handler: RegisteredHandler | undefined;
  /** The reason why the stream is closed, until a handler is registered again. */
  closed: string | undefined;
  /** Sends whose turn came without a handler, in order. They wait here, so that the queue is not blocked. */
  #aside: Send[] = [];
  readonly #host: Host;
  /** The hash of the ids of plain sends. */
  #hash: string | undefined;
  #stem: EventStem | undefined;

  constructor(address: NodeAddress, queue: SendQueue, host: Host) {
    this.#host = host;
    this.address = address;
    this.queue = queue;
    this.link = linkText(address);
    // There is one record for each link, found by its address.
    address.home.addStream(address);
  }

  /** The prefix of the ids of plain sends now. */
  get stem(): EventStem {
    const period = periodOf(this.#host.now());
    if (this.#stem?.period === period) return this.#stem;
    this.#hash ??= originHash(this.queue.session, this.link);
    this.#stem = new EventStem(period, this.#hash);
    return this.#stem;
  }

  get asideCount(): number {
    return this.#aside.length;
  }

  setAside(send: Send): void {
    send.state = "aside";
    this.#aside.push(send);
    this.queue.aside++;
  }

  /** Removes and returns all sends that wait for a handler. */
  takeAside(): readonly Send[] {
    const sends = this.#aside;
    this.#aside = [];
    this.queue.aside -= sends.length;
    return sends;
  }

  /** Removes one send that is over. */
  letGo(send: Send): void {
    const at = this.#aside.indexOf(send);
    if (at < 0) return;
    this.#aside.splice(at, 1);
    this.queue.aside--;
  }

  register(handler: RegisteredHandler): void {
    if (this.handler !== undefined) {
      throw new StreamError(
        "STREAM_HANDLED",
        `${this} is handled by "${this.handler.name}", so "${handler.name}" cannot handle it too: a stream has one handler; remove the first, or send to a second stream from it`,
      );
    }
    this.handler = handler;
    this.closed = undefined;
  }

  toString(): string {
    return `stream ${this.address} of space "${this.queue.replica.space}"`;
  }
}
