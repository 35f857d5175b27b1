/**
 * `millrace/signals`: cells, computed values, effects and transactions, without a kernel: no bus, no journal, no loop. For browsers, and for
 * programs that need signals alone. `documentStore()` is the store for it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { Cell, type CellOptions, type ListCell, type PullOptions, type Seen, type SinkOptions } from "./cells/cell.ts";
export { type BeginOptions, CellTransaction } from "./cells/cell-transaction.ts";
export { Computed } from "./cells/computed.ts";
export { LinkError } from "./cells/links.ts";
export type { Each, ListOptions } from "./cells/list-children.ts";
export type { List } from "./cells/lists.ts";
export { SchemaError, type SchemaIssue, type StandardSchema } from "./cells/schema.ts";
export {
  type EffectOptions,
  type NodeOptions,
  Space,
  type SpaceCellOptions,
  type SpaceOptions,
} from "./cells/space.ts";
export { TransactionError, type TransactOptions } from "./cells/transact.ts";
export type { AsJson, Below, Frozen, Initial, KeyOf, Stored } from "./cells/value-types.ts";
export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "./host/host.ts";
export { systemHost } from "./host/system-host.ts";
export { MillraceError } from "./message/millrace-error.ts";
export { ComputedError, type ComputedErrorCode } from "./scheduler/computed-error.ts";
export type { NodeSpec, SchedulerNode } from "./scheduler/node.ts";
export { Scheduler } from "./scheduler/scheduler.ts";
export { SchedulerError, type SchedulerErrorCode } from "./scheduler/scheduler-error.ts";
export { documentStore } from "./store/memory/document-store.ts";
export { type Store, StoreError, type StoreErrorCode } from "./store/store.ts";
