/**
 * The types of an app's callers: names, data, answers and refusals, all of them from the functions of the app. The same
 * interface in process (`open`) and over the socket (`connect`). These types have no run-time values. SPEC: A23-A27.
 */
import type { Failure } from "../message/error-data.ts";
import type { KernelReason } from "../message/reasons.ts";
import type { Refusal } from "../work/refusal.ts";
import type { App } from "./app.ts";
import type { BuiltInCommands, BuiltInQueries } from "./built-in.ts";
import type { Definition } from "./definition.ts";
import type { AnyEvent, EventDefinition } from "./event-definition.ts";
import type { OnDefinition } from "./on.ts";
import type { CommandDefinition, QueryDefinition, SentData } from "./request.ts";
import type { WorkerDefinition } from "./worker-commands.ts";

/** Any app. */
export type AnyApp = App<Definition>;

// Names -------------------------------------------------------------------------------------------------------------

type DefinitionOf<A> = A extends App<infer D> ? D : never;
/**
 * One part of each definition, as a function that takes it: functions of a union take all of their arguments together.
 */
type Takes<D, Key> = D extends unknown ? (Key extends keyof D ? (part: NonNullable<D[Key]>) => void : never) : never;
type RecordOf<A, Key extends keyof Definition> = [Takes<DefinitionOf<A>, Key>] extends [never]
  ? Record<never, never>
  : Takes<DefinitionOf<A>, Key> extends (all: infer All) => void
    ? All
    : never;

/** The commands of an app or of several, by name. */
export type CommandsOf<A> = RecordOf<A, "commands">;
export type QueriesOf<A> = RecordOf<A, "queries">;
/** Events that the app names: those in `events`, and those that it handles. */
export type EventsOf<A> =
  | Extract<ValueOf<RecordOf<A, "events">>, AnyEvent>
  | (ValueOf<RecordOf<A, "on">> extends infer On
      ? On extends OnDefinition<infer Name, infer Output, infer Input>
        ? EventDefinition<Name, Output, Input>
        : never
      : never);
type ValueOf<Record> = Record[keyof Record];

/** The names of an app's commands, those of the kernel included. */
export type CommandName<A> = (keyof CommandsOf<A> | keyof BuiltInCommands) & string;
/** The names of an app's queries, those of the kernel included. */
export type QueryName<A> = (keyof QueriesOf<A> | keyof BuiltInQueries) & string;
/** The names of the events that an app lists in `events`. */
export type EventName<A> = EventsOf<A>["name"];

// Data and answers --------------------------------------------------------------------------------------------------

type Handler<A, Name> = Name extends keyof CommandsOf<A>
  ? OfWorker<CommandsOf<A>[Name], Name>
  : BuiltInCommands[Name & keyof BuiltInCommands];
/** The function of a worker's file that a command names. */
type OfWorker<H, Name> =
  H extends WorkerDefinition<infer Commands> ? (Name extends keyof Commands ? Commands[Name] : never) : H;
type QueryHandler<A, Name> = Name extends keyof QueriesOf<A>
  ? QueriesOf<A>[Name]
  : BuiltInQueries[Name & keyof BuiltInQueries];

type Returned<H> =
  H extends CommandDefinition<never, infer R>
    ? R
    : H extends QueryDefinition<never, infer R>
      ? R
      : H extends (...given: never) => infer R
        ? R
        : never;

/** Over the wire, `undefined` and no value are `null`. */
type Answer<R> = R extends void | undefined ? null : R;

/** The type of the data of a command. */
export type CommandInput<A, Name> = SentData<Handler<A, Name>>;
/** The type of the answer of a command. */
export type CommandAnswer<A, Name> = Answer<Exclude<Awaited<Returned<Handler<A, Name>>>, Refusal>>;
/** The type of the data of a query. */
export type QueryInput<A, Name> = SentData<QueryHandler<A, Name>>;
/** The type of the answer of a query. */
export type QueryAnswer<A, Name> = Answer<Returned<QueryHandler<A, Name>>>;
/** The type of the data of an event. */
export type EventData<A, Name> =
  Extract<EventsOf<A>, { readonly name: Name }> extends EventDefinition<string, infer Output, never> ? Output : never;

