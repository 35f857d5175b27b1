/**
 * The context that handlers get: everything it does happens with the handler's commit, or not at all. Cells may be used directly too, as long as
 * the attempt is in the slot; `tx` works everywhere, also after an `await` on engines without an async context. SPEC: U1, U37-U41.
 *
 * Members are bound, so that `const { emit } = tx` works. Each is made when it is asked for: a handler uses few of them.
 */
import type { Json } from "../message/json.ts";
import type { Attempt } from "./attempt.ts";

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

/** Appends an event to the commit of an attempt; each entry point names and checks events in its own way. */
export type Emit = (attempt: Attempt, type: string, data: Json) => void;

export class Tx {
  readonly #attempt: Attempt;
  readonly #emit: Emit;

  constructor(attempt: Attempt, emit: Emit) {
    this.#attempt = attempt;
    this.#emit = emit;
  }

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

  /** Publishes an event with the commit. */
  get emit(): (type: string, data: Json) => void {
    return (type, data) => {
      this.#attempt.requireOpen();
      this.#emit(this.#attempt, type, data);
    };
  }

  /** Runs code as part of the transaction. On engines without an async context that is the code before its first `await`. */
  get within(): <T>(code: () => T) => T {
    return (code) => this.#attempt.enter(code);
  }

  /** An id that follows from the message's, by a name or by counting: every attempt makes the same ones. */
  get newId(): (name?: string) => string {
    return (name) => this.#attempt.newId(name);
  }

  /** Counts the attempts at this message from 1. */
  get attempt(): number {
    return this.#attempt.number;
  }
}
