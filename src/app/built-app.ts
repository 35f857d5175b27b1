/**
 * An app on its space, put together from the parts of the kernel: one transactional capability for commands and
 * queries, a subscription of the bus for each handler of events, a command for each schedule. SPEC: A1, A8-A22.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { Handler, TransactionalHandler } from "../bus/handler.ts";
import type { SubscribeOptions, TransactionalOptions } from "../bus/subscription.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import { HANDLER_TIMEOUT_MS } from "../limits.ts";
import type { Capability, CapabilityActor } from "../loop/capability.ts";
import type { AnyRequestHandler } from "../loop/capability-definition.ts";
import { capability } from "../loop/define-capability.ts";
import type { CapabilityContext } from "../loop/mailbox-actor.ts";
import { transactional } from "../loop/transactional.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { isThenable } from "../work/handler-call.ts";
import type { Tx } from "../work/tx.ts";
import { HandlerTx, type TxScope } from "./app-tx.ts";
import type { Definition } from "./definition.ts";
import { type Duration, durationMs } from "./duration.ts";
import { readData } from "./event-definition.ts";
import type { OnDefinition, OnFunction } from "./on.ts";
import type { StateParts } from "./parts.ts";
import { type AppTx, CommandDefinition, QueryDefinition } from "./request.ts";
import type { CronOptions } from "./schedule.ts";
import { type Request, StepRuns, stepFailure } from "./steps.ts";
import { WorkerDefinition } from "./worker-commands.ts";

/** A schedule, and the command that its slots send. */
export interface AppSchedule extends CronOptions {
  readonly key: string;
  readonly pattern: string;
  readonly type: string;
}

/** The functions of a kernel that event handlers need. */
export interface Wiring {
  readonly bus: EventBus;
  topicOf(type: string): string;
  readonly request: Request;
  /** Called with each asynchronous handler. */
  readonly during?: <T>(work: () => Promise<T>) => Promise<T>;
}

/** A handler of events: its consumer is `(topic, subscriberId)`. */
export interface AppSubscription {
  readonly event: string;
  readonly subscriberId: string;
}

type TxHandler = AnyRequestHandler<Tx>["handle"];

/** The commands of all apps of a kernel. */
export interface KnownCommands {
  /** By their functions and definitions; undefined for one under several names. */
  readonly names: ReadonlyMap<unknown, string | undefined>;
  /** All types that the kernel handles, with those of its own. */
  readonly types: readonly string[];
}

interface BuiltParts extends AppGround {
  readonly name: string;
  readonly definition: Definition;
  readonly state: StateParts;
}

/** The parts of a kernel that an app is built on. */
export interface AppGround {
  readonly host: Host;
  /** The app's own space. */
  readonly space: Space;
}

export class BuiltApp {
  readonly name: string;
  readonly schedules: readonly AppSchedule[];
  readonly #parts: BuiltParts;
  readonly #steps = new Map<string, StepRuns>();
  #nameOf: TxScope["nameOf"] = () => undefined;

