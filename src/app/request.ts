/**
 * Commands and queries as values. A plain function is one; `command` and `query` add a schema, which checks the data of
 * callers, and options. A caller gives the schema's input, the handler gets its output. SPEC: A8-A11.
 */
import { show } from "../message/problem.ts";
import type { AppTx } from "./app-tx.ts";
import type { Duration } from "./duration.ts";
import { checkedBy, type InputOf, isSchema, type OutputOf, type Schema } from "./event-definition.ts";

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
