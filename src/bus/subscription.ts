/**
 * One subscription: who wants which topics, how its handler is called, and how many calls are under way. Kept in memory only:
 * subscriptions are code and are made again at every start (ADR 004 §4). SPEC: J42-J44.
 */
import { DISPATCH_CONCURRENCY_MAX, SUBSCRIBER_ID_LENGTH_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { isCleanText } from "../message/json.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { checkTopicPattern } from "../message/topic-pattern.ts";
import { type Consumer, deliveryName } from "../store/consumer.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt, AttemptKind, WorkSpace } from "../work/attempt.ts";
import type { Outbox, OutboxRules } from "../work/outbox.ts";
import type { Tx } from "../work/tx.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { BusError } from "./bus-error.ts";
import type { Event } from "./event.ts";
import type { EventRun } from "./event-run.ts";
import type { Handler, TransactionalHandler, WorkHandler } from "./handler.ts";
import { checkRetryPolicy, NO_RETRY, type RetryPolicy } from "./retry-policy.ts";

export interface SubscribeOptions {
  /** Who handles: names the subscription for `unsubscribe`, in the journal's deliveries and in receipts. Keep it stable. */
  readonly subscriberId: string;
  /** How often a failed delivery is tried; once unless given. */
  readonly retry?: RetryPolicy;
  /** A handler that takes longer counts as failed; `timeout`, in milliseconds too, means the same. */
  readonly timeoutMs?: number;
  readonly timeout?: number;
  /** Events for which this gives the same text are handled one after the other, in the order of the journal. */
  readonly serialBy?: (event: Event) => string;
  /** False: it hears events only while it is subscribed; no event waits for it. True unless given. */
  readonly durable?: boolean;
  /** How many events this subscription handles at once, within the bus's own bound. */
  readonly concurrency?: number;
}

export interface TransactionalOptions extends SubscribeOptions {
  /** The space that the handler's transaction writes to: its writes, emits, receipt and delivery commit together. */
  readonly space: Replica;
}

export interface WorkOptions extends SubscribeOptions {
  /** The space that the handler's transaction is of: its writes, events, receipt and delivery commit together. */
  readonly space: WorkSpace;
}

const KNOWN: Readonly<Record<keyof TransactionalOptions, true>> = {
  ...{ subscriberId: true, retry: true, timeoutMs: true, timeout: true, serialBy: true, durable: true },
  ...{ concurrency: true, space: true },
};

/** Throws for an option of `subscribe` that is not known. */
export function requireSubscribeOptions(options: SubscribeOptions): void {
  const problem = unknownOption(options, KNOWN);
  if (problem !== undefined) throw new BusError("BUS_MISUSE", `subscribe: ${problem}`);
}

/** A subscription as somebody sees it who looks into the bus. */
export interface SubscriptionView {
  /** The topic or pattern. */
  readonly pattern: string;
  readonly subscriberId: string;
  readonly handling: Call["kind"];
  /** How often a delivery is tried. */
  readonly attempts: number;
  /** Whether its events are handled in order, key by key. */
  readonly serial: boolean;
  /** Handlers that run now. */
  readonly running: number;
  /** Events that have come to it while it was busy. */
  readonly waiting: number;
}

export interface TransactionalCall {
  readonly kind: "transactional";
  readonly handler: TransactionalHandler | WorkHandler | RelayedWork;
  readonly replica: Replica;
  /** Of a handler that was subscribed with an open space. */
  readonly work?: HandlerWork | undefined;
}

/** Attempts of a handler, and the messages that it sends. */
export interface HandlerWork {
  readonly attempts: AttemptKind;
  readonly outbox: Outbox;
  /** Of an actor: passes the event on. */
  readonly relayed?: RelayedWork;
}

/** Passes an event to an actor, and resolves with the result of the actor's handler. */
export type RelayedWork = (event: Event, tx: Tx, attempt: Attempt) => Promise<unknown>;

export interface RelayOptions {
  readonly subscriberId: string;
  readonly space: WorkSpace;
  readonly clearance: readonly string[] | undefined;
  readonly rules: OutboxRules;
}

export type Call = { readonly kind: "plain"; readonly handler: Handler } | TransactionalCall;

export class Subscription {
  readonly pattern: string;
  readonly subscriberId: string;
  readonly call: Call;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  /** Lists the running handlers of this subscription. Absent from a relay: the actor's own handler is listed instead. */
  readonly board: WorkBoard | undefined;
  readonly serialBy: ((event: Event) => string) | undefined;
  readonly concurrency: number;
  /** Whether it is a consumer of the store's table. */
  readonly durable: boolean;
  /** False once unsubscribed: events that were matched before go back to the journal when they come to it. */
  active = true;
  /** Handlers of this subscription that run now. At most `concurrency`. */
  running = 0;
  /**
   * Runs that have come to this subscription while it was busy, first come first (`slots.ts`). Those that are no longer `at-slot` were taken
   * back or lost meanwhile, and are passed over.
   */
  readonly waiting: EventRun[] = [];

  constructor(pattern: string, call: Call, options: SubscribeOptions, timeoutMs: number, board?: WorkBoard) {
    checkTopicPattern(pattern);
    checkOptions(options);
    this.pattern = pattern;
    this.subscriberId = options.subscriberId;
    this.call = call;
    this.retry = options.retry ?? NO_RETRY;
    this.timeoutMs = options.timeoutMs ?? options.timeout ?? timeoutMs;
    this.board = board;
    this.serialBy = options.serialBy;
    this.concurrency = options.concurrency ?? Number.POSITIVE_INFINITY;
    this.durable = options.durable ?? true;
  }

  /** How the journal names its delivery of an event. */
  get name(): string {
    return deliveryName(this.consumer);
  }

  get consumer(): Consumer {
    return { name: this.subscriberId, pattern: this.pattern };
  }

  get view(): SubscriptionView {
    const { pattern, subscriberId, running } = this;
    const { attempts } = this.retry;
    const waiting = this.waiting.filter(({ state }) => state === "at-slot").length;
    return { pattern, subscriberId, handling: this.call.kind, attempts, serial: !!this.serialBy, running, waiting };
  }
}

/** A consumer to declare; throws for what could not be subscribed. */
export function checkedConsumer(pattern: string, subscriberId: string): Consumer {
  checkTopicPattern(pattern);
  checkOptions({ subscriberId });
  return { name: subscriberId, pattern };
}

function checkOptions(options: SubscribeOptions): void {
  const { subscriberId, retry, timeout, timeoutMs = timeout, serialBy, concurrency, durable = true } = options;
  if (typeof durable !== "boolean") throw misuse(`durable is true or false, got ${show(durable)}`);
  if (!isSubscriberId(subscriberId)) {
    throw misuse(
      `subscriberId names who handles: 1 to ${SUBSCRIBER_ID_LENGTH_MAX} characters without blanks, got ${show(subscriberId)}`,
    );
  }
  if (retry !== undefined) checkRetryPolicy(retry);
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= TIMER_DELAY_MS_MAX)) {
    throw misuse(`timeoutMs must be more than 0 and at most 100 years, got ${show(timeoutMs)}`);
  }
  if (serialBy !== undefined && typeof serialBy !== "function")
    throw misuse("serialBy must be a function of the event");
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 1)) {
    throw misuse(
      `concurrency must be a whole number of at least 1 (the bus as a whole runs ${DISPATCH_CONCURRENCY_MAX} unless told), got ${show(concurrency)}`,
    );
  }
}

function isSubscriberId(id: unknown): boolean {
  if (typeof id !== "string" || id.length === 0 || id.length > SUBSCRIBER_ID_LENGTH_MAX) return false;
  return isCleanText(id) && !/\s/.test(id);
}

function misuse(message: string): BusError {
  return new BusError("BUS_MISUSE", message);
}
