/**
 * An event on its way through one actor: the message, its completion callback, and a count of the messages that its
 * handler sent and that are not journaled yet. SPEC: L9, L89, K26.
 *
 * ```
 *   with its actor ──ended──> handled ──every sent message is journaled or refused──> over
 *         └──ended with a failure, or fail()──> the same, and over with that failure
 * ```
 * A parcel is over exactly once. The actor ends it; the router counts the sent messages, each by a `Sending` of its
 * own.
 */
import { isPassing } from "../bus/concluded.ts";
import type { Message } from "../message/envelope.ts";
import type { Attempt } from "../work/attempt.ts";
import type { HandlerEnd } from "../work/handler-call.ts";

/** A delivery did not come to its handler, or not to its end; the loop has told of it. */
export class DeliveryFailed extends Error {
  override readonly name = "DeliveryFailed";
  /** The value that the handler threw, if it did. Not `cause`: `reason` has its text and its causes already. */
  readonly thrown: unknown;
  /** Whether the handler took too long. */
  readonly isTimeout: boolean;

  constructor(reason: string, { thrown, isTimeout = false }: { thrown?: unknown; isTimeout?: boolean } = {}) {
    super(reason);
    this.thrown = thrown;
    this.isTimeout = isTimeout;
  }
}

export interface ParcelFailure {
  readonly reason: string;
  /** Whether the store or a queue had no room for a message: the event is to be delivered again. */
  readonly isPassing: boolean;
}

/** One delivery of an event to an actor; it ends when its handler and messages are done. */
export class Parcel {
  readonly message: Message;
  /** Of an event for a transactional handler. */
  readonly attempt: Attempt | undefined;
  /** How that handler ended. */
  end: HandlerEnd | undefined;
  /** Whether its handler took too long; set before it ends. */
  isTimeout = false;
  readonly #over: (failure: ParcelFailure | undefined, thrown: unknown) => void;
  /** Sent messages that are neither journaled nor refused yet. */
  #unjournaled = 0;
  #isHandled = false;
  #isOver = false;
  #failure: ParcelFailure | undefined;
  #thrown: unknown;

  /** `over` is called once, with the first failure if there is one. */
  constructor(
    message: Message,
    over: (failure: ParcelFailure | undefined, thrown: unknown) => void,
    attempt?: Attempt,
  ) {
    this.message = message;
    this.attempt = attempt;
    this.#over = over;
  }

  get isHandled(): boolean {
    return this.#isHandled;
  }

  /** The handler has ended. */
  ended(failure?: string, thrown?: unknown): void {
    this.#isHandled = true;
    this.#thrown = thrown;
    this.fail(failure, isPassing(thrown));
    this.#checkOver();
  }

  /** Notes a failure; the first one counts. */
  fail(reason: string | undefined, isPassing = false): void {
    if (reason !== undefined) this.#failure ??= { reason, isPassing };
  }

  /**
   * Its handler sends a message. Undefined if the handler has ended: the event does not wait for messages sent later.
   */
  send(): Sending | undefined {
    if (this.#isHandled) return undefined;
    this.#unjournaled++;
    return new Sending(this);
  }

  journaled(failure: string | undefined, isPassing: boolean): void {
    this.#unjournaled--;
    this.fail(failure, isPassing);
    this.#checkOver();
  }

  #checkOver(): void {
    if (!this.#isHandled || this.#unjournaled > 0 || this.#isOver) return;
    this.#isOver = true;
    this.#over(this.#failure, this.#thrown);
  }
}

/** One message that the handler of a parcel sent. The first call of `done` counts. */
export class Sending {
  #parcel: Parcel | undefined;

  constructor(parcel: Parcel) {
    this.#parcel = parcel;
  }

  /** The journal or its receiver has it; or it is lost, for a reason. `isPassing`: it may be taken later. */
  done(failure?: string, isPassing = false): void {
    const parcel = this.#parcel;
    this.#parcel = undefined;
    parcel?.journaled(failure, isPassing);
  }
}
