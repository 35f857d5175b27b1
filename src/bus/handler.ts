/**
 * Handlers of events. A plain handler gets a `HandlerContext`. A handler that was subscribed with a space gets a `Tx`.
 * SPEC: J48, J56, J63.
 */

import { thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Settlement } from "../store/journal.ts";
import { Cancellation } from "../work/cancellation.ts";
import type { Tx } from "../work/tx.ts";
import { BusError } from "./bus-error.ts";
import type { Event } from "./event.ts";
import type { HandlingRing } from "./handling-ring.ts";

/** A plain handler: it is called at least once for each event. */
export type Handler<Payload = Json> = (event: Event<Payload>, context: HandlerContext) => unknown;
/** Its writes, messages, receipt and delivery are one commit. */
export type TransactionalHandler<Payload = Json> = (event: Event<Payload>, tx: Tx) => unknown;

/** Options of an event that a handler emits. */
export interface HandlerEmitOptions {
  /** The publisher; the handler's subscriber unless given. */
  readonly source?: string;
}

/** Publishes on behalf of a handler, as a consequence of the event it handles. */
export interface Emitter {
  emitNow(
    cause: Event,
    subscriberId: string,
    topic: string,
    payload: unknown,
    options?: HandlerEmitOptions,
  ): Promise<number>;
}

/** Facts for one call of a handler. */
export interface CallFacts {
  readonly event: Event;
  readonly subscriberId: string;
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  readonly deaths?: number | undefined;
  /** The settlement that fails the event; absent where a handler cannot settle it. */
  readonly failing?: (error: string) => Settlement;
}

function overError(what: string, reason: Error): BusError {
  const why = `${what}: ${reason.message}, and further calls of its handler have no effect`;
  return new BusError("BUS_HANDLER_OVER", why);
}

function leftBehind(topic: string, reason: Error): Promise<never> {
  const refused = Promise.reject(overError(`${topic} was not emitted`, reason));
  // No code waits for this handler. If it does not await the result, the rejection must not end the process.
  refused.catch(() => undefined);
  return refused;
}

/** The delivery that a plain handler works on: its attempt, its signal, and `emit`. */
export class HandlerContext {
  readonly subscriberId: string;
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  /**
   * How many processes have died while they held the event, since it was last settled, or 1 if one stopped without its
   * handler: it may have begun.
   */
  readonly deaths: number;
  readonly #event: Event;
  readonly #failing: ((error: string) => Settlement) | undefined;
  readonly #emitter: Emitter;
  readonly #cancellation = new Cancellation();

  constructor({ event, subscriberId, attempt, deaths = 0, failing }: CallFacts, emitter: Emitter) {
    this.#failing = failing;
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
   * Publishes a consequence of the event: same correlation, caused by it. It is published at once, also if the handler
   * fails. Once the signal is aborted nothing is published any more, and it rejects.
   */
  emit(topic: string, payload: unknown, options?: HandlerEmitOptions): Promise<number> {
    const { reason } = this.#cancellation;
    if (reason !== undefined) return leftBehind(topic, reason);
    return this.#emitter.emitNow(this.#event, this.subscriberId, topic, payload, options);
  }

  /**
   * The settlement that fails the event, for a commit of the handler. After that commit the handler throws `Settled`.
   */
  failing(error: string): Settlement {
    if (this.#failing === undefined) throw new Error("this handler cannot settle its event");
    return this.#failing(error);
  }

  /** Throws `BUS_HANDLER_OVER` once the signal is aborted; the argument names the refused call. */
  requireOpen(what: string): void {
    const { reason } = this.#cancellation;
    if (reason !== undefined) throw overError(what, reason);
  }

  cancel(reason: Error): void {
    this.#cancellation.cancel(reason);
  }
}

/**
 * Remembers the calls of a handler of events. The wrapper returns the same value as the handler itself, in the same
 * turn. Every handler takes the event and a context.
 */
export function watchedHandler(
  handler: (...given: never) => unknown,
  subscriber: string,
  handlings: HandlingRing,
): (event: Event, context: unknown) => unknown {
  const call = handler as (event: Event, context: unknown) => unknown;
  return (event, context) => {
    const { attempt } = (context ?? {}) as { readonly attempt?: number };
    const place = handlings.given(event.message, subscriber, event.source, attempt);
    const failed = (thrown: unknown) => handlings.ended(place, `failed: ${thrownText(thrown)}`);
    try {
      const result = call(event, context);
      if (result instanceof Promise) result.then(() => handlings.ended(place, "done"), failed);
      else handlings.ended(place, "done");
      return result;
    } catch (thrown) {
      failed(thrown);
      throw thrown;
    }
  };
}
