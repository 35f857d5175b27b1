/**
 * `millrace/loop`: the event loop alone (RFC 0032), with your own actors and adapters, on Node, Deno, Bun and in
 * browsers. It has no store, no journal and no socket: pass these as `events`, `commands` and by `attach`.
 */
/// <reference lib="esnext.disposable" preserve="true" />

export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "../host/host.ts";
export { systemHost } from "../host/system-host.ts";
export type { AskOptions } from "../work/ask.ts";
export type { WorkSpace } from "../work/attempt.ts";
export type { HandlerFailure, HandlerOptions } from "../work/handler-options.ts";
export type { Launch } from "../work/lineage.ts";
export type { MessageOptions, TxTimerOptions } from "../work/outbox.ts";
export { Refusal, type RefuseOptions } from "../work/refusal.ts";
export type { Backoff, Retry, RetryPolicy } from "../work/retry-policy.ts";
export type { Tx, TxCell, TxList } from "../work/tx.ts";
export { WorkError, type WorkErrorCode } from "../work/work-error.ts";
export type {
  ActorEvent,
  ActorListener,
  Capability,
  CapabilityActor,
  Durability,
  MessageSchema,
  SpawnContext,
} from "./capability.ts";
export { type CapabilityDefinition, handler, type RequestHandler } from "./capability-definition.ts";
export type { CommandJournal, KeptBefore } from "./command-journal.ts";
export { capability } from "./define-capability.ts";
export type { EventJournal } from "./event-journal.ts";
export { EventLoop, type EventLoopOptions } from "./event-loop.ts";
export type { ExchangesOf, TypedCapability } from "./exchanges.ts";
export type { LaneName } from "./inbound.ts";
export type { AdapterLife, Liveness } from "./liveness.ts";
export type { LoopLimits } from "./loop-limits.ts";
export { AnswerLater, type CapabilityContext } from "./mailbox-actor.ts";
export { type DataSchema, dataSchema } from "./message-schema.ts";
export { isObservationType, type ObservationType, type Observer } from "./observation.ts";
export { Parcel } from "./parcel.ts";
export type { Connection, Origin, Posted } from "./pending-request.ts";
export { BootError } from "./routing-table.ts";
export { timerCapability } from "./timer.ts";
export { type TransactionalDefinition, transactional } from "./transactional.ts";
export { workerActor } from "./worker-actor.ts";
export { serve, type WorkerHandlers } from "./worker-serve.ts";
