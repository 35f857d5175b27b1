/**
 * The definition of a capability: commands, queries and event handlers by type, each with the schema of its data, which
 * gives the types of handlers and answers. `define-capability.ts` and `transactional.ts` make actors of it.
 */
import { DISPATCH_CONCURRENCY_MAX, HANDLER_TIMEOUT_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { labelOf } from "../store/label.ts";
import { type HandlerOptions, handlerOptionsProblem, KNOWN_HANDLER_OPTIONS } from "../work/handler-options.ts";
import {
  type Capability,
  type Durability,
  durabilityProblem,
  type EventDeliveries,
  type SpawnContext,
} from "./capability.ts";
import type { OrJson } from "./exchanges.ts";
import type { CapabilityContext, MailboxOptions } from "./mailbox-actor.ts";
import { type Branch, type DataOf, type DataSchema, dataAs, messageSchema, type SentTo } from "./message-schema.ts";
import { BootError } from "./routing-table.ts";

/**
 * How one command or query is handled: `handle(data, context, request)`, where `request` is the whole message, with its
 * id and metadata.
 */
export interface RequestHandler<Input, Output, Context = CapabilityContext, Sent = unknown> {
  /** Checks the sent data; `handle` gets the schema's output. */
  readonly input?: DataSchema<Input, Sent>;
  /** Checks the answer, and describes it to tools. */
  readonly output?: DataSchema<Output, unknown>;
  readonly description?: string;
  /** It has so many places of its own: its messages do not wait for others of the capability. Not with `serialBy`. */
  readonly concurrency?: number;
  handle(data: Input, context: Context, request: Message): Output | Promise<Output>;
}

// A handler's own schema fixes its types; a list of handlers can only say "some handler".
// biome-ignore lint/suspicious/noExplicitAny: `RequestHandlers` checks the types where a capability is defined
export type AnyRequestHandler<Context> = RequestHandler<any, any, Context>;

/**
 * The options of handlers apply to all messages of the capability. `concurrency` is 1 by default, and 10 with
 * `serialBy`. `retry`: a journaled command waits for its next attempt in the journal, another one in memory, while its
 * requester waits.
 */
export interface CapabilityDefinition<Context = CapabilityContext>
  extends HandlerOptions<[data: Json, message: Message], Context, Json> {
  readonly description: string;
  readonly commands?: Readonly<Record<string, AnyRequestHandler<Context>>>;
  readonly queries?: Readonly<Record<string, AnyRequestHandler<Context>>>;
  /** Events it may emit, with the schema of their data. */
  readonly emits?: Readonly<Record<string, DataSchema | true>>;
  /** Requests it may send to others. */
  readonly sends?: Readonly<Record<string, "command" | "query">>;
  /** Handlers of the events to which it subscribes. */
  readonly on?: Readonly<Record<string, (data: Json, context: Context, message: Message) => unknown>>;
  /**
   * Its commands may run twice: after a crash, a command that was under way runs again. Otherwise it fails as
   * `interrupted`.
   */
  readonly idempotent?: boolean;
  /**
   * Which commands are in the journal before their handler is called. `"before"`: all, the default. `"unawaited"`:
   * those that no requester waits for, the default with `space`. `false`: none.
   */
  readonly durable?: Durability;
  /** The labels that its handlers and their transactions may read. After an `await`, read in `context.within`. */
  readonly clearance?: readonly string[];
}

/**
 * Handlers by type, each with the types of its own schemas: the compiler infers one entry of `Sent`, `Inputs` and
 * `Outputs` for each handler. Without a schema a handler gets any JSON, and may return any.
 */
export type RequestHandlers<Sent, Inputs, Outputs, Context> = {
  readonly [Type in keyof Sent]: {
    readonly input?: DataSchema<unknown, Sent[Type]>;
    handle(...given: never): unknown;
  };
} & {
  readonly [Type in keyof Inputs]: {
    readonly input?: DataSchema<Inputs[Type], unknown>;
    readonly description?: string;
    handle(data: OrJson<Inputs[Type]>, context: Context, message: Message): unknown;
  };
} & {
  readonly [Type in keyof Outputs]: {
    readonly output?: DataSchema<Outputs[Type], unknown>;
    handle(...given: never): MaybePromise<OrJson<NoInfer<Outputs[Type]>, undefined | void>>;
  };
};

type MaybePromise<T> = T | Promise<T>;

/** A definition whose handlers are typed by their schemas. */
export interface TypedDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>
  extends Omit<CapabilityDefinition, "commands" | "queries"> {
  readonly commands?: RequestHandlers<CommandsSent, CommandsIn, CommandsOut, CapabilityContext>;
  readonly queries?: RequestHandlers<QueriesSent, QueriesIn, QueriesOut, CapabilityContext>;
}

/** Makes a handler whose types follow from its schemas. */
export function handler<In extends DataSchema, Out extends DataSchema, Context = CapabilityContext>(
  definition: RequestHandler<DataOf<In>, DataOf<Out>, Context, SentTo<In>> & {
    readonly input: In;
    readonly output: Out;
  },
): RequestHandler<DataOf<In>, DataOf<Out>, Context, SentTo<In>> {
  return definition;
}

/** The options of a capability, for its mailbox. */
export function mailboxOptions<Context>(
  definition: CapabilityDefinition<Context>,
  { name, board }: SpawnContext,
): MailboxOptions {
  const { clearance, timeoutMs = HANDLER_TIMEOUT_MS, retry, serialBy } = definition;
  const { concurrency = serialBy === undefined ? 1 : DISPATCH_CONCURRENCY_MAX } = definition;
  const keyOf = serialBy === undefined ? undefined : (message: Message) => serialBy(message.data, message);
  const options = { clearance, timeoutMs, name, board, retry };
  const own = ownPlaces(definition);
  return own.size === 0 || keyOf !== undefined
    ? { ...options, concurrency, serialBy: keyOf }
    : { ...options, ...placesByType(own, concurrency) };
}

/** Places of the types that have their own. */
function ownPlaces<Context>({ commands, queries }: CapabilityDefinition<Context>): ReadonlyMap<string, number> {
  const all = Object.entries({ ...commands, ...queries });
  return new Map(all.flatMap(([type, { concurrency }]) => (concurrency === undefined ? [] : [[type, concurrency]])));
}

/** The key of a message that shares the places of the capability. */
const SHARED = "";

function placesByType(own: ReadonlyMap<string, number>, concurrency: number): MailboxOptions {
  let all = concurrency;
  for (const places of own.values()) all += places;
  return {
    concurrency: all,
    serialBy: ({ type }) => (own.has(type) ? type : SHARED),
    limits: new Map([...own, [SHARED, concurrency]]),
  };
}

const KNOWN: Readonly<Record<keyof CapabilityDefinition, true>> = {
  ...{ description: true, commands: true, queries: true, emits: true, sends: true, on: true, idempotent: true },
  ...{ durable: true, clearance: true },
  ...KNOWN_HANDLER_OPTIONS,
};
const KNOWN_OF_HANDLER: Readonly<Record<keyof AnyRequestHandler<never>, true>> = {
  ...{ input: true, output: true, description: true, concurrency: true, handle: true },
};

/** Throws for unknown options: with a misspelt schema, data would not be checked. */
function requireKnownOptions<Context>(definition: CapabilityDefinition<Context>): void {
  const handlers = Object.entries({ ...definition.commands, ...definition.queries });
  const problems = [
    handlerOptionsProblem(definition, KNOWN),
    ...handlers.map(([type, one]) => {
      const problem = typeof one === "object" && one !== null ? handlerProblem(one, definition) : undefined;
      return problem === undefined ? undefined : `${type}: ${problem}`;
    }),
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new BootError(problems);
}

function handlerProblem<Context>(
  one: AnyRequestHandler<Context>,
  { serialBy }: CapabilityDefinition<Context>,
): string | undefined {
  const { concurrency } = one;
  if (concurrency !== undefined && serialBy !== undefined)
    return "concurrency of a handler: not with serialBy, which decides what runs side by side; leave one out";
  return unknownOption(one, KNOWN_OF_HANDLER) ?? handlerOptionsProblem({ concurrency });
}

/** A capability without its actor. Throws if a declared type has no handler. */
export function declared<Context>(definition: CapabilityDefinition<Context>): Omit<Capability, "spawn"> {
  requireKnownOptions(definition);
  requireHandlers(definition);
  const {
    description,
    commands = {},
    queries = {},
    emits = {},
    sends = {},
    on = {},
    idempotent,
    durable,
    clearance,
    timeoutMs,
  } = definition;
  const misspelt = durabilityProblem(durable);
  if (misspelt !== undefined) throw new BootError([misspelt]);
  const inbound: Branch[] = [];
  const outbound: Branch[] = [];
  for (const [kind, handlers] of [
    ["command", commands],
    ["query", queries],
  ] as const) {
    for (const [type, { input, output, description: what }] of Object.entries(handlers)) {
      inbound.push({ kind, type, data: input, description: what });
      outbound.push({ kind: "reply", type, data: output });
    }
  }
  for (const [type, data] of Object.entries(emits))
    outbound.push({ kind: "event", type, data: data === true ? undefined : data });
  for (const [type, kind] of Object.entries(sends)) outbound.push({ kind, type });
  return {
    description,
    inbound: messageSchema(inbound),
    outbound: messageSchema(outbound),
    subscribes: Object.keys(on),
    ...(idempotent === undefined ? {} : { idempotent }),
    ...(durable === undefined ? {} : { durable }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    deliveries: eventOptions(definition),
    ...(clearance === undefined ? {} : { clearance: labelOf(clearance) }),
  };
}

/** The options that the journal applies when it delivers events to the capability. */
function eventOptions<Context>(definition: CapabilityDefinition<Context>): EventDeliveries {
  const { retry, concurrency, serialBy, onFailed } = definition;
  return {
    ...(retry === undefined ? {} : { retry }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(serialBy === undefined ? {} : { serialBy: (message) => serialBy(message.data, message) }),
    hasOnFailed: onFailed !== undefined,
  };
}

/** Throws if a handler is not a function. */
export function requireHandlers<Context>({ commands, queries, on }: CapabilityDefinition<Context>): void {
  const problems: string[] = [];
  for (const [kind, handlers] of Object.entries({ command: commands, query: queries })) {
    for (const [type, handler] of Object.entries(handlers ?? {})) {
      if (typeof handler?.handle === "function") continue;
      problems.push(`${kind} ${type} has no handler; write "${type}": { handle: (data) => ... }, got ${show(handler)}`);
    }
  }
  for (const [type, handle] of Object.entries(on ?? {})) {
    if (typeof handle === "function") continue;
    problems.push(`event ${type} has no handler; write "${type}": (data) => ..., got ${show(handle)}`);
  }
  if (problems.length > 0) throw new BootError(problems);
}

/** Calls the handler of a message. It throws if there is none, as for a type that only a Worker declares. */
export function dispatch<Context>(
  definition: CapabilityDefinition<Context>,
  message: Message,
  context: Context,
): Json | undefined | Promise<Json | undefined> {
  const { commands, queries, on } = definition;
  if (message.kind === "event") {
    const handle = on?.[message.type] ?? unhandled(message);
    return handle(message.data, context, message) as Promise<undefined> | undefined;
  }
  const handlers = message.kind === "command" ? commands : queries;
  const handler = handlers?.[message.type] ?? unhandled(message);
  return handler.handle(dataAs(handler.input, message.data), context, message);
}

function unhandled({ kind, type }: Message): never {
  throw new Failure(500, `${kind} ${type} is declared, but the actor has no handler for it`);
}