  constructor(parts: BuiltParts) {
    const { name, definition } = parts;
    this.name = name;
    this.#parts = parts;
    for (const [key, one] of Object.entries(definition.on ?? {})) this.#addSteps(key, one);
    this.schedules = Object.entries(definition.schedules ?? {}).map(([key, { pattern, options }]) => {
      return { key, pattern, ...options, type: this.#typeOf("Schedule", key) };
    });
  }

  /** The types of its own commands, by their functions and definitions. */
  get commands(): Readonly<Record<string, unknown>> {
    return this.#parts.definition.commands ?? {};
  }

  /** Names of the events that it declares. */
  get events(): readonly string[] {
    return this.#parts.state.events.map(({ name }) => name);
  }

  get subscriptions(): readonly AppSubscription[] {
    const all = Object.entries(this.#parts.definition.on ?? {});
    return all.map(([key, { event }]) => ({ event: event.name, subscriberId: this.#subscriberOf(key) }));
  }

  /** Whether its capability handles messages. */
  get hasRequests(): boolean {
    const { commands = {}, queries = {} } = this.#parts.definition;
    return [commands, queries, this.schedules].some((all) => Object.keys(all).length > 0) || this.#steps.size > 0;
  }

  /** Loads the app's cells: from then on, plain reads find them. */
  load(): Promise<void> {
    return this.#parts.state.load(this.#parts.space);
  }

  /** Subscribes the handlers of events. */
  subscribe(wiring: Wiring): void {
    for (const [key, one] of Object.entries(this.#parts.definition.on ?? {})) this.#subscribe(key, one, wiring);
  }

  /** The function of a query, with its data checked; undefined if the app has none of that name. */
  query(type: string, data: Json): (() => unknown) | undefined {
    const queries = this.#parts.definition.queries ?? {};
    if (!Object.hasOwn(queries, type)) return undefined;
    const { schema, handler } = asDefinition(queries[type] as QueryDefinition);
    const read = readData(schema, data, `query ${type}`) as never;
    return () => synchronous(type, handler(read));
  }

  // The capability
  // -------------------------------------------------------------------------------------------------------------------

  capability(known: KnownCommands): Capability {
    const { name, definition, space, state } = this.#parts;
    const nameOf = (command: unknown) => known.names.get(command);
    this.#nameOf = nameOf;
    // The capability finds the topic of a type by itself.
    const scope: TxScope = { nameOf, topicOf: (type) => type };
    return transactional({
      space,
      description: definition.description ?? `the app ${name}`,
      emits: Object.fromEntries(state.events.map(({ name: event, schema }) => [event, schema ?? true])),
      sends: Object.fromEntries(known.types.map((type) => [type, "command"])),
      commands: this.#commands(scope),
      queries: this.#queries(),
    });
  }

  /** A capability for each worker thread, by the name of its file. Its handlers are in the thread. */
  workers(start: (url: URL) => CapabilityActor): Record<string, Capability> {
    const all = Object.entries(this.#parts.definition.commands ?? {});
    const byWorker = Map.groupBy(all, ([, one]) => (one instanceof WorkerDefinition ? one : undefined));
    const made: Record<string, Capability> = {};
    for (const [one, entries] of byWorker) {
      if (one === undefined) continue;
      const { url, stem } = one;
      const { timeout = HANDLER_TIMEOUT_MS, ...options } = one.options;
      const commands = Object.fromEntries(entries.map(([type]) => [type, { handle: handledInThread }]));
      const description = `a worker thread of the app ${this.name}`;
      let name = stem;
      for (let n = 2; name in made; n++) name = `${stem}-${n}`;
      made[name] = {
        ...capability({ description, ...options, timeoutMs: durationMs(timeout, "timeout"), commands }),
        spawn: () => start(url),
      };
    }
    return made;
  }

  #commands(scope: TxScope): Record<string, AnyRequestHandler<Tx>> {
    const { definition } = this.#parts;
    const all: Record<string, AnyRequestHandler<Tx>> = {};
    for (const [type, one] of Object.entries(definition.commands ?? {})) {
      if (one instanceof WorkerDefinition) continue;
      const { schema, handler, options } = one instanceof CommandDefinition ? one : { handler: one, options: {} };
      const { description, concurrency, timeout } = options;
      const handle = this.#withinTime(type, inTx(handler, scope), timeout);
      all[type] = {
        ...(description === undefined ? {} : { description }),
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(schema === undefined ? {} : { input: schema }),
        handle,
      };
    }
    for (const runs of this.#steps.values())
      for (const { type, handle } of runs.commands) all[type] = { handle: inTx(handle, scope) };
    for (const { key, type } of this.schedules) {
      const handler = definition.schedules?.[key]?.handler as OnFunction;
      all[type] = { description: `a slot of the schedule ${key}`, handle: inTx(handler, scope) };
    }
    return all;
  }

  #queries(): Record<string, AnyRequestHandler<CapabilityContext>> {
    const { definition, space } = this.#parts;
    const all = Object.entries(definition.queries ?? {}).map(([type, one]) => {
      const { schema, handler, options } = asDefinition(one);
      const { description } = options;
      const handle = (data: never) => space.scheduler.pullOnce(() => synchronous(type, handler(data)));
      const input = schema === undefined ? {} : { input: schema };
      return [type, { ...(description === undefined ? {} : { description }), ...input, handle }];
    });
    return Object.fromEntries(all);
  }

  /**
   * Fails with 504 when the time is over: the transaction is rolled back, and writes of the handler after that are
   * refused.
   */
  #withinTime(type: string, handle: TxHandler, timeout: Duration | undefined): TxHandler {
    if (timeout === undefined) return handle;
    const { host } = this.#parts;
    const timeoutMs = durationMs(timeout, "timeout");
    return (data, tx, message) => {
      const returned: unknown = handle(data, tx, message);
      if (!isThenable(returned)) return returned;
      const { promise: tooLate, reject } = Promise.withResolvers<never>();
      const timer = host.timer(timeoutMs, () =>
        reject(new Failure(504, `${type} was not handled within ${timeoutMs} ms`)),
      );
      return Promise.race([returned, tooLate]).finally(() => timer.cancel());
    };
  }

  /** `ShopOn.PaymentCommit`: commands that the kernel sends to the app. */
  #typeOf(part: string, key: string, step = ""): string {
    const words = this.name.split("-").map(capital).join("");
    return `${words}${part}.${capital(key)}${step}`;
  }

  // Events
  // -------------------------------------------------------------------------------------------------------------------

  #addSteps(key: string, { event, does, options }: OnDefinition): void {
    if (typeof does === "function") return;
    const host: Host = this.#parts.host;
    const types = { commit: this.#typeOf("On", key, "Commit"), failed: this.#typeOf("On", key, "Failed") };
    const { receipts } = this.#parts.space;
    const parts = { host, receipts, subscriberId: this.#subscriberOf(key), event, steps: does, types };
    this.#steps.set(
      key,
      new StepRuns({ ...parts, timeoutMs: durationMs(options.timeout ?? HANDLER_TIMEOUT_MS, "timeout") }),
    );
  }

  #subscriberOf(key: string): string {
    return `${this.name}.${key}`;
  }

  #subscribe(key: string, { event, does, options }: OnDefinition, { bus, topicOf, request, during }: Wiring): void {
    const topic = topicOf(event.name);
    const { retry, timeout, concurrency, failed } = options;
    const timeoutMs = durationMs(timeout ?? HANDLER_TIMEOUT_MS, "timeout");
    const given: Omit<SubscribeOptions, "onFailed"> = {
      subscriberId: this.#subscriberOf(key),
      ...(retry === undefined ? {} : { retry }),
      ...(concurrency === undefined ? {} : { concurrency }),
    };
    const runs = this.#steps.get(key);
    if (runs !== undefined) {
      // The commands after `run` have time limits of their own.
      const withCommands: SubscribeOptions = {
        ...given,
        timeoutMs: timeoutMs + 2 * HANDLER_TIMEOUT_MS,
        onFailed: (failure, _context, delivered) => tracked(during, runs.fail(delivered, failure, request)),
      };
      const run: Handler = (delivered, context) => tracked(during, runs.handle(delivered, context, request));
      return bus.subscribe(topic, run, withCommands);
    }
    const handler = does as OnFunction;
    const scope = { topicOf, nameOf: this.#nameOf };
    const handle: TransactionalHandler = (delivered, tx) =>
      tracked(during, handler(event.read(delivered.payload) as never, new HandlerTx(tx, scope)));
    const withSpace: TransactionalOptions = { ...given, timeoutMs, space: this.#parts.space };
    if (failed === undefined) return bus.subscribe(topic, handle, withSpace);
    const onFailed: TransactionalOptions["onFailed"] = (failure, tx, { payload }) => {
      if (!event.fits(payload)) return;
      return tracked(during, failed(stepFailure(failure), new HandlerTx(tx, scope), event.read(payload) as never));
    };
    bus.subscribe(topic, handle, { ...withSpace, onFailed });
  }
}

function handledInThread(): never {
  throw new Failure(500, "this command is handled by a worker thread");
}

function tracked(during: Wiring["during"], result: unknown): unknown {
  return during !== undefined && isThenable(result) ? during(async () => result) : result;
}

/** A handler of the capability that gives the app's function its own transaction. */
function inTx(handler: (data: never, tx: AppTx) => unknown, scope: TxScope): TxHandler {
  return (data: never, tx) => handler(data, new HandlerTx(tx, scope));
}

function asDefinition(
  one: QueryDefinition | QueryDefinition["handler"],
): Pick<QueryDefinition, "schema" | "handler" | "options"> {
  return one instanceof QueryDefinition ? one : { schema: undefined, handler: one, options: {} };
}

function synchronous(type: string, answer: unknown): unknown {
  if (!isThenable(answer)) return answer;
  Promise.resolve(answer).catch(() => undefined);
  throw new Failure(500, `query ${type} returns a promise; a query reads synchronously, so that it can be live`);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
