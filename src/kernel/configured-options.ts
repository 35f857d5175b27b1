/** From settings to what a kernel is opened with: the app is loaded, and what nobody said is left out. SPEC: K28. */
import { join } from "node:path";
import { logToStderr } from "../extensions/logger.ts";
import type { DataDirectory } from "./data-directory.ts";
import type { KernelOptions } from "./kernel-options.ts";
import { loadApp } from "./load-app.ts";
import type { Settings } from "./settings.ts";

type ConfiguredOptions = Pick<
  KernelOptions,
  | "capabilities"
  | "extensions"
  | "patterns"
  | "version"
  | "agent"
  | "extensionData"
  | "log"
  | "requestTimeoutMs"
  | "receipts"
  | "clearance"
>;

export async function configuredOptions(settings: Settings, directory: DataDirectory): Promise<ConfiguredOptions> {
  const app = settings.app.value === undefined ? undefined : await loadApp(settings.app.value);
  // Whoever starts the kernel decides, then the app.
  const extensions = settings.extensions.value ?? app?.extensions;
  const clearance = settings.clearance.value === undefined ? app?.clearance : namesIn(settings.clearance.value);
  const { agent, requestTimeoutMs, receiptsKeepMs } = settings;
  return {
    capabilities: app?.capabilities ?? {},
    extensionData: join(directory.path, "extensions"),
    log: logToStderr(settings.log.value),
    ...(extensions === undefined ? {} : { extensions }),
    ...(app?.patterns === undefined ? {} : { patterns: app.patterns }),
    ...(app?.version === undefined ? {} : { version: app.version }),
    ...(clearance === undefined ? {} : { clearance }),
    ...(agent.value === undefined ? {} : { agent: agent.value }),
    ...(receiptsKeepMs.value === undefined ? {} : { receipts: { keepMs: receiptsKeepMs.value } }),
    ...(requestTimeoutMs.value === undefined ? {} : { requestTimeoutMs: requestTimeoutMs.value }),
  };
}

/** `hr, finance`, or `none` for nobody's. */
function namesIn(text: string): readonly string[] {
  return text.trim() === "none" ? [] : text.split(",").map((name) => name.trim());
}
