/**
 * Commands and queries as values. A plain function is one; `command` and `query` add a schema, which checks the data of
 * callers, and options. A caller gives the schema's input, the handler gets its output. `AppTx` is here too: its `send`
 * takes a command, and a command's handler takes an `AppTx`. SPEC: A6, A8-A12, A14.
 */
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import type { Sql } from "../work/sql.ts";
import type { Tx, TxCell, TxList } from "../work/tx.ts";
import type { Duration } from "./duration.ts";
import {
  checkedBy,
  type EventDefinition,
  type InputOf,
  isSchema,
  type OutputOf,
  type Schema,
} from "./event-definition.ts";

/** Options of `command`. */
export interface CommandOptions {
  /** For people and tools: `millrace ls`, `Syscall.Describe`. */
  readonly description?: string;
  /** A handler that takes longer fails with 504. */
  readonly timeout?: Duration;
  /**
   * How many of its calls are handled at once, beside other commands. Without it, the commands of an app are handled
   * one after the other.
   */
  readonly concurrency?: number;
}

/** Options of `query`. */
export interface QueryOptions {
  readonly description?: string;
}

/** A value that is no promise: a query is synchronous, so that its reads are tracked. */
export type Synchronous = string | number | boolean | null | undefined | void | (object & { readonly then?: never });

/** `never` for data without annotation or schema: any use of it is a type error. */
export type CommandFunction = (data: never, tx: AppTx) => unknown;
export type QueryFunction = (data: never) => Synchronous;

/** A command with a schema or options. Made by `command`. */
export class CommandDefinition<in Input = never, out Returned = unknown> {
  readonly schema: Schema | undefined;
  readonly handler: CommandFunction;
  readonly options: CommandOptions;
  declare readonly "~types"?: { readonly input: (input: Input) => void; readonly returned: Returned };

  constructor(schema: Schema, handler: CommandFunction, options: CommandOptions) {
    this.schema = checkedBy(schema);
    this.handler = handler;
    this.options = options;
  }
}

/** A query with a schema or options. Made by `query`. */
export class QueryDefinition<in Input = never, out Returned = unknown> {
  readonly schema: Schema | undefined;
  readonly handler: QueryFunction;
  readonly options: QueryOptions;
  declare readonly "~types"?: { readonly input: (input: Input) => void; readonly returned: Returned };

  constructor(schema: Schema, handler: QueryFunction, options: QueryOptions) {
    this.schema = checkedBy(schema);
    this.handler = handler;
    this.options = options;
  }
}

export type AnyCommand = CommandFunction | CommandDefinition;
export type AnyQuery = QueryFunction | QueryDefinition;

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

/**
 * The second argument of every handler of an app: writes, events and commands that happen with the handler's commit, or
 * not at all. Adds to `Tx` the values of the app: events and commands are values with types, and a refusal is an
 * answer.
 */
export interface AppTx {
  /** The value as this transaction sees it, its own writes included. */
  get<T>(cell: Pick<TxCell<T>, "get">): T;
  set<T>(cell: TxCell<T>, value: NoInfer<T>): void;
  /** Replaces the value by the result of `change`. `Next` keeps literals in the result as they are written. */
  update<T, const Next extends T>(cell: TxCell<T>, change: (value: T) => Next): void;
  delete(cell: Pick<TxCell<unknown>, "delete" | "node">): void;
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
  /** `return tx.refuse("SOLD_OUT")` rolls back; the caller gets a `Failure` of that reason. */
  readonly refuse: Tx["refuse"];
  /**
   * Runs a statement on tables of your own with the commit: on SQLite those of the same file, on Postgres those of the
   * database. It returns no rows; `affects(1)` makes the handler run again if another number of rows was changed.
   */
  readonly sql: Sql;
  /** An id that follows from the message's: every attempt gets the same ones. */
  newId(name?: string): string;
  /** Counts the attempts at this message from 1. */
  readonly attempt: number;
  /** Milliseconds since 1970, the same throughout an attempt. */
  readonly now: number;
  /** Aborted when the handler has timed out, and when the kernel stops without it. */
  readonly signal: AbortSignal;
}

/** A command with a schema that checks its data. */
export function command<S extends Schema, Returned>(
  schema: S,
  handler: (data: OutputOf<S>, tx: AppTx) => Returned,
  options: CommandOptions = {},
): CommandDefinition<InputOf<S>, Returned> {
  requireDefinition("command", schema, handler);
  return new CommandDefinition(schema, handler, options);
}

/** A query with a schema that checks its data. */
export function query<S extends Schema, Returned extends Synchronous>(
  schema: S,
  handler: (data: OutputOf<S>) => Returned,
  options: QueryOptions = {},
): QueryDefinition<InputOf<S>, Returned> {
  requireDefinition("query", schema, handler);
  return new QueryDefinition(schema, handler, options);
}

function requireDefinition(kind: string, schema: unknown, handler: unknown): void {
  if (!isSchema(schema))
    throw new TypeError(`${kind}(schema, handler): takes a Standard Schema or type<T>() first, got ${show(schema)}`);
  if (typeof handler !== "function")
    throw new TypeError(`${kind}(schema, handler): takes a function second, got ${show(handler)}`);
}
