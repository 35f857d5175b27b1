/**
 * `millrace/worker`: for the files of worker threads: `commands` for those of an app, `serve` for a Web Worker that is
 * an actor.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { commands, type WorkerCommands, type WorkerContext, type WorkerFunction } from "./app/worker-commands.ts";
export type { CapabilityContext } from "./loop/mailbox-actor.ts";
export { type DataSchema, dataSchema } from "./loop/message-schema.ts";
export { serve, type WorkerHandlers } from "./loop/worker-serve.ts";
export { Failure, type FailureOptions, isFailure } from "./message/error-data.ts";
