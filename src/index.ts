/**
 * `millrace`: everything that users of the package import, listed by hand. Runs wherever there is a JavaScript engine; what
 * needs Node is behind a path of its own (`millrace/kernel`, `millrace/client`, `millrace/sqlite`), and so is what only tests need
 * (`millrace/testing`).
 */
/// <reference lib="esnext.disposable" preserve="true" />

// The everyday API: an app, its definitions, and how to run and call it.
export { App, app, type Definition } from "./app/app.ts";
export type { AppTx, Later, SentData } from "./app/app-tx.ts";
export type {
  AnyApp,
  AppEvent,
  Caller,
  CallOptions,
  CommandAnswer,
  CommandFailure,
  CommandInput,
  CommandName,
  EventData,
  EventName,
  EventsOptions,
  Live,
  QueryAnswer,
  QueryInput,
  QueryName,
  Result,
} from "./app/caller.ts";
export type { Duration } from "./app/duration.ts";
export { EventDefinition, type Schema, type } from "./app/event-definition.ts";
export { OnDefinition, type OnOptions, on, type RunContext, type Steps } from "./app/on.ts";
export type { AppParts } from "./app/parts.ts";
export {
  CommandDefinition,
  type CommandOptions,
  command,
  QueryDefinition,
  type QueryOptions,
  query,
} from "./app/request.ts";
export { type CronOptions, cron, ScheduleDefinition, type Slot } from "./app/schedule.ts";
// Publish and subscribe over the journal.
export type { Failures, Trace, TraceNode } from "./bus/audit.ts";
export { BusError, type BusErrorCode, EventsGone } from "./bus/bus-error.ts";
export type { RemovedConsumer } from "./bus/consumer-removal.ts";
export type { Event } from "./bus/event.ts";
export { type AnyTopics, EventBus, type EventBusOptions, type StopOptions } from "./bus/event-bus.ts";
export type {
  Handler,
  HandlerContext,
  TransactionalHandler,
} from "./bus/handler.ts";
export type { BusObservation, BusObserver } from "./bus/observation.ts";
export type { Publication, PublishOptions } from "./bus/publisher.ts";
export type { RequeueOptions, RequeueQuery } from "./bus/requeue.ts";
export type { RetentionPolicy } from "./bus/retention.ts";
export type { SubscribeOptions, SubscriptionView, TransactionalOptions } from "./bus/subscription.ts";
export type { TailOptions } from "./bus/tail.ts";
// State as its users touch it.
export { Cell, type CellOptions, type ListCell, type PullOptions, type Seen, type SinkOptions } from "./cells/cell.ts";
export { type BeginOptions, CellTransaction } from "./cells/cell-transaction.ts";
export {
  Collection,
  type CollectionElement,
  type CollectionOf,
  type CollectionOptions,
  type ElementOptions,
  type Group,
  type Index,
  type IndexOptions,
  index,
  type Page,
  type PageQuery,
} from "./cells/collection.ts";
export { Computed } from "./cells/computed.ts";
export { CollectionError, type CollectionErrorCode, type IndexValue } from "./cells/index-key.ts";
export type { Declassification } from "./cells/labels.ts";
export { LinkError } from "./cells/links.ts";
export type { Each, ListOptions } from "./cells/list-children.ts";
export type { List } from "./cells/lists.ts";
export { type Pattern, PieceError, type PieceInputs, type PieceParts, pattern, type Shown } from "./cells/pattern.ts";
export type { Launched, LaunchOptions, Piece } from "./cells/piece.ts";
export type { Resumed, RunOptions } from "./cells/pieces.ts";
export { SchemaError, type SchemaIssue, type StandardSchema } from "./cells/schema.ts";
export type { Migrate } from "./cells/shaped-cell.ts";
export {
  type EffectOptions,
  type NodeOptions,
  Space,
  type SpaceCellOptions,
  type SpaceOptions,
} from "./cells/space.ts";
export { type HandleOptions, type Readable, Stream, type StreamHandler } from "./cells/stream.ts";
export { TransactionError, type TransactOptions } from "./cells/transact.ts";
export type { AsJson, Below, Frozen, Initial, KeyOf, Stored } from "./cells/value-types.ts";
// Time, chance and tasks.
export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "./host/host.ts";
export { systemHost } from "./host/system-host.ts";
// Capabilities: what a kernel can do.
export type { Capability, CapabilityActor, Durability, MessageSchema, SpawnContext } from "./loop/capability.ts";
export { type CapabilityDefinition, capability, handler, type RequestHandler } from "./loop/define-capability.ts";
export type { ExchangesOf, TypedCapability } from "./loop/exchanges.ts";
export type { HandlerContext as CapabilityContext } from "./loop/mailbox-actor.ts";
export { type DataSchema, dataSchema } from "./loop/message-schema.ts";
export { BootError } from "./loop/routing-table.ts";
export { type TransactionalDefinition, transactional } from "./loop/transactional.ts";
export { serve, type WorkerHandlers, workerActor } from "./loop/worker-actor.ts";
// Messages, and the values in them.
export { canonicalJson } from "./message/canonical-json.ts";
export { contentId } from "./message/content-id.ts";
export { DroppedError } from "./message/dropped.ts";
export {
  type Accepted,
  type Checked,
  causationOf,
  checkMessage,
  type Kind,
  type Message,
  type Metadata,
  type Refused,
} from "./message/envelope.ts";
export { equal } from "./message/equality.ts";
export {
  type ErrorData,
  type ErrorExtras,
  errorData,
  Failure,
  type FailureOptions,
  failureFrom,
  fromError,
  isFailure,
} from "./message/error-data.ts";
export type { Json, JsonArray, JsonLimits, JsonObject } from "./message/json.ts";
export { parseLine } from "./message/line.ts";
export {
  type Answerable,
  causedBy,
  command as commandMessage,
  error as errorMessage,
  event as eventMessage,
  type Lineage,
  MessageTypeError,
  type Mint,
  query as queryMessage,
  reply as replyMessage,
} from "./message/lineage.ts";
export { MillraceError } from "./message/millrace-error.ts";
export { deleteAt, getAt, type Path, PathError, setAt } from "./message/path.ts";
export { KERNEL_REASONS, type KernelReason } from "./message/reasons.ts";
export { TopicError, type TopicErrorCode, topicType } from "./message/topic.ts";
export { matchesTopic } from "./message/topic-pattern.ts";

