/**
 * Contexts of handlers. A plain handler gets a `HandlerContext`. One that was subscribed with a space gets a `Tx`, one with a replica a
 * `HandlerTransaction` over its documents: their writes and events happen if and only if the delivery commits. SPEC: J48, J56-J58, J63.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { DocumentRef } from "../store/document.ts";
import type { Settlement } from "../store/journal.ts";
import { join, type Label, labelOfMessage, labelOfRead } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import type { Transaction } from "../store/transaction.ts";
import { Cancellation } from "../work/cancellation.ts";
import type { Cancellable } from "../work/handler-call.ts";
import type { Tx } from "../work/tx.ts";
import { BusError } from "./bus-error.ts";
import type { Event } from "./event.ts";
import type { EventRun } from "./event-run.ts";
import { settlementOf } from "./outcome.ts";

export type Handler<Payload = Json> = (event: Event<Payload>, context: HandlerContext) => unknown;
export type TransactionalHandler<Payload = Json> = (event: Event<Payload>, tx: HandlerTransaction) => unknown;

/** The same for one that was subscribed with an open space. */
export type WorkHandler<Payload = Json> = (event: Event<Payload>, tx: Tx) => unknown;

export interface EmitOptions {
  /** Who publishes; the handler's subscriber unless given. */
  readonly source?: string;
}

/** Publishes on behalf of a handler, as a consequence of the event it handles. */
export interface Emitter {
  emitNow(cause: Event, subscriberId: string, topic: string, payload: unknown, options?: EmitOptions): Promise<number>;
  emitWith(
    transaction: Transaction,
    cause: Event,
    subscriberId: string,
    topic: string,
    payload: unknown,
    options?: EmitOptions,
  ): void;
}

/** What one call of a handler is about. */
export interface CallFacts {
  readonly event: Event;
  readonly subscriberId: string;
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  readonly deaths?: number | undefined;
  readonly run?: EventRun;
}

function overError(what: string, reason: Error): BusError {
  const why = `${what}: ${reason.message}, and what its handler does now changes nothing`;
  return new BusError("BUS_HANDLER_OVER", why);
}

function leftBehind(topic: string, reason: Error): Promise<never> {
  const refused = Promise.reject(overError(`${topic} was not emitted`, reason));
  // Nobody waits for this handler: it need not wait for what it emits, and must not end the process for that.
  refused.catch(() => undefined);
  return refused;
}

export class HandlerContext {
  readonly subscriberId: string;
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  /** How many processes have died while they held the event, since it was last settled, or 1 if one stopped without its handler: it may have begun. */
  readonly deaths: number;
  readonly #event: Event;
  readonly #run: EventRun | undefined;
  readonly #emitter: Emitter;
  readonly #cancellation = new Cancellation();

  constructor({ event, subscriberId, attempt, deaths = 0, run }: CallFacts, emitter: Emitter) {
    this.#run = run;
    this.subscriberId = subscriberId;
    this.attempt = attempt;
    this.deaths = deaths;
    this.#event = event;
    this.#emitter = emitter;
  }

  /** Aborted when the handler has timed out, and when the bus stops without it. */
  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }

  /**
   * Publishes a consequence of the event: same correlation, caused by it. At once, whatever becomes of the handler. Once the signal is aborted nothing is
   * published any more, and it rejects.
   */
  emit(topic: string, payload: unknown, options?: EmitOptions): Promise<number> {
    const { reason } = this.#cancellation;
    if (reason !== undefined) return leftBehind(topic, reason);
    return this.#emitter.emitNow(this.#event, this.subscriberId, topic, payload, options);
  }

  /** The settlement that fails the event, for a commit of the handler. After that commit the handler throws `Settled`. */
  failing(error: string): Settlement {
    if (this.#run === undefined) throw new Error("this handler cannot settle its event");
    return settlementOf(this.#run, { kind: "failed", error });
  }

  /** Throws `BUS_HANDLER_OVER` once the signal is aborted; `what` names what is refused. */
  requireOpen(what: string): void {
    const { reason } = this.#cancellation;
    if (reason !== undefined) throw overError(what, reason);
  }

  cancel(reason: Error): void {
    this.#cancellation.cancel(reason);
  }
}

/** What the bus has to know of a handler's transaction. */
export interface ShareContext extends Cancellable {
  /** What it has read so far, and its event was made of, is labelled with. */
  readonly label: Label;
  /** Whether it met documents or computed values that were not ready: then its run proves nothing. */
  readonly isReady: boolean;
}

export class HandlerTransaction implements ShareContext {
  readonly subscriberId: string;
  /** Counts the tries of this delivery from 1. Runs again because a read has moved are the same try. */
  readonly attempt: number;
  readonly #event: Event;
  readonly #emitter: Emitter;
  readonly #replica: Replica;
  readonly #transaction: Transaction;
  #cancellation: Cancellation | undefined;
  #sawUnloaded = false;
  #label: Label;

  constructor(
    { event, subscriberId, attempt }: CallFacts,
    emitter: Emitter,
    { replica, transaction }: { readonly replica: Replica; readonly transaction: Transaction },
  ) {
    this.subscriberId = subscriberId;
    this.attempt = attempt;
    this.#event = event;
    this.#emitter = emitter;
    this.#replica = replica;
    this.#transaction = transaction;
    this.#label = labelOfMessage(event.message);
  }

  /** What it has read so far, and what its event was made of, is labelled with (decision 0010). */
  get label(): Label {
    return this.#label;
  }

  get signal(): AbortSignal {
    this.#cancellation ??= new Cancellation();
    return this.#cancellation.signal;
  }

  /** The value at the path, frozen; undefined where there is none. A document that was not in memory makes it run again. */
  read(ref: DocumentRef, path: Path = [], depth?: "deep" | "shallow"): Json | undefined {
    const { labels } = this.#look(ref);
    if (labels !== undefined) this.#label = join(this.#label, labelOfRead(labels.places, path, depth === "shallow"));
    return this.#transaction.read(ref, path, depth);
  }

  /** Puts a value. Its parent must be there; the empty path makes or replaces the document. */
  write(ref: DocumentRef, path: Path, value: unknown): void {
    if (path.length > 0) this.#look(ref);
    this.#transaction.write(ref, path, value);
  }

  /** Removes an object's key, or with the empty path the document. Removing what is not there is fine. */
  remove(ref: DocumentRef, path: Path): void {
    this.#look(ref);
    this.#transaction.remove(ref, path);
  }

  /** Replaces `remove` elements of the array at the path from `index` on. */
  splice(ref: DocumentRef, path: Path, index: number, remove: number, insert: readonly unknown[]): void {
    this.#look(ref);
    this.#transaction.splice(ref, path, index, remove, insert);
  }

  /** Publishes a consequence of the event, in the same commit as everything else. */
  emit(topic: string, payload: unknown, options?: EmitOptions): void {
    this.#emitter.emitWith(this.#transaction, this.#event, this.subscriberId, topic, payload, options);
  }

  /** Left behind, a handler must not write any more: its transaction ends with the waiting. */
  cancel(reason: Error): void {
    this.#cancellation ??= new Cancellation();
    this.#cancellation.cancel(reason);
    this.#transaction.abort();
  }

  /** Whether every document that it met was loaded: otherwise its run proves nothing. */
  get isReady(): boolean {
    return !this.#sawUnloaded;
  }

  #look(ref: DocumentRef): ReplicaDocument {
    const document = this.#replica.touch(ref);
    if (!document.isKnown) this.#sawUnloaded = true;
    return document;
  }
}
