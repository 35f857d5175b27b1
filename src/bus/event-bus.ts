/**
 * The event bus (ADR 004): publish, subscribe, dispatch, retry, retention over the store's journal. The journal is
 * queue and audit log at once; this class composes the parts of this room and holds no state of its own but its life.
 * SPEC: J40-J80.
 *
 *     const bus = new EventBus({ store });
 *     await bus.recover();
 *     bus.subscribe("email.received", (event) => index(event.payload), { subscriberId: "indexer" });
 *     await bus.start();
 *     await bus.publish("email.received", "mail", { from: "ada@example.org" });
 *
 * Order at startup: open, recover, wire all subscriptions, then start. An event without a subscriber is done, and that
 * is known only once the wiring is complete.
 */
import { guarded } from "../host/hook.ts";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import {
  DISPATCH_CONCURRENCY_MAX,
  HANDLER_TIMEOUT_MS,
  LEASE_MS,
  STOP_GRACE_MS,
  TIMER_DELAY_MS_MAX,
} from "../limits.ts";
import { whenItStands } from "../message/dropped.ts";
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import { isWildcard } from "../message/topic-pattern.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { DeclaredConsumer } from "../store/consumer.ts";
import type { JournalEntry, JournalQuery, JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import type { WorkSpace } from "../work/attempt.ts";
import { Outbox, type Requester } from "../work/outbox.ts";
import { Tx } from "../work/tx.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { type Failures, failures, type Trace, trace } from "./audit.ts";
import { BusError } from "./bus-error.ts";
import { Claimer } from "./claimer.ts";
import { type RemovedConsumer, removeConsumers } from "./consumer-removal.ts";
import { Consumers } from "./consumers.ts";
import { Deliverer } from "./delivery.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { Handler, TransactionalHandler } from "./handler.ts";
import { watchedHandler } from "./handler.ts";
import type { HandlingRing } from "./handling-ring.ts";
import { HeldEvents } from "./held-events.ts";
import { JournalFeed } from "./journal-feed.ts";
import { JournalSignal } from "./journal-signal.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { BusObserver } from "./observation.ts";
import { type Publication, Publisher, type PublishOptions } from "./publisher.ts";
import { type RequeueOptions, type RequeueQuery, requeueFor, requeueWhere } from "./requeue.ts";
import { RetentionKeeper, type RetentionPolicy } from "./retention.ts";
import { RedeliveryTimer } from "./retry-timer.ts";
import { SerialOrder } from "./serial-order.ts";
import { SettleQueue } from "./settle-queue.ts";
import { Slots } from "./slots.ts";
import {
  type Call,
  checkedConsumer,
  type RelayOptions,
  requireSubscribeOptions,
  type SubscribeOptions,
  Subscription,
  type SubscriptionDefaults,
  type SubscriptionView,
  type TransactionalOptions,
  type WorkCall,
} from "./subscription.ts";
import { Subscriptions } from "./subscriptions.ts";
import { type TailedRow, type TailOptions, tail } from "./tail.ts";
import { TopicMatches } from "./topic-match.ts";
import { Topics } from "./topics.ts";
import { TransactionalShare } from "./transactional-share.ts";

/** The store of a bus, its limits and its defaults for subscriptions. */
export interface EventBusOptions {
  readonly store: Store;
  /** Time and chance; those of the process unless given. */
  readonly host?: Host;
  /**
   * Handlers of one subscription that run at once in this process, 10 unless given, or unless the subscription says
   * otherwise.
   */
  readonly concurrency?: number;
  /** After this long without a sign of life, this process's events are taken over by others. */
  readonly leaseMs?: number;
  /** A handler that runs longer has failed, unless its subscription says otherwise. */
  readonly handlerTimeoutMs?: number;
  /** Which settled events are removed; none unless given. */
  readonly retention?: RetentionPolicy;
  /** Remembers the last handlings of events. */
  readonly handlings?: HandlingRing;
  /** Lists the handlers that run. */
  readonly board?: WorkBoard;
  /** Told of errors and losses, for logs and metrics. */
  readonly observe?: BusObserver;
  /**
   * Which messages of the journal it deals in: events unless given. The commands that a loop has kept are another
   * bus's.
   */
  readonly kind?: "event" | "command";
}

/** Options of `bus.stop`. */
export interface StopOptions {
  /** How long to wait for handlers that run; Infinity for as long as they take. */
  readonly graceMs?: number;
}

/**
 * Payloads by topic, where an application wants them checked by the compiler; any JSON under any topic unless given.
 */
export type AnyTopics = { readonly [topic: string]: Json };

type TopicOf<Topics> = keyof Topics & string;

/** Publishes events to the journal, and delivers them to subscribers with retries. */
export class EventBus<TopicMap extends object = AnyTopics> implements AsyncDisposable {
  readonly #host: Host;
  readonly #store: Store;
  readonly #defaults: SubscriptionDefaults;
  readonly #handlings: HandlingRing | undefined;
  readonly #topics = new Topics();
  readonly #subscriptions = new Subscriptions();
  /** Tells whether the state lasts that the observer which publishes now has read; a kernel asks its space. */
  standing: (() => Promise<boolean> | undefined) | undefined;
  /** Asks for handlers with a `Tx`; a kernel sets it. */
  requester: Requester | undefined;
  readonly #consumers: Consumers;
  readonly #publisher: Publisher;
  readonly #held: HeldEvents;
  readonly #serial: SerialOrder;
  readonly #slots: Slots;
  readonly #dispatcher: Dispatcher;
  readonly #retention: RetentionKeeper;
  readonly #signal: JournalSignal;
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: EventBusOptions) {
    const { store, host = systemHost(), concurrency = DISPATCH_CONCURRENCY_MAX, leaseMs = LEASE_MS } = options;
    const { handlerTimeoutMs = HANDLER_TIMEOUT_MS, kind = "event" } = options;
    requirePositive("concurrency", concurrency);
    requireTime("leaseMs", leaseMs);
    requireTime("handlerTimeoutMs", handlerTimeoutMs);
    this.#defaults = { timeoutMs: handlerTimeoutMs, concurrency, board: options.board };
    this.#handlings = options.handlings;
    const observe = guarded(host, options.observe ?? (() => undefined));
    const subscriptions = this.#subscriptions;
    this.#host = host;
    this.#store = store;
    const signal = new JournalSignal(store);
    this.#signal = signal;
    const consumers = new Consumers({ kind, host, store, subscriptions, observe });
    this.#consumers = consumers;
    const matches = new TopicMatches({ subscriptions, consumers });
    const lease = new LeaseKeeper({ host, store, leaseMs, observe, consumers });
    const retries = new RedeliveryTimer({ host, store, observe });
    const serial = new SerialOrder({ host, store, subscriptions, observe });
    const held = new HeldEvents({ host, serial, concurrency });
    const slots = new Slots({ host, held, concurrency });
    const publisher = new Publisher({ kind, host, store, topics: this.#topics, held, lease, matches, signal });
    const settles = new SettleQueue({ host, store, held, retries, publisher, matches, observe });
    const shares = new TransactionalShare({ host, publisher, slots, lease, matches });
    const delivery = new Deliverer({ host, store, held, slots, serial, settles, shares, publisher, retries, observe });
    const claimer = new Claimer({ kind, host, store, lease, held, publisher, matches, consumers, observe });
    const dispatched = { host, store, lease, held, slots, serial, settles, retries, claimer, consumers };
    this.#dispatcher = new Dispatcher({ ...dispatched, delivery, observe });
    this.#publisher = publisher;
    this.#held = held;
    this.#serial = serial;
    this.#slots = slots;
    this.#retention = new RetentionKeeper({ host, store, policy: options.retention, observe });
  }

  // Publishing -------------------------------------------------------------------------------------------------------

  /** Writes an event to the journal. Resolves with its id once it is durable; calls no handler. */
  publish<Topic extends TopicOf<TopicMap>>(
    topic: Topic,
    source: string,
    payload: TopicMap[Topic],
    options: PublishOptions = {},
  ): Promise<number> {
    // Not an async function: its promise around the publisher's would cost a lone event three more promise jobs.
    if (this.#isClosed) return Promise.reject(stoppedError());
    const { signal, correlation, causation } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const publication = { topic, source, payload, correlation, causation };
    const standing = this.standing?.();
    if (standing === undefined) return this.#publisher.publish(publication, undefined, signal);
    return whenItStands(standing, () => this.#publisher.publish(publication, undefined, signal));
  }

  /** Writes events in order, all or none. Resolves with their ids once they are durable. */
  async publishMany(publications: readonly Publication[]): Promise<readonly number[]> {
    this.#requireOpen();
    const given = [...publications];
    if (given.length === 0) return [];
    return whenItStands(this.standing?.(), () => this.#publisher.publishMany(given));
  }

  /**
   * Writes an event that is a message already, under its type unless another topic is given. Repeating it is harmless.
   */
  async publishMessage(message: Message, source: string, topic: string = message.type): Promise<number> {
    this.#requireOpen();
    return whenItStands(this.standing?.(), () => this.#publisher.publishMessage(message, topic, source));
  }

  /**
   * Writes a command for the subscriber to its type. Gives its row where it was there already, and undefined where it
   * is new.
   */
  async keep(command: Message, source: string): Promise<JournalRow | undefined> {
    this.#requireOpen();
    const { id, isNew } = await this.#publisher.keep(command, source);
    return isNew ? undefined : (await this.#store.query({ id, limit: 1 }))[0];
  }

  /**
   * Runs `commit`, which appends `entries`. Events that fit the local queue are claimed in it, and handled here as soon
   * as it is durable, without being read back.
   */
  commitWith(entries: JournalEntry[], commit: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
    return this.#publisher.send(entries, commit);
  }

  // Subscribing ------------------------------------------------------------------------------------------------------

  /**
   * Registers a handler with a transaction: writes, events, receipt and delivery are one commit. Its effect happens
   * once.
   */
  subscribe<Topic extends TopicOf<TopicMap>>(
    topic: Topic,
    handler: TransactionalHandler<TopicMap[Topic]>,
    options: TransactionalOptions,
  ): void;
  /** Registers a handler for a topic. It is called at least once for every event; `event.id` tells repetitions. */
  subscribe<Topic extends TopicOf<TopicMap>>(
    topic: Topic,
    handler: Handler<TopicMap[Topic]>,
    options: SubscribeOptions,
  ): void;
  /** Registers a handler for all topics of a pattern, such as `email.*`. */
  subscribe(
    pattern: `${string}*${string}`,
    handler: TransactionalHandler<TopicMap[TopicOf<TopicMap>]>,
    options: TransactionalOptions,
  ): void;
  subscribe(
    pattern: `${string}*${string}`,
    handler: Handler<TopicMap[TopicOf<TopicMap>]>,
    options: SubscribeOptions,
  ): void;
  subscribe(
    pattern: string,
    handler: Handler<never> | TransactionalHandler<never>,
    options: SubscribeOptions | TransactionalOptions,
  ): void {
    this.#requireOpen();
    if (typeof handler !== "function") throw misuse(`a handler is a function of the event, got ${show(handler)}`);
    if (typeof options !== "object" || options === null)
      throw misuse('subscribe takes options that name the subscriber, like { subscriberId: "indexer" }');
    requireSubscribeOptions(options);
    const call = callOf(this.#watched(handler, options.subscriberId), options, (space) =>
      this.#outbox(options.subscriberId, space),
    );
    this.#add(new Subscription(pattern, call, options, this.#defaults));
  }

  /** Subscribes an actor. `deliver` passes the event on, and resolves when the actor's handler has ended. */
  relay(pattern: string, deliver: Handler, options: SubscribeOptions): void {
    this.#requireOpen();
    const call: Call = { kind: "plain", handler: this.#watched(deliver, options.subscriberId) };
    this.#add(new Subscription(pattern, call, options, { ...this.#defaults, board: undefined }));
  }

  /**
   * Subscribes a transactional actor, which enters the attempt when its turn comes. Its mailbox measures the time of
   * the handler.
   */
  relayWork(pattern: string, deliver: WorkCall, relayed: RelayOptions): void {
    this.#requireOpen();
    const { space, clearance, failed, ...options } = relayed;
    const { subscriberId } = options;
    const attempts = space.attemptsOf(`the handler of ${subscriberId}`, clearance);
    const handle = this.#watched(deliver, subscriberId) as WorkCall;
    const call: Call = { kind: "transactional", replica: space.replica(space.name), attempts, handle, failed };
    const limited = { ...options, timeoutMs: TIMER_DELAY_MS_MAX };
    this.#add(new Subscription(pattern, call, limited, { ...this.#defaults, board: undefined }));
  }

  #add(subscription: Subscription): void {
    const { pattern } = subscription;
    if (!isWildcard(pattern)) this.#topics.wire(pattern);
    this.#subscriptions.add(subscription);
    if (subscription.durable) this.#consumers.declare(subscription.consumer);
    // Events may wait for it.
    if (subscription.durable && this.#dispatcher.state === "running") this.#dispatcher.backlog();
    if (subscription.serialBy !== undefined) this.#serial.askAnew();
  }

  #outbox(source: string, space: WorkSpace): Outbox {
    const typeOf = (topic: string) => this.#topics.wire(topic);
    return new Outbox({ source, typeOf, space, requester: () => this.requester });
  }

  /** The handler; its calls are remembered if handlings are. */
  #watched<AnyHandler extends (...given: never) => unknown>(handler: AnyHandler, subscriberId: string) {
    return this.#handlings === undefined ? handler : watchedHandler(handler, subscriberId, this.#handlings);
  }

  /** Declares a consumer that may not run yet: events of the topic wait until its handler is subscribed. */
  declare(pattern: string, subscriberId: string): void {
    this.#requireOpen();
    this.#consumers.declare(checkedConsumer(pattern, subscriberId));
    if (!isWildcard(pattern)) this.#topics.wire(pattern);
  }

  /**
   * Ends the subscriptions of a subscriber to a topic or pattern, and removes the consumer; false if there was none.
   */
  unsubscribe(pattern: string, subscriberId: string): boolean {
    const isRemoved = this.suspend(pattern, subscriberId);
    this.#consumers.withdraw({ name: subscriberId, pattern });
    return isRemoved;
  }

  /**
   * Ends the subscriptions of a subscriber to a topic or pattern. It stays declared: events wait until it subscribes
   * again.
   */
  suspend(pattern: string, subscriberId: string): boolean {
    const isRemoved = this.#subscriptions.remove(pattern, subscriberId) > 0;
    if (isRemoved) this.#consumers.runningChanged();
    if (isRemoved) this.#held.passGone();
    return isRemoved;
  }

  // Life -------------------------------------------------------------------------------------------------------------

  /** Starts dispatching. Subscribe first: an event without a subscriber is done. */
  start(): Promise<void> {
    if (this.#stopped) return Promise.reject(stoppedError());
    this.#started ??= this.#start();
    return this.#started;
  }

  /** Waits for running handlers, then ends. Events that they have not finished by then are delivered again. */
  stop({ graceMs = STOP_GRACE_MS }: StopOptions = {}): Promise<void> {
    if (!isGrace(graceMs))
      return Promise.reject(misuse(`graceMs is how long to wait, 0 to 100 years or Infinity, got ${show(graceMs)}`));
    if (this.#started === undefined) return Promise.resolve();
    this.#stopped ??= this.#stop(this.#started, graceMs);
    return this.#stopped;
  }

  /**
   * Puts events of processes that are gone back to pending; resolves with how many. Never touches events of a live
   * process.
   */
  async recover(): Promise<number> {
    const recovered = await this.#store.recover();
    if (recovered > 0) this.#dispatcher.backlog();
    return recovered;
  }

  /** Whether events are in hand: taken from the journal, and not settled. */
  get busy(): boolean {
    return this.#held.size > 0;
  }

  /**
   * Resolves when this process handles no event and could claim none. Does not wait for retries, or for other
   * processes.
   */
  idle(): Promise<void> {
    return this.#dispatcher.idle();
  }

  /** Starts no more handlers until `resume`, also where it has not been started yet. Publishing goes on. */
  pause(): void {
    this.#dispatcher.pause();
  }

  resume(): void {
    this.#dispatcher.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  // Looking ----------------------------------------------------------------------------------------------------------

  /** The present subscriptions in their order, with their running and waiting events. */
  subscriptions(): readonly SubscriptionView[] {
    return this.#subscriptions.views((one) => this.#slots.waitingAt(one));
  }

  /** Rows of the journal. */
  query(query: JournalQuery): Promise<readonly JournalRow[]> {
    return this.#store.query(query);
  }

  /** The journal from a position on; if asked, it follows new events. */
  tail(options: TailOptions = {}): AsyncGenerator<TailedRow, void, undefined> {
    return tail({ host: this.#host, store: this.#store, signal: this.#signal }, options);
  }

  /** Calls back whenever another process may have changed the journal, until the returned function is called. */
  onForeignChange(listener: () => void): () => void {
    return this.#store.watch(({ journal, isForeign }) => {
      if (journal && isForeign) listener();
    });
  }

  /** The journal by pages, for a reader that follows it on behalf of several. */
  get feed(): JournalFeed {
    return new JournalFeed({ host: this.#host, store: this.#store, signal: this.#signal });
  }

  /** All messages of a correlation, as a tree of causes. */
  trace(correlation: string): Promise<Trace> {
    return trace({ host: this.#host, store: this.#store }, correlation);
  }

  /** How many events have failed, and the latest of them. */
  failures(options?: { readonly limit?: number; readonly before?: number }): Promise<Failures> {
    return failures(this.#store, options);
  }

  /** Every declared consumer, where it runs, and how many events wait for it. */
  async consumers(): Promise<readonly DeclaredConsumer[]> {
    return (await this.#store.consumers()).consumers;
  }

  /**
   * Removes consumers of that name that are gone for good: of one pattern, or of all. Events that only wait for them
   * are settled.
   */
  async removeConsumers(name: string, pattern?: string): Promise<readonly RemovedConsumer[]> {
    const removed = await removeConsumers({ host: this.#host, store: this.#store }, name, pattern);
    if (removed.length > 0) this.#dispatcher.backlog();
    return removed;
  }

  /**
   * Puts events back to pending: failed ones, and those that were settled without a consumer. One, several, or all that
   * a query finds. With `consumer`, events that are done go back too, for that consumer alone. Resolves with the ids
   * that were put back.
   */
  async requeue(
    which: number | readonly number[] | RequeueQuery,
    options: RequeueOptions = {},
  ): Promise<readonly number[]> {
    const ids = typeof which === "number" ? [which] : which;
    const { consumer } = options;
    const requeued = !isIds(ids)
      ? await requeueWhere({ host: this.#host, store: this.#store }, ids)
      : consumer === undefined
        ? await this.#store.requeue(ids)
        : await requeueFor({ store: this.#store, subscriptions: this.#subscriptions }, ids, consumer);
    if (requeued.length > 0) this.#dispatcher.backlog();
    return requeued;
  }

  /**
   * Gives failed events and commands up, with a reason that stays with their rows. Resolves with the ids that were
   * failed.
   */
  async discard(which: number | readonly number[], reason: string): Promise<readonly number[]> {
    if (typeof reason !== "string" || reason.trim() === "")
      throw misuse("discard takes a reason; it stays with the row");
    const ids = typeof which === "number" ? [which] : which;
    return this.#store.conclude(ids, { from: "failed", ending: { outcome: "discarded", reason } });
  }

  /** Closes the row of a message that no process holds, as cancelled. */
  async withdraw(messageId: string, reason: string): Promise<"withdrawn" | "underway" | "gone"> {
    const [row] = await this.#store.query({ messageId, limit: 1 });
    if (row === undefined || row.status === "done" || row.status === "failed") return "gone";
    const conclusion = { from: "pending", ending: { outcome: "cancelled", reason } } as const;
    return (await this.#store.conclude([row.id], conclusion)).length > 0 ? "withdrawn" : "underway";
  }

  /** Removes the events that the retention policy does not keep, now. */
  sweep(): Promise<number> {
    return this.#retention.sweep();
  }

  /** Throws when the bus contradicts itself. For tests and simulations. */
  checkInvariants(): void {
    this.#held.checkInvariants();
    this.#serial.checkInvariants();
    if (this.#slots.taken < 0) throw new Error(`${this.#slots.taken} slots are taken`);
  }

  async #start(): Promise<void> {
    try {
      await this.#dispatcher.start();
      this.#retention.start();
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }

  async #stop(started: Promise<void>, graceMs: number): Promise<void> {
    // A failed start rejects for its caller, and no part runs.
    const isRunning = await started.then(
      () => true,
      () => false,
    );
    this.#retention.stop();
    if (isRunning) await this.#dispatcher.stop(graceMs);
  }

  get #isClosed(): boolean {
    return this.#stopped !== undefined && this.#dispatcher.state !== "stopping";
  }

  #requireOpen(): void {
    if (this.#isClosed) throw stoppedError();
  }
}

/** A handler with a space gets a transaction of it. */
function callOf(
  handler: Handler<never> | TransactionalHandler<never>,
  options: SubscribeOptions | TransactionalOptions,
  outboxOf: (space: WorkSpace) => Outbox,
): Call {
  if (!("space" in options) || options.space === undefined) return { kind: "plain", handler: handler as Handler };
  const { space, subscriberId, onFailed } = options;
  if (typeof space !== "object" || space === null || typeof space.attemptsOf !== "function")
    throw misuse("space is an open space: await Space.open({ store, name })");
  const outbox = outboxOf(space);
  const call = handler as TransactionalHandler;
  return {
    kind: "transactional",
    replica: space.replica(space.name),
    attempts: space.attemptsOf(`the handler of subscriber ${subscriberId}`),
    handle: (event, attempt) => attempt.enter(() => call(event, new Tx(attempt, outbox, event.message))),
    failed:
      onFailed &&
      ((failure, event, attempt) =>
        attempt.enter(() => onFailed(failure, new Tx(attempt, outbox, event.message), event))),
  };
}

function isIds(which: readonly number[] | RequeueQuery): which is readonly number[] {
  return Array.isArray(which);
}

function requirePositive(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return;
  throw misuse(`${name} must be a whole number of at least 1, got ${show(value)}`);
}

/** A time beyond the reach of timers would fail later. */
function requireTime(name: string, ms: number): void {
  requirePositive(name, ms);
  if (ms > TIMER_DELAY_MS_MAX) throw misuse(`${name} must be at most 100 years, got ${show(ms)}`);
}

function isGrace(ms: number): boolean {
  return ms === Number.POSITIVE_INFINITY || (ms >= 0 && ms <= TIMER_DELAY_MS_MAX);
}

function stoppedError(): BusError {
  return new BusError("BUS_STOPPED", "the bus has been stopped; open another on the same store");
}

function misuse(message: string): BusError {
  return new BusError("BUS_MISUSE", message);
}
