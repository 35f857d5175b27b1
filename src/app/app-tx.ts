/**
 * The second argument of every handler of an app: writes, events and commands that happen with the handler's commit, or
 * not at all. Adds to `Tx` the values of the app: events and commands are values with types, and a refusal is an
 * answer. SPEC: A6, A12, A14.
 *
 * Members are bound, so that `const { emit } = tx` works.
 */
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import type { MessageOptions } from "../work/outbox.ts";
import type { Sql } from "../work/sql.ts";
import type { Tx, TxCell, TxList } from "../work/tx.ts";
import { type Duration, durationMs } from "./duration.ts";
import { type EventDefinition, readData } from "./event-definition.ts";
import { type AnyCommand, CommandDefinition } from "./request.ts";

/** The data that callers of a command give. */
export type SentData<Command> =
  Command extends CommandDefinition<infer Input, unknown>
    ? Input
    : Command extends () => unknown
      ? undefined
      : Command extends (data: infer Data, ...rest: never) => unknown
        ? Data
        : never;

/** The data of a message that is sent, with its time. Data may be left out where the command takes none. */
export type SendArguments<Data> = [Data] extends [never]
  ? [data?: null, options?: Later]
  : undefined extends Data
    ? [data?: Data | null, options?: Later]
    : [data: Data, options?: Later];

/** When an event is published or a command sent: with the commit unless given. */
export interface Later {
  /** So long after now. */
  readonly delay?: Duration;
  /** Milliseconds since 1970. */
  readonly at?: number;
  /** Names the message within its transaction: its id does not depend on the order in which messages are sent. */
  readonly key?: string;
}

/** The transaction that a handler of an app gets: reads, writes, events, sends and refusals of one commit. */
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
  /** Publishes an event with the commit, or later. */
  emit<Input>(event: EventDefinition<string, unknown, Input>, data: Input, options?: Later): void;
  /**
   * Sends a command without waiting for its answer, in the commit, or later. It is a value of `commands`, or a name.
   */
  send<Command extends AnyCommand>(command: Command, ...rest: SendArguments<SentData<Command>>): void;
  send(name: string, data?: Json, options?: Later): void;
  /**
   * Runs a statement on tables of your own with the commit: on SQLite those of the same file, on Postgres those of the
   * database. It returns no rows; `affects(1)` makes the handler run again if another number of rows was changed.
   */
  readonly sql: Sql;
  /** `return tx.refuse("SOLD_OUT")` rolls back; the caller gets a `Failure` of that reason. */
  readonly refuse: Tx["refuse"];
  /** An id that follows from the message's: every attempt gets the same ones. */
  newId(name?: string): string;
  /** Counts the attempts at this message from 1. */
  readonly attempt: number;
  /** Milliseconds since 1970, the same throughout an attempt. */
  readonly now: number;
  /** Aborted when the handler has timed out, and when the kernel stops without it. */
  readonly signal: AbortSignal;
}

/** Facts of the kernel that a transaction needs. */
export interface TxScope {
  /** The name under which a transaction takes an event of this type. */
  topicOf(type: string): string;
  /** The type of a command that was given as a value; undefined if no app has it, or several names. */
  nameOf(command: AnyCommand): string | undefined;
}

export class HandlerTx implements AppTx {
  readonly #tx: Tx;
  readonly #scope: TxScope;

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
    return this.#tx.update;
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
    return (event, data, options) => {
      readData(event.schema, data, `tx.emit: ${event.name}`);
      this.#tx.emit(this.#scope.topicOf(event.name), data as Json, messageOptions("tx.emit", options));
    };
  }

  get send(): AppTx["send"] {
    return (command: AnyCommand | string, data: unknown = null, options?: Later) => {
      const type = typeof command === "string" ? command : this.#scope.nameOf(command);
      if (type === undefined)
        throw new TypeError(
          `tx.send: ${show(command)} is a command under no name, or under several; send it by its name`,
        );
      if (command instanceof CommandDefinition) readData(command.schema, data, `tx.send: ${type}`);
      this.#tx.send(type, data as Json, messageOptions("tx.send", options));
    };
  }

  get sql(): Sql {
    return this.#tx.sql;
  }

  get refuse(): AppTx["refuse"] {
    return this.#tx.refuse;
  }

  get newId(): AppTx["newId"] {
    return this.#tx.newId;
  }

  get attempt(): number {
    return this.#tx.attempt;
  }

  get now(): number {
    return this.#tx.now;
  }

  get signal(): AbortSignal {
    return this.#tx.signal;
  }
}

function messageOptions(what: string, { delay, ...rest }: Later = {}): MessageOptions {
  return delay === undefined ? rest : { ...rest, delayMs: durationMs(delay, `${what}: delay`) };
}
