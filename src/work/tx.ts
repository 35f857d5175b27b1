/**
 * The context that handlers of all entry points get: its effects happen with the handler's commit, or not at all. Cells
 * may be used directly too, as long as the attempt is in the slot; `tx` works everywhere, also after an `await` on
 * engines without an async context. SPEC: U1, U37-U41, U70-U76.
 *
 * Members are bound, so that `const { emit } = tx` works. Each is made when it is asked for: a handler uses few of
 * them.
 */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { type AskOptions, ask, type Question } from "./ask.ts";
import type { Attempt } from "./attempt.ts";
import type { Launch } from "./lineage.ts";
import type { MessageOptions, Outbox, OutboxRules, TxTimerOptions } from "./outbox.ts";
import { Refusal, type RefuseOptions } from "./refusal.ts";
import { type Sql, sqlOf } from "./sql.ts";

/** A cell or a computed value, as far as a transaction uses it. */
export interface TxCell<T> {
  get(): T;
  set(value: T): void;
  update(change: (value: T) => T): void;
  delete(): void;
  /** The node of a computed value, which no handler may write. */
  readonly node?: never;
}

/** A list of elements. */
export interface TxList<E> {
  push(...items: E[]): void;
  splice(index: number, remove: number, ...items: E[]): void;
}

/** A stream, as far as a transaction sends to it. */
export interface TxStream<Value, Options, Sent> {
  send(value: Value, options?: Options): Sent;
}

/** A pattern, as far as a transaction starts pieces of it. */
export interface TxPattern<Inputs, Options, Started> {
  launchIn(space: object, inputs: Inputs, options?: Options): Started;
}

/** The context of a transactional handler: sends, emits and requests of its attempt. */
export class Tx {
  readonly #attempt: Attempt;
  readonly #outbox: Outbox;
  readonly #message: Message | undefined;

  constructor(attempt: Attempt, outbox: Outbox, message: Message | undefined) {
    this.#attempt = attempt;
    this.#outbox = outbox;
    this.#message = message;
  }

  /** The same transaction, with another rule about the messages that it sends. */
  static restricted(tx: Tx, problemOf: NonNullable<OutboxRules["problemOf"]>): Tx {
    return new Tx(tx.#attempt, tx.#outbox.restricted(problemOf), tx.#message);
  }

  // Cells -----------------------------------------------------------------------------------------------------------

  /** The value as this transaction sees it, its own writes included. */
  get get(): <T>(cell: Pick<TxCell<T>, "get">) => T {
    return (cell) => this.#attempt.within(() => cell.get());
  }

  get set(): <T>(cell: TxCell<T>, value: NoInfer<T>) => void {
    return (cell, value) => this.#attempt.within(() => cell.set(value));
  }

  /** Replaces the value by the one that `change` makes of it. */
  get update(): <T, const Next extends T>(cell: TxCell<T>, change: (value: T) => Next) => void {
    return (cell, change) => this.#attempt.within(() => cell.update(change));
  }

  get delete(): (cell: Pick<TxCell<unknown>, "delete" | "node">) => void {
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

  // Messages --------------------------------------------------------------------------------------------------------

  /**
   * Publishes an event, by its type or its topic, with the commit or at a time after it. Returns the id of its message.
   */
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
   * Sends a value to a stream: it is handled only if this transaction commits. It is in memory, and is lost if the
   * process dies first.
   */
  get sendTo(): <Value, Options, Sent>(
    stream: TxStream<Value, Options, Sent>,
    value: Value,
    options?: Options,
  ) => Sent {
    return (stream, value, options) => this.#attempt.within(() => stream.send(value, options));
  }

  /** Starts a piece of a pattern, which lives if this transaction commits. */
  get start(): <Inputs, Options, Started>(
    pattern: TxPattern<Inputs, Options, Started>,
    inputs: Inputs,
    options?: Options,
  ) => Started {
    return (pattern, inputs, options) =>
      this.#attempt.within(() => pattern.launchIn(this.#outbox.space, inputs, options));
  }

  /** Ties other work to this transaction: it is told when the commit is applied, confirmed, or has failed. */
  get launch(): (launch: Launch) => void {
    return (launch) => {
      this.#attempt.requireOpen();
      this.#attempt.lineage.launch(launch);
    };
  }

  /** Sets a timer of this space with the commit; one of the same name is replaced. */
  get setTimer(): (timer: TxTimerOptions) => void {
    return (timer) => this.#outbox.setTimer(this.#attempt, this.#message, timer);
  }

  /** Ends a timer of this space with the commit. */
  get cancelTimer(): (name: string) => void {
    return (name) => this.#outbox.cancelTimer(this.#attempt, name);
  }

  /** Sends a command now and waits for its answer: not part of the commit. A rerun asks under the same id. */
  get command(): (type: string, data: Json, options?: AskOptions) => Promise<Json> {
    return (type, data, options) => this.#ask({ kind: "command", type, data }, options);
  }

  get query(): (type: string, data: Json, options?: AskOptions) => Promise<Json> {
    return (type, data, options) => this.#ask({ kind: "query", type, data }, options);
  }

  #ask(question: Question, options: AskOptions | undefined): Promise<Json> {
    return ask(this.#attempt, this.#outbox, this.#message, question, options);
  }

  /**
   * Erases the data of a subject (decision 0016) after the commit, also if the process dies meanwhile. Returns the id
   * of the command that asks for it. Needs a kernel.
   */
  get erase(): (subject: string) => string {
    return (subject) => this.#outbox.erase(this.#attempt, this.#message, subject);
  }

  /**
   * Answers the caller with a refusal: `return tx.refuse("SOLD_OUT")`. Writes and messages of the handler are taken
   * back. The caller gets a `Failure` with the reason and the data.
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

  /** Runs a statement on tables of your own with the commit: those of the same file or database. */
  get sql(): Sql {
    return sqlOf(this.#attempt);
  }

  // The invocation --------------------------------------------------------------------------------------------------

  /**
   * Runs code as part of the transaction. On engines without an async context that is the code before its first
   * `await`.
   */
  get within(): <T>(code: () => T) => T {
    return (code) => this.#attempt.enter(code);
  }

  /**
   * An id that follows from the message's, by a name or by counting: every attempt makes the same ones, in every
   * process.
   */
  get newId(): (name?: string) => string {
    return (name) => this.#attempt.newId(name);
  }

  /**
   * The id of the invocation: that of the message or the send, for an event with its subscriber; undefined in
   * `transact`.
   */
  get id(): string | undefined {
    return this.#attempt.id;
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
