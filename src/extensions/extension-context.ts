/**
 * The one door from an extension to the kernel (ADR 004 §8). Two ways to hear of things, kept apart: `subscribeEvent`
 * is durable and comes from the journal, `subscribe` is a hook on the path of a user's message and lives in memory.
 * SPEC: X21-X30.
 *
 * Topics that the manifest does not declare are refused. After the extension failed, all calls are refused.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Event } from "../bus/event.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { HandlerContext } from "../bus/handler.ts";
import type { SubscribeOptions, TransactionalOptions } from "../bus/subscription.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, failureFrom } from "../message/error-data.ts";
import { DATA_LIMITS, findImpurity, type Json, type JsonObject } from "../message/json.ts";
import { commandMessage, eventMessage, type Lineage } from "../message/lineage.ts";
import { show } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import type { WorkSpace } from "../work/attempt.ts";
import { Tx } from "../work/tx.ts";
import type { Activity } from "./activity.ts";
import type { Cause } from "./cause.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import { EventHandling } from "./handling.ts";
import { type Log, type Logger, loggerFor } from "./logger.ts";
import { isSystemTopic, type Manifest } from "./manifest.ts";
import type { Hook, HookName, MessageRouter } from "./message-router.ts";
import { publishOnce } from "./publish-once.ts";

/** Options of an event that an extension emits. */
export interface EmitOptions {
  /** Names the conversation; none is invented. */
  readonly correlation?: string | undefined;
  /** The id of the message that caused it. */
  readonly causation?: string | undefined;
  /**
   * With a key it is published once, however often it is emitted: the event's id follows from extension, topic and key.
   */
  readonly key?: string | undefined;
}

/** The second argument of an event handler. */
export interface EventContext {
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  /** Fires when the handler has timed out, or when its result is no longer needed. */
  readonly signal: AbortSignal;
  /** Publishes a consequence: same correlation, caused by the event. */
  emit(topic: string, payload: Json): Promise<number>;
}

/** The context of a handler that was subscribed with a space. */
export type EventTx = Tx;

type EventWork = (eventMessage: Event, tx: EventTx) => unknown;

/** The handler of a subscription of an extension. */
export type EventHandler<Payload = Json> = (eventMessage: Event<Payload>, context: EventContext) => unknown;

/** Options of a command that an extension sends. */
export interface ExtensionCommandOptions {
  /** The command's id: sent again under it, it is the same command. */
  readonly id?: string | undefined;
  /** Names the command within its handler, in place of its type and data: the id follows from the event and this. */
  readonly key?: string | undefined;
}

/** Sends to the capabilities of the kernel, and waits for the answer. */
export interface Requests {
  command(type: string, data: Json, lineage?: Lineage): Promise<Json>;
  query(type: string, data: Json, lineage?: Lineage): Promise<Json>;
  /** The same with an id of the caller's own; resolves with the answer, also an error. */
  request(message: Message): Promise<Message>;
}

/** The extension that a context belongs to. */
export interface ContextOwner {
  readonly id: string;
  readonly manifest: Manifest | undefined;
  /** Topics that its own code handles. */
  readonly subscribed: Set<string>;
  /** Aborted when it has failed. */
  readonly ended: AbortController;
  readonly closed: boolean;
  readonly reason: string | undefined;
  /** Adds an undo function. */
  wired(undo: () => void): void;
}

export interface ContextParts {
  readonly host: Host;
  readonly bus: EventBus;
  readonly router: MessageRouter;
  readonly activity: Activity;
  readonly cause: Cause;
  readonly requests: Requests;
  readonly space: Space;
  readonly log: Log;
  /** A handler that runs longer has failed, unless its subscription says otherwise. */
  readonly handlerTimeoutMs: number;
  /** Where data folders are made. */
  readonly dataDir: string;
  /** The extension of that id, if it runs. */
  extension(id: string): object | undefined;
}

const OWNER_ONLY = 0o700;
const MEMBERS = [
  ...(["emit", "subscribeEvent", "subscribe", "unsubscribe", "onUserMessage", "notifyUser"] as const),
  ...(["invokeAgent", "command", "query", "getExtension"] as const),
];

