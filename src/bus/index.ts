/**
 * `millrace/bus`: publish and subscribe over a journal, without a kernel, on Node, Deno, Bun and in browsers.
 * `memoryStore` keeps the journal in memory, `openSqliteStore` of `millrace/sqlite` in a file.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "../host/host.ts";
export { systemHost } from "../host/system-host.ts";
export type { Json, JsonArray, JsonObject } from "../message/json.ts";
export { TopicError, type TopicErrorCode, topicType } from "../message/topic.ts";
export { matchesTopic } from "../message/topic-pattern.ts";
export type { Consumer, DeclaredConsumer, RemovalResult } from "../store/consumer.ts";
export type { Delivery, JournalQuery, JournalRow, JournalStatus } from "../store/journal.ts";
export { MemoryDisk } from "../store/memory/memory-disk.ts";
export { type MemoryStoreOptions, memoryStore } from "../store/memory/memory-store.ts";
export { type Store, StoreError, type StoreErrorCode } from "../store/store.ts";
export type { AskOptions } from "../work/ask.ts";
export type { WorkSpace } from "../work/attempt.ts";
export type { HandlerFailure, HandlerOptions } from "../work/handler-options.ts";
export type { MessageOptions, TxTimerOptions } from "../work/outbox.ts";
export type { Backoff, Retry, RetryPolicy } from "../work/retry-policy.ts";
export type { Tx, TxCell, TxList } from "../work/tx.ts";
export { WorkError, type WorkErrorCode } from "../work/work-error.ts";
export type { Failures, Trace, TraceNode } from "./audit.ts";
export { BusError, type BusErrorCode, EventsGone } from "./bus-error.ts";
export type { RemovedConsumer } from "./consumer-removal.ts";
export type { Event } from "./event.ts";
export { type AnyTopics, EventBus, type EventBusOptions, type StopOptions } from "./event-bus.ts";
export type {
  Handler,
  HandlerContext,
  TransactionalHandler,
} from "./handler.ts";
export type { BusObservation, BusObserver } from "./observation.ts";
export type { Publication, PublishOptions } from "./publisher.ts";
export type { RequeueOptions, RequeueQuery } from "./requeue.ts";
export type { RetentionPolicy } from "./retention.ts";
export type { SubscribeOptions, SubscriptionView, TransactionalOptions } from "./subscription.ts";
export type { TailOptions } from "./tail.ts";
