/**
 * `millrace/signals`: cells, collections, computed values, effects, streams and transactions, without a kernel: no bus,
 * no journal, no loop. For browsers, and for programs that need signals alone. `documentStore()` is the store for it.
 */
/// <reference lib="esnext.disposable" preserve="true" />

export type { EffectOptions, NodeOptions, SpaceCellOptions, SpaceOptions } from "./cells/base-space.ts";
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
export { NotReady } from "./cells/not-ready.ts";
export { pattern } from "./cells/pattern.ts";
export type { Launched, LaunchOptions, Pattern, Piece, PieceParts, Shown } from "./cells/piece.ts";
export { PieceError, type PieceInputs } from "./cells/piece-inputs.ts";
export type { Resumed, RunOptions } from "./cells/pieces.ts";
export { SchemaError, type SchemaIssue, type StandardSchema } from "./cells/schema.ts";
export type { Migrate } from "./cells/shaped-cell.ts";
export { Space } from "./cells/space.ts";
export { type HandleOptions, type Readable, Stream, type StreamHandler } from "./cells/stream.ts";
export { TransactionError, type TransactOptions } from "./cells/transact.ts";
export type { AsJson, Below, Frozen, Initial, KeyOf, Stored } from "./cells/value-types.ts";
export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "./host/host.ts";
export { systemHost } from "./host/system-host.ts";
export { MillraceError } from "./message/millrace-error.ts";
export { ComputedError, type ComputedErrorCode } from "./scheduler/computed-error.ts";
export type { Diagnosis, SchedulerStats } from "./scheduler/diagnosis.ts";
export type { QueueSnapshot } from "./scheduler/events.ts";
export type { ActionStats, NodeSnapshot, WhyNot, WhyStep } from "./scheduler/introspection.ts";
export type { NodeSpec, SchedulerNode } from "./scheduler/node.ts";
export { Scheduler } from "./scheduler/scheduler.ts";
export { SchedulerError, type SchedulerErrorCode } from "./scheduler/scheduler-error.ts";
export type { SendFailure, SendOptions, SendOutcome, Sent } from "./scheduler/send.ts";
export { StreamError, type StreamErrorCode } from "./scheduler/stream-handler.ts";
export type { TraceEntry, TraceTopic } from "./scheduler/trace.ts";
export type { Change, Notification, NotificationListener } from "./store/change.ts";
export { type Address, asLink, type DocumentRef, type Link, linkTo, SHARED_SCOPE } from "./store/document.ts";
export { LabelError, type LabelErrorCode } from "./store/label.ts";
export { documentStore } from "./store/memory/document-store.ts";
export { type Store, StoreError, type StoreErrorCode } from "./store/store.ts";
export type { HandlerFailure, HandlerOptions } from "./work/handler-options.ts";
export type { Launch } from "./work/lineage.ts";
export type { Retry } from "./work/retry-policy.ts";
export type { Tx, TxCell, TxList } from "./work/tx.ts";
export { WorkError, type WorkErrorCode } from "./work/work-error.ts";