/** The API that an extension gets: messages, state, tools, schedules and a log. */
export class ExtensionContext {
  readonly extensionId: string;
  readonly logger: Logger;
  readonly #record: ContextOwner;
  readonly #parts: ContextParts;

  constructor(record: ContextOwner, parts: ContextParts) {
    this.#record = record;
    this.#parts = parts;
    this.extensionId = record.id;
    this.logger = loggerFor(`ext.${record.id}`, parts.log);
    // Its members may be taken out: const { emit } = context.
    for (const name of MEMBERS) Object.defineProperty(this, name, { value: this[name].bind(this) });
  }

  /** The manifest's `config`. */
  get config(): JsonObject {
    return this.#record.manifest?.config ?? {};
  }

  /** Time and chance: with the kernel's host an extension can be simulated. */
  get host(): Host {
    return this.#parts.host;
  }

  /** The kernel's space: its cells, and transactions of handlers that are subscribed with it. */
  get space(): Space {
    return this.#parts.space;
  }

  /** Fires when the extension stops or fails. */
  get signal(): AbortSignal {
    return this.#record.ended.signal;
  }

  /** A folder of its own, made on use. */
  get dataDir(): string {
    const folder = join(this.#parts.dataDir, this.extensionId);
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
    return folder;
  }

  // Events, by the journal ------------------------------------------------------------------------------------------

  /**
   * Publishes an event; resolves with its journal id once it is durable. Calls no handler, and need not be waited for.
   */
  emit(topic: string, payload: Json, options: EmitOptions = {}): Promise<number> {
    return this.#forgettable(`${show(topic)} was not emitted`, this.#emit(topic, payload, options));
  }

  async #emit(topic: string, payload: Json, options: EmitOptions): Promise<number> {
    this.#requireOpen(`${topic} was not emitted`);
    this.#requirePublished(topic);
    const { bus, cause } = this.#parts;
    const { id, correlation: conversation } = cause.message?.metadata ?? {};
    const { key, correlation = conversation, causation = id } = options;
    const source = this.extensionId;
    if (key === undefined) return cause.outside(() => bus.publish(topic, source, payload, { correlation, causation }));
    const lineage = { ...(correlation === undefined ? {} : { correlation }), ...(causation ? { causation } : {}) };
    const message = this.#keyed(topic, payload, key, lineage);
    return cause.outside(() => publishOnce(bus, { message, topic, source }));
  }

