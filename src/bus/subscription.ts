/**
 * One subscription: its subscriber, topics, handler and running calls. Kept in memory only:
 * subscriptions are code and are made again at every start (ADR 004 §4). SPEC: J42-J44.
 */
import { SUBSCRIBER_ID_LENGTH_MAX, SUBSCRIPTION_LINE_MAX } from "../limits.ts";
import { isCleanText } from "../message/json.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { checkTopicPattern } from "../message/topic-pattern.ts";
import { type Consumer, deliveryName } from "../store/consumer.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt, AttemptKind, WorkSpace } from "../work/attempt.ts";
import {
  type HandlerFailure,
  type HandlerOptions,
  handlerOptionsProblem,
  KNOWN_HANDLER_OPTIONS,
} from "../work/handler-options.ts";
import { type RetryPolicy, retryPolicyOf } from "../work/retry-policy.ts";
import type { Tx } from "../work/tx.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { BusError } from "./bus-error.ts";
import type { Event } from "./event.ts";
import type { Handler, HandlerContext } from "./handler.ts";
import { WaitingBound } from "./waiting-bound.ts";

/**
 * `concurrency`: events that this subscription handles at once, 10 unless given. `serialBy`: events with the same key
 * are handled one after the other, in the order of the journal.
 */
export interface SubscribeOptions<Context = HandlerContext> extends HandlerOptions<[event: Event], Context, Event> {
  /**
   * The subscriber: names the subscription for `unsubscribe`, in the journal's deliveries and in receipts. Keep it
   * stable.
   */
  readonly subscriberId: string;
  /** The same as `timeoutMs`. */
  readonly timeout?: number;
  /** False: it hears events only while it is subscribed; no event waits for it. True unless given. */
  readonly durable?: boolean;
}

/** Options of a subscription whose handler is a transaction. */
export interface TransactionalOptions extends SubscribeOptions<Tx> {
  /** The space that the handler's transaction is of: its writes, events, receipt and delivery commit together. */
  readonly space: WorkSpace;
}

const KNOWN: Readonly<Record<keyof TransactionalOptions, true>> = {
  ...KNOWN_HANDLER_OPTIONS,
  ...{ subscriberId: true, timeout: true, durable: true, space: true },
};

/** Throws for an option of `subscribe` that is not known. */
export function requireSubscribeOptions(options: SubscribeOptions<never>): void {
  const problem = unknownOption(options, KNOWN);
  if (problem !== undefined) throw new BusError("BUS_MISUSE", `subscribe: ${problem}`);
}

/** A subscription, as tools see it. */
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
  readonly replica: Replica;
  readonly attempts: AttemptKind;
  readonly handle: WorkCall;
  /** Calls its `onFailed`, if it has one. */
  readonly failed: FailedCall | undefined;
}

/** Calls a handler, or passes the event to an actor and resolves with the result of the actor's handler. */
export type WorkCall = (event: Event, attempt: Attempt) => unknown;

/** Calls `onFailed` of a handler as part of an attempt. */
export type FailedCall = (failure: HandlerFailure, event: Event, attempt: Attempt) => unknown;

export interface RelayOptions extends Omit<TransactionalOptions, "onFailed"> {
  readonly failed?: FailedCall | undefined;
  readonly clearance: readonly string[] | undefined;
}

export type Call = { readonly kind: "plain"; readonly handler: Handler } | TransactionalCall;

/** Given the context of the handler. */
export type OnFailed = (failure: HandlerFailure, context: never, event: Event) => unknown;

/** Of the bus: for subscriptions that do not say otherwise. */
export interface SubscriptionDefaults {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly board: WorkBoard | undefined;
}

export class Subscription {
  readonly pattern: string;
  readonly subscriberId: string;
  readonly call: Call;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  /**
   * Lists the running handlers of this subscription. Absent from a relay: the actor's own handler is listed instead.
   */
  readonly board: WorkBoard | undefined;
  readonly serialBy: ((event: Event) => string) | undefined;
  readonly onFailed: OnFailed | undefined;
  /** Whether code is called after its last failure. */
  readonly handlesFailures: boolean;
  readonly concurrency: number;
  /** Whether it is a consumer of the store's table. */
  readonly durable: boolean;
  /** False once unsubscribed: events that were matched before go back to the journal when they come to it. */
  active = true;
  /** Handlers of this subscription that run now. At most `concurrency`. */
  running = 0;
  /** How many events may wait in its line (`slots.ts`): the others stay in the journal. */
  readonly lineBound: WaitingBound;
  /** Topics of which events were given back because the line was full. None is claimed until the line is half empty. */
  readonly fullTopics = new Set<string>();

  constructor(pattern: string, call: Call, options: SubscribeOptions<never>, defaults: SubscriptionDefaults) {
    checkTopicPattern(pattern);
    checkOptions(options);
    this.pattern = pattern;
    this.subscriberId = options.subscriberId;
    this.call = call;
    this.retry = retryPolicyOf(options.retry);
    this.timeoutMs = options.timeoutMs ?? options.timeout ?? defaults.timeoutMs;
    this.board = defaults.board;
    this.serialBy = options.serialBy;
    this.onFailed = options.onFailed;
    this.handlesFailures =
      options.onFailed !== undefined || (call.kind === "transactional" && call.failed !== undefined);
    this.concurrency = options.concurrency ?? defaults.concurrency;
    this.lineBound = new WaitingBound(this.concurrency, SUBSCRIPTION_LINE_MAX);
    this.durable = options.durable ?? true;
  }

  /** How the journal names its delivery of an event. */
  get name(): string {
    return deliveryName(this.consumer);
  }

  get consumer(): Consumer {
    return { name: this.subscriberId, pattern: this.pattern };
  }

  view(waiting: number): SubscriptionView {
    const { pattern, subscriberId, running } = this;
    const { attempts } = this.retry;
    return { pattern, subscriberId, handling: this.call.kind, attempts, serial: !!this.serialBy, running, waiting };
  }
}

/** A consumer to declare; throws for a pattern or name that `subscribe` refuses. */
export function checkedConsumer(pattern: string, subscriberId: string): Consumer {
  checkTopicPattern(pattern);
  checkOptions({ subscriberId });
  return { name: subscriberId, pattern };
}

function checkOptions(options: SubscribeOptions<never>): void {
  const { subscriberId, timeout, timeoutMs = timeout, durable = true } = options;
  if (typeof durable !== "boolean") throw misuse(`durable is true or false, got ${show(durable)}`);
  if (!isSubscriberId(subscriberId)) {
    throw misuse(
      `subscriberId names the subscriber: 1 to ${SUBSCRIBER_ID_LENGTH_MAX} characters without blanks, got ${show(subscriberId)}`,
    );
  }
  const problem = handlerOptionsProblem({ ...options, timeoutMs });
  if (problem !== undefined) throw misuse(problem);
}

function isSubscriberId(id: unknown): boolean {
  if (typeof id !== "string" || id.length === 0 || id.length > SUBSCRIBER_ID_LENGTH_MAX) return false;
  return isCleanText(id) && !/\s/.test(id);
}

function misuse(message: string): BusError {
  return new BusError("BUS_MISUSE", message);
}
