/**
 * The context that handlers of all entry points get: everything it does happens with the handler's commit, or not at all. Cells may be used
 * directly too, as long as the attempt is in the slot; `tx` works everywhere, also after an `await` on engines without an async context.
 * SPEC: U1, U37-U41, U70-U76.
 *
 * Members are bound, so that `const { emit } = tx` works. Each is made when it is asked for: a handler uses few of them.
 */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import type { Attempt } from "./attempt.ts";
import type { MessageOptions, Outbox } from "./outbox.ts";
import { Refusal, type RefuseOptions } from "./refusal.ts";

/** A cell or a computed value, as far as a transaction uses it. */
export interface TxCell<T> {
  get(): T;
  set(value: T): void;
  update(change: (value: T) => T): void;
  delete(): void;
}

/** A list of elements. */
export interface TxList<E> {
  push(...items: E[]): void;
  splice(index: number, remove: number, ...items: E[]): void;
}

export class Tx {
  readonly #attempt: Attempt;
  readonly #outbox: Outbox;
  readonly #message: Message | undefined;

  constructor(attempt: Attempt, outbox: Outbox, message: Message | undefined) {
    this.#attempt = attempt;
    this.#outbox = outbox;
    this.#message = message;
  }

  // Cells ----------------------------------------------------------------------------------------------------------------

  /** The value as this transaction sees it, its own writes included. */
  get get(): <T>(cell: TxCell<T>) => T {
    return (cell) => this.#attempt.within(() => cell.get());
  }

  get set(): <T>(cell: TxCell<T>, value: T) => void {
    return (cell, value) => this.#attempt.within(() => cell.set(value));
  }

  /** Replaces the value by the one that `change` makes of it. */
  get update(): <T>(cell: TxCell<T>, change: (value: T) => T) => void {
    return (cell, change) => this.#attempt.within(() => cell.update(change));
  }

  get delete(): (cell: Pick<TxCell<unknown>, "delete">) => void {
    return (cell) => this.#attempt.within(() => cell.delete());
  }

  /** Adds elements at the end of a list. */
  get push(): <E>(cell: TxList<E>, ...items: E[]) => void {
    return (cell, ...items) => this.#attempt.within(() => cell.push(...items));
  }

  /** Replaces elements of a list. */
  get splice(): <E>(cell: TxList<E>, index: number, remove: number, ...items: E[]) => void {
    return (cell, index, remove, ...items) => this.#attempt.within(() => cell.splice(index, remove, ...items));
  }

  // Messages -------------------------------------------------------------------------------------------------------------

  /** Publishes an event, by its type or its topic, with the commit or at a time after it. Returns the id of its message. */
  get emit(): (type: string, data: Json, options?: MessageOptions) => string {
    return (type, data, options) => this.#outbox.emit(this.#attempt, this.#message, type, data, options);
  }

  /** Publishes an event under a topic; likewise. */
  get publish(): (topic: string, payload: Json, options?: MessageOptions) => string {
    return (topic, payload, options) => this.#outbox.publish(this.#attempt, this.#message, topic, payload, options);
  }

  /** Sends a command to its handler, without waiting for an answer; likewise. It is journaled in the commit. */
  get send(): (type: string, data: Json, options?: MessageOptions) => string {
    return (type, data, options) => this.#outbox.send(this.#attempt, this.#message, type, data, options);
  }

  /**
   * Erases the data of a subject (decision 0016) after the commit, also if the process dies meanwhile. Returns the id of the command that asks for
   * it. Needs a kernel.
   */
  get erase(): (subject: string) => string {
    return (subject) => this.#outbox.erase(this.#attempt, this.#message, subject);
  }

  /**
   * Answers the caller with a refusal: `return tx.refuse("SOLD_OUT")`. Writes and messages of the handler are taken back. The caller gets a
   * `Failure` with the reason and the data.
   */
  get refuse(): <const Reason extends string, Data extends Json | undefined = undefined>(
    reason: Reason,
    options?: RefuseOptions<Data>,
  ) => Refusal<Reason, Data> {
    return (reason, options) => {
      const refusal = new Refusal(reason, options);
      this.#attempt.refusal = refusal;
      return refusal;
    };
  }

  // The invocation -------------------------------------------------------------------------------------------------------

  /** Runs code as part of the transaction. On engines without an async context that is the code before its first `await`. */
  get within(): <T>(code: () => T) => T {
    return (code) => this.#attempt.enter(code);
  }

  /** An id that follows from the message's, by a name or by counting: every attempt makes the same ones, in every process. */
  get newId(): (name?: string) => string {
    return (name) => this.#attempt.newId(name);
  }

  /** The message that is handled; undefined in a stream's handler and in `transact`. */
  get message(): Message | undefined {
    return this.#message;
  }

  /** Counts the attempts at this message from 1. */
  get attempt(): number {
    return this.#attempt.number;
  }

  /** Aborted when the handler has timed out, and when the process stops without it. */
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  /** The time in milliseconds since 1970, the same throughout the attempt. */
  get now(): number {
    return this.#attempt.now;
  }
}