  #keyed(topic: string, payload: Json, key: string, lineage: Lineage): Message {
    const id = contentId(["emit", this.extensionId, topic, key]);
    return eventMessage({ id: () => id, now: () => this.#parts.host.now() }, topicType(topic), payload, lineage);
  }

  /** Handles events with effect once: writes, events, receipt and delivery are one commit of the space. */
  subscribeEvent<Payload = Json>(
    topic: string,
    handler: (eventMessage: Event<Payload>, tx: EventTx) => unknown,
    options: Omit<TransactionalOptions, "subscriberId">,
  ): void;
  /**
   * Hears of events, at least once each; `event.id` tells repetitions. The manifest must declare the topic as `custom`.
   */
  subscribeEvent<Payload = Json>(
    topic: string,
    handler: EventHandler<Payload>,
    options?: Omit<SubscribeOptions, "subscriberId">,
  ): void;
  subscribeEvent(
    topic: string,
    handler: EventHandler<never> | ((eventMessage: Event<never>, tx: EventTx) => unknown),
    options: Omit<SubscribeOptions<never>, "subscriberId"> & { readonly space?: WorkSpace } = {},
  ): void {
    this.#requireRunning();
    const declared = this.#record.manifest?.subscribes.find((one) => one.topic === topic);
    if (declared?.handler !== "custom")
      throw new ExtensionError(
        "EXTENSION_TOPIC_UNDECLARED",
        `${this.extensionId} subscribes to ${show(topic)}, which its manifest does not declare; add it under events.subscribes with handler: custom`,
      );
    if (typeof handler !== "function")
      throw new ExtensionError("EXTENSION_MISUSE", "a handler is a function of the event");
    const { bus } = this.#parts;
    const { space, timeoutMs, timeout, onFailed, ...others } = options;
    const ofManifest = declared.retry === undefined ? {} : { retry: declared.retry };
    const rest = { ...ofManifest, ...others, subscriberId: this.extensionId };
    const limitMs = timeoutMs ?? timeout ?? this.#parts.handlerTimeoutMs;
    if (space === undefined) {
      const handle = (eventMessage: Event, context: HandlerContext) =>
        this.#handle(handler as EventHandler, eventMessage, { context, host: this.host, limitMs });
      // Its time is measured here, because waiting for the agent does not count.
      const failed = onFailed as SubscribeOptions["onFailed"];
      bus.subscribe(topic, handle, { ...rest, ...(failed ? { onFailed: failed } : {}), timeoutMs: TIMER_DELAY_MS_MAX });
    } else {
      const handle = (eventMessage: Event, tx: Tx) => this.#handleOnce(handler as EventWork, eventMessage, tx);
      const failed = onFailed as TransactionalOptions["onFailed"];
      bus.subscribe(topic, handle, { ...rest, ...(failed ? { onFailed: failed } : {}), timeoutMs: limitMs, space });
    }
    this.#record.subscribed.add(topic);
    this.#record.wired(() => bus.suspend(topic, this.extensionId));
  }

  async #handle(
    handler: EventHandler,
    eventMessage: Event,
    parts: { readonly context: HandlerContext; readonly host: Host; readonly limitMs: number },
  ): Promise<void> {
    const { context } = parts;
    this.#requireRunning();
    // It has stopped, and the kernel is about to: the event is neither done nor failed, and the next process finds it.
    if (this.#record.ended.signal.aborted) return new Promise(() => undefined);
    const emit = async (topic: string, payload: Json) => {
      this.#requirePublished(topic);
      return this.#parts.cause.outside(() => context.emit(topic, payload));
    };
    const given = {
      attempt: context.attempt,
      get signal() {
        return context.signal;
      },
      emit,
    };
    const { activity, cause } = this.#parts;
    const handling = new EventHandling(eventMessage.message, parts);
    await activity.during(() => cause.during(handling, () => handling.run(() => handler(eventMessage, given))));
  }

  async #handleOnce(handler: EventWork, eventMessage: Event, delivery: Tx): Promise<unknown> {
    this.#requireRunning();
    if (this.#record.ended.signal.aborted) return new Promise(() => undefined);
    const tx = Tx.restricted(delivery, ({ kind }, topic) => {
      if (kind === "event") this.#requirePublished(topic);
      return undefined;
    });
    const { activity, cause } = this.#parts;
    // The cause leaves the context of the caller, and with it that of the transaction.
    const handling = EventHandling.inTransaction(eventMessage.message, { delivery, host: this.host });
    return activity.during(async () => cause.during(handling, () => delivery.within(() => handler(eventMessage, tx))));
  }

  // The path of a user's message, in memory -------------------------------------------------------------------------

  subscribe(hook: HookName, handler: Hook): void {
    this.#requireRunning();
    this.#record.wired(this.#parts.router.subscribe(hook, this.extensionId, handler));
  }

  /** Says whether it was subscribed. */
  unsubscribe(hook: HookName, handler: Hook): boolean {
    return this.#parts.router.unsubscribe(hook, this.extensionId, handler);
  }

  /** For channels: a user has written. Resolves with the agent's answer, which the channel has been given by then. */
  async onUserMessage(userId: string, text: string, options: { readonly correlation?: string } = {}): Promise<string> {
    this.#requireRunning();
    if (typeof text !== "string" || typeof userId !== "string")
      throw new ExtensionError("EXTENSION_MISUSE", "onUserMessage takes the user's id and the text");
    return this.#parts.router.handleUserMessage({ userId, text, channelId: this.extensionId, ...options });
  }

  notifyUser(text: string, channelId?: string): Promise<void> {
    return this.#forgettable("the user was not told", this.#notify(text, channelId));
  }

  async #notify(text: string, channelId: string | undefined): Promise<void> {
    this.#requireOpen("the user was not told");
    await this.#parts.router.notifyUser(text, channelId);
  }

