/**
 * `millrace/kernel`: the whole system. Needs Node for its socket.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { nodeWorkerActor, serveThread } from "../adapters/node-worker.ts";
export { SocketError } from "../adapters/socket-error.ts";
export { Stdio, type StdioOptions } from "../adapters/stdio.ts";
export { FolderError } from "./folder.ts";
export { Kernel } from "./kernel.ts";
export { KernelClosedError } from "./kernel-life.ts";
export type { KernelLimits } from "./kernel-limits.ts";
export type { KernelHealth, KernelOptions, KernelParts } from "./kernel-options.ts";
export {
  type Config,
  listSettings,
  readSettings,
  type Setting,
  type SettingSources,
  type Settings,
  SettingsError,
  unknownVariables,
} from "./settings.ts";
