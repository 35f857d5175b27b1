/**
 * `millrace`: the everyday API. An app, its definitions, and how to run and call it. It runs on any JavaScript engine;
 * `open` loads the kernel, which needs Node, when it is called. The parts below it have entry points of their own.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { type App, app } from "./app/app.ts";
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
export type { Definition } from "./app/definition.ts";
export type { Duration } from "./app/duration.ts";
export { type EventDefinition, type Schema, type } from "./app/event-definition.ts";
export { type OnDefinition, type OnOptions, on, type RunContext, type Steps } from "./app/on.ts";
export type { AppParts } from "./app/parts.ts";
export {
  type AppTx,
  type CommandDefinition,
  type CommandOptions,
  command,
  type Later,
  type QueryDefinition,
  type QueryOptions,
  query,
  type SentData,
} from "./app/request.ts";
export { type CronOptions, cron, type ScheduleDefinition, type Slot } from "./app/schedule.ts";
export { type WorkerDefinition, type WorkerOptions, worker } from "./app/worker-commands.ts";
export type { EffectOptions, NodeOptions, SpaceCellOptions } from "./cells/base-space.ts";
export type { Cell, CellOptions, ListCell } from "./cells/cell.ts";
export {
  type Collection,
  type CollectionOf,
  type CollectionOptions,
  type Index,
  type IndexOptions,
  index,
  type Page,
  type PageQuery,
} from "./cells/collection.ts";
export type { Computed } from "./cells/computed.ts";
export type { StandardSchema } from "./cells/schema.ts";
export type { AsJson, Frozen } from "./cells/value-types.ts";
export type { AppKernel } from "./kernel/app-kernel.ts";
export type { OpenOptions } from "./kernel/open-app.ts";
export { BootError } from "./loop/routing-table.ts";
export { Failure, type FailureOptions, isFailure } from "./message/error-data.ts";
export type { Json, JsonArray, JsonObject } from "./message/json.ts";
export { MillraceError } from "./message/millrace-error.ts";
export type { KernelReason } from "./message/reasons.ts";
export { open } from "./open.ts";
export type { Refusal, RefuseOptions } from "./work/refusal.ts";
export type { Sql, SqlRun, SqlValue } from "./work/sql.ts";
