/**
 * The one door from an extension to the kernel (ADR 004 §8). Two ways to hear of things, kept apart: `subscribeEvent` is durable and comes from
 * the journal, `subscribe` is a hook on the path of a user's message and lives in memory. SPEC: X21-X30.
 *
 * What the manifest does not declare cannot be emitted or subscribed to. When the extension has failed, nothing goes through.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Event } from "../bus/event.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { DeliveryTx, HandlerContext } from "../bus/handler.ts";
import type { SubscribeOptions, WorkOptions } from "../bus/subscription.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, Failure } from "../message/error-data.ts";
import { DATA_LIMITS, findImpurity, type Json, type JsonObject } from "../message/json.ts";
import { command, event, type Lineage } from "../message/lineage.ts";
import { show } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import type { WorkSpace } from "../work/attempt.ts";
import type { Activity } from "./activity.ts";
import type { Cause } from "./cause.ts";
import { ExtensionError, reasonOf } from "./extension-error.ts";
import type { ExtensionRecord } from "./extension-record.ts";
import { type Log, type Logger, loggerFor } from "./logger.ts";
import type { Hook, HookName, MessageRouter } from "./message-router.ts";
import { publishOnce } from "./publish-once.ts";
import { isSystemTopic } from "./system-topics.ts";

export interface EmitOptions {
  /** Names the conversation; none is invented. */
  readonly correlation?: string | undefined;
  /** The id of the message that caused it. */
  readonly causation?: string | undefined;
  /** With a key it is published once, however often it is emitted: the event's id follows from extension, topic and key. */
  readonly key?: string | undefined;
}

/** What a handler of events is given beside its event. */
export interface EventContext {
  /** Counts the tries of this delivery from 1. */
  readonly attempt: number;
  /** Fires when the handler has timed out, and when nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** Publishes a consequence: same correlation, caused by the event. */
  emit(topic: string, payload: Json): Promise<number>;
}

/** The context of a handler that was subscribed with a space. */
export type EventTx = Pick<
  DeliveryTx,
  "get" | "set" | "update" | "delete" | "push" | "splice" | "emit" | "within" | "newId" | "attempt" | "signal"
>;

type EventWork = (event: Event, tx: EventTx) => unknown;

export type EventHandler<Payload = Json> = (event: Event<Payload>, context: EventContext) => unknown;

/** Sends to the capabilities of the kernel, and waits for the answer. */
export interface Requests {
  command(type: string, data: Json, lineage?: Lineage): Promise<Json>;
  query(type: string, data: Json, lineage?: Lineage): Promise<Json>;
  /** The same with an id of the caller's own; resolves with the answer, also an error. */
  request(message: Message): Promise<Message>;
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
  /** Where data folders are made. */
  readonly dataDir: string;
  /** The extension of that id, if it runs. */
  extension(id: string): object | undefined;
}

const OWNER_ONLY = 0o700;

export class ExtensionContext {
  readonly extensionId: string;
  readonly logger: Logger;
  readonly #record: ExtensionRecord;
  readonly #parts: ContextParts;

