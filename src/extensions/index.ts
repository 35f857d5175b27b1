/** `millrace/extensions`: the entry point for authors of extensions. Needs Node; has no side effects. */
/// <reference lib="esnext.disposable" preserve="true" />
export {
  type DefinedExtension,
  defineExtension,
  type ExtensionDefinition,
  type ExtensionHead,
  type ExtensionParts,
  type ToolDefinition,
  tool,
} from "./define-extension.ts";
export type { ExtensionInCode, ExtensionSources } from "./discovery.ts";
export type { Extension } from "./extension.ts";
export type {
  EmitOptions,
  EventContext,
  EventHandler,
  ExtensionCommandOptions,
  ExtensionContext,
} from "./extension-context.ts";
export { ExtensionError, type ExtensionErrorCode } from "./extension-error.ts";
export type { ExtensionState, ExtensionStatus } from "./extension-record.ts";
export type { Log, LogEntry, Logger, LogLevel } from "./logger.ts";
export { type Manifest, type ManifestResult, readManifest } from "./manifest.ts";
export type { Hook, HookCall, HookName } from "./message-router.ts";
export type { OwnerTerm } from "./ownership.ts";
export type {
  AgentInvocation,
  AgentProvider,
  AgentResponse,
  AgentTool,
  CapabilityProvider,
  ChannelProvider,
  ProviderKind,
  ScheduledRun,
  SchedulerProvider,
  ServiceProvider,
  TaskResult,
  Tool,
  ToolProvider,
} from "./providers.ts";
export type { ScheduleStatus } from "./schedule-table.ts";
export { type FileProblem, fileProblemText } from "./yaml-file.ts";