export { open } from "./open.ts";

// The scheduler beneath spaces, which several may share: what runs and why, sends to streams, and what handlers launch.
export { ComputedError, type ComputedErrorCode } from "./scheduler/computed-error.ts";
export type { Diagnosis, SchedulerStats } from "./scheduler/diagnosis.ts";
export type { QueueSnapshot } from "./scheduler/events.ts";
export type { ActionStats, NodeSnapshot, WhyNot, WhyStep } from "./scheduler/introspection.ts";
export type { NodeSpec, SchedulerNode } from "./scheduler/node.ts";
export { Scheduler } from "./scheduler/scheduler.ts";
export { SchedulerError, type SchedulerErrorCode } from "./scheduler/scheduler-error.ts";
export type { SendFailure, SendOptions, SendOutcome, Sent } from "./scheduler/send.ts";
export { StreamError, type StreamErrorCode } from "./scheduler/stream-record.ts";
export type { TraceEntry, TraceTopic } from "./scheduler/trace.ts";
// Documents, transactions, journal, due table.
export type { Change, Notification, NotificationListener } from "./store/change.ts";
export type { CommitOutcome, Committed, Precondition } from "./store/commit.ts";
export type { Consumer, DeclaredConsumer, RemovalResult } from "./store/consumer.ts";
export { type Address, asLink, type DocumentRef, type Link, linkTo, SHARED_SCOPE } from "./store/document.ts";
export type { DueChange, DueRow } from "./store/due.ts";
export type {
  Claim,
  Delivery,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  Settlement,
  VerifyReport,
} from "./store/journal.ts";
export { LabelError, type LabelErrorCode } from "./store/label.ts";
export { MemoryDisk } from "./store/memory/memory-disk.ts";
export { type MemoryStoreOptions, memoryStore } from "./store/memory/memory-store.ts";
export type { ReceiptPolicy } from "./store/receipt-keeper.ts";
export { RETRY_RULES, type Rejection, type RejectionClass, type RejectionReason } from "./store/rejection.ts";
export { Replica, type ReplicaOptions } from "./store/replica.ts";
export { type Store, StoreError, type StoreErrorCode } from "./store/store.ts";
export type { Commit, Transaction, TransactionOptions } from "./store/transaction.ts";
export type { AskOptions } from "./work/ask.ts";
export type { WorkSpace } from "./work/attempt.ts";
export type { HandlerFailure, HandlerOptions } from "./work/handler-options.ts";
export type { Launch } from "./work/lineage.ts";
export type { MessageOptions, TimerOptions as TxTimerOptions } from "./work/outbox.ts";
export { Refusal, type RefuseOptions } from "./work/refusal.ts";
export type { Backoff, Retry, RetryPolicy } from "./work/retry-policy.ts";
export type { Tx, TxCell, TxList } from "./work/tx.ts";
export { WorkError, type WorkErrorCode } from "./work/work-error.ts";
