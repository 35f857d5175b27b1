/**
 * The scheduler's record of a stream: its link, its queue, and its one handler. A second handler is refused, because
 * two handlings of one event would race for one receipt.
 */
import type { Host } from "../host/host.ts";
import { periodOf } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Attempt, AttemptKind } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { Retry } from "../work/retry-policy.ts";
import { EventStem, linkText, originHash } from "./event-id.ts";
import type { Handling } from "./handling.ts";
import type { Address } from "./node.ts";
import type { Send } from "./send.ts";
import type { SendQueue } from "./send-queue.ts";

/** Handles one event; its result becomes the receipt's value. */
export type EventHandler = (value: Json, handling: Handling) => unknown;

export interface HandlerOptions {
  /** For people; the function's own name by default. */
  readonly name?: string;
  /**
   * Reads the documents that the handler will read, so that they are up to date before it runs; its writes are dropped.
   */
  readonly preflight?: (value: Json) => unknown;
  /** Fetches data from elsewhere before the handler runs. The handler runs even if it fails. */
  readonly presync?: (value: Json) => Promise<unknown>;
  /** The labels that the handler may read; undefined: all. */
  readonly clearance?: readonly string[];
  /** An asynchronous handler that takes longer has failed: 300,000 ms unless given; 0 for ever. */
  readonly timeoutMs?: number;
  /** How often a handler that throws or times out is tried; once unless given. */
  readonly retry?: Retry;
  /** Called in an attempt of its own when a send has failed for good by a throw or a timeout. */
  readonly onFailed?: (failure: HandlerFailure, attempt: Attempt, value: Json) => unknown;
}

export interface RegisteredHandler extends HandlerOptions {
  readonly name: string;
  readonly run: EventHandler;
  /** Created by its first attempt. */
  kind?: AttemptKind;
}

/** The codes of `StreamError`. */
export type StreamErrorCode =
  /** The stream has a handler already. */
  | "STREAM_HANDLED"
  /** A computation tried to send. */
  | "STREAM_SEND_IN_COMPUTATION"
  /** Options of a send that contradict each other. */
  | "STREAM_MISUSE";

/** Wrong use of a stream. */
export class StreamError extends MillraceError<StreamErrorCode> {
  override readonly name = "StreamError";
}

export class StreamRecord {
  readonly address: Address;
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

  constructor(address: Address, queue: SendQueue, host: Host) {
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