  /** Asks the agent; one question at a time is answered. Rejects if there is none, or if it fails. */
  async invokeAgent(prompt: string, options: { readonly correlation?: string | undefined } = {}): Promise<string> {
    this.#requireOpen("the agent was not asked");
    const { handling } = this.#parts.cause;
    if (handling === undefined) return this.#parts.router.invokeAgent(prompt, options);
    const begin = handling.hold();
    const { correlation } = handling.message.metadata;
    return this.#parts.router.invokeAgent(prompt, { correlation, ...options, signal: handling.signal, begin });
  }

  // Others ----------------------------------------------------------------------------------------------------------

  /**
   * Sends a command to the capability that handles it; an error answer is thrown as `Failure`. In a handler it is
   * caused by the event, and its id follows from the event: a handler that runs again repeats the command, and does not
   * send another.
   */
  async command(type: string, data: Json, options: ExtensionCommandOptions = {}): Promise<Json> {
    this.#requireOpen(`${type} was not sent`);
    const { requests, cause, host } = this.#parts;
    const { lineage, handling } = cause;
    const derived = isJson(data) ? handling?.commandId(this.extensionId, type, data, options.key) : undefined;
    const id = options.id ?? derived;
    if (handling === undefined && options.id === undefined && options.key !== undefined)
      throw new ExtensionError(
        "EXTENSION_MISUSE",
        "a command's key belongs to an event's handler; elsewhere give an id",
      );
    if (id === undefined) return cause.outside(() => requests.command(type, data, lineage));
    const message = commandMessage({ id: () => id, now: () => host.now() }, type, data, lineage);
    const answer = await cause.outside(() => requests.request(message));
    if (answer.kind === "reply") return answer.data;
    throw failureFrom(answer.data as ErrorData);
  }

  async query(type: string, data: Json): Promise<Json> {
    this.#requireRunning();
    const { requests, cause } = this.#parts;
    const { lineage } = cause;
    return cause.outside(() => requests.query(type, data, lineage));
  }

  /** Another extension, which the manifest names under `depends_on`. */
  getExtension<T extends object>(id: string): T {
    if (!this.#record.manifest?.dependsOn.includes(id))
      throw new ExtensionError(
        "EXTENSION_NOT_A_DEPENDENCY",
        `${this.extensionId} asks for ${show(id)}, which is not under depends_on in its manifest; add it`,
      );
    const extension = this.#parts.extension(id);
    if (extension === undefined) throw new ExtensionError("EXTENSION_STOPPED", `the extension ${id} does not run`);
    return extension as T;
  }

  /** Fire and forget (ADR 004 §8): a rejection must not end the process, and is logged. */
  #forgettable<T>(what: string, work: Promise<T>): Promise<T> {
    work.catch((thrown: unknown) => this.logger.warn(`${what}: ${extensionReason(thrown)}`));
    return work;
  }

  #requirePublished(topic: string): void {
    const { manifest } = this.#record;
    if (isSystemTopic(topic) || manifest?.publishes.some((one) => one.topic === topic)) return;
    throw new ExtensionError(
      "EXTENSION_TOPIC_UNDECLARED",
      `${this.extensionId} emits ${show(topic)}, which its manifest does not declare; add it under events.publishes`,
    );
  }

  /** Whether the extension runs, and the handler that calls has not timed out. */
  #requireOpen(what: string): void {
    this.#requireRunning();
    this.#parts.cause.handling?.requireOpen(what);
  }

  #requireRunning(): void {
    if (!this.#record.closed) return;
    throw new ExtensionError(
      "EXTENSION_STOPPED",
      `the extension ${this.extensionId} has stopped: ${this.#record.reason}`,
    );
  }
}

function isJson(data: unknown): boolean {
  return findImpurity(data, DATA_LIMITS) === undefined;
}
