/**
 * `millrace/worker`: the side of a Web Worker that handles messages for a kernel. A thread of Node uses `serveThread`
 * of `millrace/node`.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export type { HandlerContext as CapabilityContext } from "./loop/mailbox-actor.ts";
export { type DataSchema, dataSchema } from "./loop/message-schema.ts";
export { serve, type WorkerHandlers } from "./loop/worker-actor.ts";
export { Failure, type FailureOptions, isFailure } from "./message/error-data.ts";