// Refusals ----------------------------------------------------------------------------------------------------------

/** The failures that a command can answer with: its own refusals, and those of the kernel. */
export type CommandFailure<A, Name> =
  | (Extract<Awaited<Returned<Handler<A, Name>>>, Refusal> extends infer R
      ? R extends Refusal<infer Reason, infer Data>
        ? Failure<Reason, Data>
        : never
      : never)
  | Failure<KernelReason>;

/** The result of `safeCommand`: a value or a failure, without an exception. */
export type Result<Value, F> =
  | { readonly ok: true; readonly value: Value; readonly failure?: undefined }
  | { readonly ok: false; readonly failure: F; readonly value?: undefined };

// Calling -----------------------------------------------------------------------------------------------------------

/** Options of a command or a query. */
export interface CallOptions {
  /** Idempotency key: a command that is repeated under it takes effect once, and gets the first answer. */
  readonly id?: string;
  /** Stops waiting. The handler goes on. */
  readonly signal?: AbortSignal;
  /** Stops waiting after so long, with a `Failure` 504. */
  readonly timeoutMs?: number;
}

/** Options of `kernel.events`. */
export interface EventsOptions {
  /** Events after this cursor, or all with `"start"`; those after the call unless given. */
  readonly from?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** The arguments after the name. The data is optional where the handler takes none. */
export type Arguments<Input, Options> = [Input] extends [never]
  ? [data?: null, options?: Options]
  : null extends Input
    ? [data?: Input, options?: Options]
    : undefined extends Input
      ? [data?: Input | null, options?: Options]
      : [data: Input, options?: Options];

/** An event of the journal, as `kernel.events` yields it. */
export interface AppEvent<Name, Data> {
  /** Its id in the journal. */
  readonly id: number;
  /** Give it as `from` to continue after this event. */
  readonly cursor: string;
  readonly type: Name;
  readonly data: Data;
}

/** A query that is answered again whenever its answer has changed. Only confirmed state is shown. */
export interface Live<Value> extends AsyncIterable<Value> {
  /** Calls back with the answer, and again whenever it differs, until the returned function is called. */
  subscribe(listener: (value: Value) => unknown, onError?: (error: unknown) => unknown): () => void;
}

/** How the functions of an app are called, in process or from another one. */
export interface Caller<A> {
  /** Sends a command; resolves with its answer once its commit is durable, and throws a `Failure` else. */
  command<Name extends CommandName<A>>(
    name: Name,
    ...rest: Arguments<CommandInput<A, Name>, CallOptions>
  ): Promise<CommandAnswer<A, Name>>;
  /** The same, with a failure as a value. */
  safeCommand<Name extends CommandName<A>>(
    name: Name,
    ...rest: Arguments<CommandInput<A, Name>, CallOptions>
  ): Promise<Result<CommandAnswer<A, Name>, CommandFailure<A, Name>>>;
  query<Name extends QueryName<A>>(
    name: Name,
    ...rest: Arguments<QueryInput<A, Name>, Omit<CallOptions, "id">>
  ): Promise<QueryAnswer<A, Name>>;
  /** The answer of a query, and its next ones. */
  live<Name extends keyof QueriesOf<A> & string>(
    name: Name,
    ...rest: Arguments<QueryInput<A, Name>, never>
  ): Live<QueryAnswer<A, Name>>;
  /** Events of the journal as they come. */
  events<Name extends EventName<A>>(
    names: Name | readonly Name[],
    options?: EventsOptions,
  ): AsyncIterable<Name extends unknown ? AppEvent<Name, EventData<A, Name>> : never>;
}
