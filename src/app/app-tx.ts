/**
 * The second argument of every handler of an app: writes, events and commands that happen with the handler's commit, or not at all. Adds to
 * `Tx` the values of the app: events and commands are values with types, and a refusal is an answer. SPEC: A6, A12, A14.
 *
 * Members are bound, so that `const { emit } = tx` works.
 */
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Tx, TxCell, TxList } from "../work/tx.ts";
import type { Duration } from "./duration.ts";
import { type EventDefinition, readData } from "./event-definition.ts";
import { Refusal, type RefuseOptions } from "./refusal.ts";
import type { CommandDefinition } from "./request.ts";

/** The data that callers of a command give. */
export type SentData<Command> =
  Command extends CommandDefinition<infer Input, unknown>
    ? Input
    : Command extends () => unknown
      ? undefined
      : Command extends (data: infer Data, ...rest: never) => unknown
        ? Data
        : never;

/** When an event is published or a command sent: with the commit unless given. */
export interface Later {
  /** So long after the commit. */
  readonly delay?: Duration;
  /** Milliseconds since 1970. */
  readonly at?: number;
}

export interface AppTx {
  /** The value as this transaction sees it, its own writes included. */
  get<T>(cell: Pick<TxCell<T>, "get">): T;
  set<T>(cell: TxCell<T>, value: NoInfer<T>): void;
  /** Replaces the value by the result of `change`. */
  update<T>(cell: TxCell<T>, change: (value: T) => NoInfer<T>): void;
  delete(cell: Pick<TxCell<unknown>, "delete">): void;
  /** Adds elements at the end of a list. */
  push<E>(cell: TxList<E>, ...items: E[]): void;
  /** Replaces elements of a list. */
  splice<E>(cell: TxList<E>, index: number, remove: number, ...items: E[]): void;
  /** Publishes an event with the commit. */
  emit<Input>(event: EventDefinition<string, unknown, Input>, data: Input): void;
  /** `return tx.refuse("SOLD_OUT")` rolls back; the caller gets a `Failure` of that reason. */
  refuse<const Reason extends string, Data = undefined>(
    reason: Reason,
    options?: RefuseOptions<Data>,
  ): Refusal<Reason, Data>;
  /** An id that follows from the message's: every attempt gets the same ones. */
  newId(name?: string): string;
  /** Counts the attempts at this message from 1. */
  readonly attempt: number;
}

/** Facts of the app that a transaction needs. */
export interface TxScope {
  /** The topic under which events of a type are journaled, where the transaction takes topics. */
  topicOf(type: string): string;
}

export class HandlerTx implements AppTx {
  readonly #tx: Tx;
  readonly #scope: TxScope;
  #refusal: Refusal | undefined;

  constructor(tx: Tx, scope: TxScope) {
    this.#tx = tx;
    this.#scope = scope;
  }

  get get(): AppTx["get"] {
    return this.#tx.get as AppTx["get"];
  }

  get set(): AppTx["set"] {
    return this.#tx.set;
  }

  get update(): AppTx["update"] {
    return this.#tx.update as AppTx["update"];
  }

  get delete(): AppTx["delete"] {
    return this.#tx.delete;
  }

  get push(): AppTx["push"] {
    return this.#tx.push;
  }

  get splice(): AppTx["splice"] {
    return this.#tx.splice;
  }

  get emit(): AppTx["emit"] {
    return (event, data) => {
      readData(event.schema, data, `tx.emit: ${event.name}`);
      this.#tx.emit(this.#scope.topicOf(event.name), data as Json);
    };
  }

  get refuse(): AppTx["refuse"] {
    return (reason, options = {}) => {
      const refusal = new Refusal(reason, options as RefuseOptions<never>);
      this.#refusal = refusal;
      return refusal;
    };
  }

  get newId(): AppTx["newId"] {
    return this.#tx.newId;
  }

  get attempt(): number {
    return this.#tx.attempt;
  }

  /** The result of a handler: throws the refusal that it returned. */
  resultOf(returned: unknown): unknown {
    if (returned instanceof Refusal) throw failureOf(returned);
    if (this.#refusal === undefined) return returned;
    const { reason } = this.#refusal;
    throw new Failure(
      500,
      `the handler called tx.refuse("${reason}") and did not return it; write: return tx.refuse(…)`,
    );
  }
}

function failureOf({ code, message, reason, data }: Refusal): Failure {
  return new Failure(code, message, { reason, ...(data === undefined ? {} : { data: data as Json }) });
}