  constructor(record: ExtensionRecord, parts: ContextParts) {
    this.#record = record;
    this.#parts = parts;
    this.extensionId = record.id;
    this.logger = loggerFor(`ext.${record.id}`, parts.log);
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

  // Events, by the journal -------------------------------------------------------------------------------------------------

  /** Publishes an event; resolves with its journal id once it is durable. Calls no handler, and need not be waited for. */
  emit(topic: string, payload: Json, options: EmitOptions = {}): Promise<number> {
    return this.#forgettable(`${show(topic)} was not emitted`, this.#emit(topic, payload, options));
  }

  async #emit(topic: string, payload: Json, options: EmitOptions): Promise<number> {
    this.#requireRunning();
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
    return event({ id: () => id, now: () => this.#parts.host.now() }, topicType(topic), payload, lineage);
  }

  /** Handles events with effect once: writes, events, receipt and delivery are one commit of the space. */
  subscribeEvent<Payload = Json>(
    topic: string,
    handler: (event: Event<Payload>, tx: EventTx) => unknown,
    options: Omit<WorkOptions, "subscriberId">,
  ): void;
  /** Hears of events, at least once each; `event.id` tells repetitions. The manifest must declare the topic as `custom`. */
  subscribeEvent<Payload = Json>(
    topic: string,
    handler: EventHandler<Payload>,
    options?: Omit<SubscribeOptions, "subscriberId">,
  ): void;
  subscribeEvent(
    topic: string,
    handler: EventHandler<never> | ((event: Event<never>, tx: EventTx) => unknown),
    options: Omit<SubscribeOptions, "subscriberId"> & { readonly space?: WorkSpace } = {},
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
    const { space, ...rest } = options;
    const subscriberId = this.extensionId;
    if (space === undefined) {
      const handle = (event: Event, context: HandlerContext) => this.#handle(handler as EventHandler, event, context);
      bus.subscribe(topic, handle, { ...rest, subscriberId });
    } else {
      const handle = (event: Event, tx: DeliveryTx) => this.#handleOnce(handler as EventWork, event, tx);
      bus.subscribe(topic, handle, { ...rest, subscriberId, space });
    }
    this.#record.subscribed.add(topic);
    this.#record.wired(() => bus.suspend(topic, this.extensionId));
  }

  async #handle(handler: EventHandler, event: Event, context: HandlerContext): Promise<void> {
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
    await activity.during(async () => cause.during(event.message, () => handler(event, given)));
  }

  async #handleOnce(handler: EventWork, event: Event, delivery: DeliveryTx): Promise<unknown> {
    this.#requireRunning();
    if (this.#record.ended.signal.aborted) return new Promise(() => undefined);
    const { get, set, update, delete: remove, push, splice, within, newId, attempt } = delivery;
    const emit = (topic: string, payload: Json) => {
      this.#requirePublished(topic);
      delivery.emit(topic, payload);
    };
    const tx: EventTx = {
      ...{ get, set, update, delete: remove, push, splice, within, newId, attempt, emit },
      get signal() {
        return delivery.signal;
      },
    };
    const { activity, cause } = this.#parts;
    // The cause leaves the context of the caller, and with it that of the transaction.
    return activity.during(async () => cause.during(event.message, () => delivery.within(() => handler(event, tx))));
  }

  // The path of a user's message, in memory -----------------------------------------------------------------------------------

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
    this.#requireRunning();
    await this.#parts.router.notifyUser(text, channelId);
  }

  /** Asks the agent; one question at a time is answered. What goes wrong is an answer in brackets. */
  async invokeAgent(prompt: string, options: { readonly correlation?: string | undefined } = {}): Promise<string> {
    this.#requireRunning();
    return this.#parts.router.invokeAgent(prompt, options);
  }

  // Others ---------------------------------------------------------------------------------------------------------------------

  /**
   * Sends a command to its capability; an error answer is thrown as `Failure`. In a handler it is caused by the event, and its id follows from the
   * event's: a handler that is delivered again sends the same command, which a transactional capability answers from its receipt.
   */
  async command(type: string, data: Json): Promise<Json> {
    this.#requireRunning();
    const { requests, cause, host } = this.#parts;
    const { lineage } = cause;
    const id = isJson(data) ? cause.requestId(this.extensionId, type, data) : undefined;
    if (id === undefined) return cause.outside(() => requests.command(type, data, lineage));
    const message = command({ id: () => id, now: () => host.now() }, type, data, lineage);
    const answer = await cause.outside(() => requests.request(message));
    if (answer.kind === "reply") return answer.data;
    const { code, message: text } = answer.data as ErrorData;
    throw new Failure(code, text);
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

  /** Fire and forget (ADR 004 §8): that nobody waits for it must not end the process, nor be silent. */
  #forgettable<T>(what: string, work: Promise<T>): Promise<T> {
    work.catch((thrown: unknown) => this.logger.warn(`${what}: ${reasonOf(thrown)}`));
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
