/**
 * `millrace/node`: all parts that need Node: the kernel with its socket, stdio, workers and settings, and the SQLite
 * store.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { nodeWorkerActor, serveThread } from "./adapters/node-worker.ts";
export { SocketError } from "./adapters/socket-error.ts";
export { Stdio, type StdioOptions } from "./adapters/stdio.ts";
export { FolderError } from "./kernel/folder.ts";
export { Kernel } from "./kernel/kernel.ts";
export { KernelClosedError } from "./kernel/kernel-life.ts";
export type { KernelLimits } from "./kernel/kernel-limits.ts";
export type { KernelHealth, KernelOptions, KernelParts } from "./kernel/kernel-options.ts";
export {
  type Config,
  listSettings,
  readSettings,
  type Setting,
  type SettingSources,
  type Settings,
  SettingsError,
  unknownVariables,
} from "./kernel/settings.ts";
export { openSqliteStore } from "./store/sqlite/open.ts";
export type { SqliteStoreOptions, SqliteTuning } from "./store/sqlite/options.ts";
