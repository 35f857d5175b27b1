/**
 * Converts settings into kernel options: loads the app and leaves out undefined values. SPEC: K28.
 */
import { join } from "node:path";
import { logToStderr } from "../extensions/logger.ts";
import type { DataDirectory } from "./data-directory.ts";
import type { KernelLimits } from "./kernel-limits.ts";
import type { KernelOptions } from "./kernel-options.ts";
import { loadApp } from "./load-app.ts";
import { type DefinedOnly, omitUndefined } from "./omit-undefined.ts";
import { LIMIT_NAMES, type Setting, type Settings } from "./settings.ts";

type ConfiguredOptions = Pick<
  KernelOptions,
  | "apps"
  | "capabilities"
  | "extensions"
  | "patterns"
  | "version"
  | "agent"
  | "extensionData"
  | "log"
  | "requestTimeoutMs"
  | "receipts"
  | "leaseMs"
  | "retention"
  | "limits"
  | "clearance"
>;

export async function configuredOptions(settings: Settings, directory: DataDirectory): Promise<ConfiguredOptions> {
  const app = settings.app.value === undefined ? undefined : await loadApp(settings.app.value);
  // The operator's setting comes first, then the app's.
  const extensions = settings.extensions.value ?? app?.extensions;
  const clearance = settings.clearance.value === undefined ? app?.clearance : namesIn(settings.clearance.value);
  const { agent, requestTimeoutMs, leaseMs, retentionMaxAgeMs: maxAgeMs, retentionMaxSettled: maxSettled } = settings;
  const { receiptsKeepMs: keepMs } = settings;
  return {
    apps: app?.apps ?? [],
    capabilities: app?.capabilities ?? {},
    extensionData: join(directory.path, "extensions"),
    log: logToStderr(settings.log.value),
    limits: limitsIn(settings),
    retention: valuesOf({ maxAgeMs, maxSettled }),
    ...(keepMs.value === undefined ? {} : { receipts: { keepMs: keepMs.value } }),
    ...valuesOf({ agent, requestTimeoutMs, leaseMs }),
    ...omitUndefined({ extensions, clearance, patterns: app?.patterns, version: app?.version }),
  };
}

/** `hr, finance`, or `none` for an empty clearance. */
function namesIn(text: string): readonly string[] {
  return text.trim() === "none" ? [] : text.split(",").map((name) => name.trim());
}

function limitsIn(settings: Settings): KernelLimits {
  return omitUndefined(Object.fromEntries(LIMIT_NAMES.map((name) => [name, settings[name].value])));
}

type Values<T> = { [Name in keyof T]: T[Name] extends Setting<infer Value> ? Value : never };

function valuesOf<T extends Readonly<Record<string, Setting>>>(settings: T): DefinedOnly<Values<T>> {
  return omitUndefined(
    Object.fromEntries(Object.entries(settings).map(([name, { value }]) => [name, value])) as Values<T>,
  );
}
