/**
 * The settings of a kernel with their origin: code (an option, an argument), an environment variable,
 * `millrace.config.yaml` (or `.yml`, `.json`, `.ts`, `.js`, `.mjs`) in the working directory, or the default, in this
 * order, per setting. All problems are reported together. SPEC: K28.
 *
 *     const settings = await readSettings({ environment: process.env, folder: process.cwd() });
 *     settings.requestTimeoutMs   // { value: 5000, origin: "millrace.config.yaml:2:19" }
 *
 * The data directory and the store cannot be set in the file: every verb must find them without running user code.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { LOG_LEVELS, type LogLevel } from "../extensions/logger.ts";
import { fileProblemText, wholeNumberText, YamlFile, type YamlValue } from "../extensions/yaml-file.ts";
import { PAYLOAD_BYTES_MAX, RECEIPTS_KEEP_MS_MIN, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { notKnown } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { DEFAULT_DIRECTORY } from "./data-directory.ts";
import type { KernelLimits } from "./kernel-limits.ts";
import { DURABILITY, isDatabaseUrl, type StoreDurability, storePlaceText } from "./open-store.ts";

/** A setting, and the place that it comes from. */
export interface Setting<T = string | number | undefined> {
  readonly value: T;
  /** `code`, the name of a variable, the place in a file, or `default`. */
  readonly origin: string;
}

/** The limits of a kernel are settings under their own names. */
export interface Settings extends Readonly<Record<keyof KernelLimits, Setting<number | undefined>>> {
  readonly directory: Setting<string>;
  /** The `postgres://` URL of the store; without it, the store is a file of the directory. */
  readonly store: Setting<string | undefined>;
  /** The module with the capabilities. */
  readonly app: Setting<string | undefined>;
  /** The folder of extensions. */
  readonly extensions: Setting<string | undefined>;
  /** The extension whose agent answers. */
  readonly agent: Setting<string | undefined>;
  readonly durability: Setting<StoreDurability>;
  /** The clearance of socket clients: names separated by commas, or `none`. */
  readonly clearance: Setting<string | undefined>;
  readonly requestTimeoutMs: Setting<number | undefined>;
  /** How long receipts are kept; default 30 days. */
  readonly receiptsKeepMs: Setting<number | undefined>;
  /** Log level of extensions. */
  readonly log: Setting<LogLevel>;
  /** How long this process holds an event without a renewal. */
  readonly leaseMs: Setting<number | undefined>;
  /** Age after which a settled event is removed, and the maximum number of settled events. */
  readonly retentionMaxAgeMs: Setting<number | undefined>;
  readonly retentionMaxSettled: Setting<number | undefined>;
  /** Bytes of one message's data in the journal. */
  readonly payloadBytesMax: Setting<number | undefined>;
}

export type SettingName = keyof Settings;

/** The default export of `millrace.config.ts`: `export default { log: "info" } satisfies Config`. */
export type Config = {
  readonly [Name in Exclude<SettingName, "directory" | "store">]?: Settings[Name] extends Setting<infer Value>
    ? Value
    : never;
};

type Value = string | number;

interface Definition {
  readonly variable: string;
  readonly fallback: Value | undefined;
  /** Without both, any text is valid. */
  readonly choices?: readonly string[];
  readonly range?: { readonly min: number; readonly max: number };
  /** The problem of a text. */
  readonly check?: (text: string) => string | undefined;
  readonly inFile: boolean;
}

function number(variable: string, max = Number.MAX_SAFE_INTEGER, min = 1): Definition {
  return { variable, fallback: undefined, range: { min, max }, inFile: true };
}

const LIMITS: Readonly<Record<keyof KernelLimits, Definition>> = {
  connectionsMax: number("MILLRACE_CONNECTIONS_MAX"),
  requestsInFlightMax: number("MILLRACE_REQUESTS_IN_FLIGHT_MAX"),
  unreadOutputBytesMax: number("MILLRACE_UNREAD_OUTPUT_BYTES_MAX"),
  unreadOutputAllBytesMax: number("MILLRACE_UNREAD_OUTPUT_ALL_BYTES_MAX"),
  lineBytesMax: number("MILLRACE_LINE_BYTES_MAX"),
  lineCompleteMs: number("MILLRACE_LINE_COMPLETE_MS", TIMER_DELAY_MS_MAX),
  depthMax: number("MILLRACE_DEPTH_MAX"),
  keysMax: number("MILLRACE_KEYS_MAX"),
  mailboxMax: number("MILLRACE_MAILBOX_MAX"),
  laneMax: number("MILLRACE_LANE_MAX"),
  microtasksMax: number("MILLRACE_MICROTASKS_MAX"),
  timerDelayMsMax: number("MILLRACE_TIMER_DELAY_MS_MAX", TIMER_DELAY_MS_MAX),
  timersPerClientMax: number("MILLRACE_TIMERS_PER_CLIENT_MAX"),
  concurrency: number("MILLRACE_CONCURRENCY"),
  handlerTimeoutMs: number("MILLRACE_HANDLER_TIMEOUT_MS", TIMER_DELAY_MS_MAX),
  agentInvokeMs: number("MILLRACE_AGENT_INVOKE_MS", TIMER_DELAY_MS_MAX),
  agentWaitingMax: number("MILLRACE_AGENT_WAITING_MAX"),
  residentDocumentsMax: number("MILLRACE_RESIDENT_DOCUMENTS_MAX"),
};
export const LIMIT_NAMES = Object.keys(LIMITS) as (keyof KernelLimits)[];

const DEFINITIONS: Readonly<Record<SettingName, Definition>> = {
  directory: { variable: "MILLRACE_DIR", fallback: DEFAULT_DIRECTORY, inFile: false },
  store: { variable: "MILLRACE_STORE", fallback: undefined, check: storeProblem, inFile: false },
  app: { variable: "MILLRACE_APP", fallback: undefined, inFile: true },
  extensions: { variable: "MILLRACE_EXTENSIONS", fallback: undefined, inFile: true },
  agent: { variable: "MILLRACE_AGENT", fallback: undefined, inFile: true },
  durability: { variable: "MILLRACE_DURABILITY", fallback: DURABILITY, choices: ["power", "process"], inFile: true },
  clearance: { variable: "MILLRACE_CLEARANCE", fallback: undefined, inFile: true },
  requestTimeoutMs: number("MILLRACE_REQUEST_TIMEOUT_MS", TIMER_DELAY_MS_MAX),
  receiptsKeepMs: number("MILLRACE_RECEIPTS_KEEP_MS", TIMER_DELAY_MS_MAX, RECEIPTS_KEEP_MS_MIN),
  log: { variable: "MILLRACE_LOG", fallback: "warn", choices: LOG_LEVELS, inFile: true },
  leaseMs: number("MILLRACE_LEASE_MS", TIMER_DELAY_MS_MAX),
  retentionMaxAgeMs: number("MILLRACE_RETENTION_MAX_AGE_MS"),
  retentionMaxSettled: number("MILLRACE_RETENTION_MAX_SETTLED"),
  payloadBytesMax: number("MILLRACE_PAYLOAD_BYTES_MAX", PAYLOAD_BYTES_MAX),
  ...LIMITS,
};

const NAMES = Object.keys(DEFINITIONS) as SettingName[];
/** The prefix of all our variables. */
const PREFIX = "MILLRACE_";
const VARIABLES = [...NAMES.map((name) => DEFINITIONS[name].variable), "MILLRACE_FILE"];
/** Set by `bin/millrace.mjs` for the process that it starts. */
const FROM_SHIM = "MILLRACE_PINNED_NODE";
const FILES = ["yaml", "yml", "json", "ts", "js", "mjs"].map((ending) => `millrace.config.${ending}`);

/** The places of settings: code, environment, and the folder with `millrace.config.ts`. */
export interface SettingSources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder of the settings file. */
  readonly folder: string;
  readonly code?: Partial<Record<SettingName, Value | undefined>>;
}

/** Settings that cannot be used, with all problems. */
export class SettingsError extends MillraceError<"SETTINGS_INVALID"> {
  override readonly name = "SettingsError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("SETTINGS_INVALID", problems.join("; "));
    this.problems = problems;
  }
}

/** Throws one `SettingsError` with all problems. */
export async function readSettings({ environment, folder, code = {} }: SettingSources): Promise<Settings> {
  const problems: string[] = [];
  const fromFile = await readFile(folder, problems);
  const settings = NAMES.map((name): [SettingName, Setting] => {
    const { variable, fallback } = DEFINITIONS[name];
    const said = code[name];
    if (said !== undefined) return [name, { value: checked(name, said, `--${name}`, problems), origin: "code" }];
    // An empty variable counts as not set, as usual in shells.
    const text = environment[variable] || undefined;
    if (text !== undefined) return [name, { value: checked(name, text, variable, problems), origin: variable }];
    return [name, fromFile.get(name) ?? { value: fallback, origin: "default" }];
  });
  if (problems.length > 0) throw new SettingsError(problems);
  // Each value has been checked against its definition.
  return Object.fromEntries(settings) as Record<SettingName, Setting> as Settings;
}

/** The settings as lines of a table, without passwords. */
export function listSettings(settings: Settings): readonly ({ readonly name: SettingName } & Setting)[] {
  const { store } = settings;
  const shown = {
    ...settings,
    store: { ...store, value: store.value === undefined ? undefined : storePlaceText(store.value) },
  };
  return NAMES.map((name) => ({ name, ...shown[name] }));
}

/** Messages about unknown variables with our prefix: a misspelt one would be ignored silently. */
export function unknownVariables(environment: SettingSources["environment"]): readonly string[] {
  const withoutPrefix = (variable: string) => variable.slice(PREFIX.length);
  const known = VARIABLES.map(withoutPrefix);
  return Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && environment[name] && !VARIABLES.includes(name) && name !== FROM_SHIM)
    .map((name) => `the variable ${name} ${notKnown(withoutPrefix(name), known, PREFIX)}`);
}

function storeProblem(text: string): string | undefined {
  return isDatabaseUrl(text) ? undefined : "must be a postgres:// URL; for a file set the directory, MILLRACE_DIR";
}

function checked(name: SettingName, said: Value, where: string, problems: string[]): Value | undefined {
  const { choices, range, check } = DEFINITIONS[name];
  const value = range ? Number(said) : String(said);
  const problem = check?.(String(said));
  if (problem !== undefined) problems.push(`${where}: ${name} ${problem}`);
  if (typeof value === "number" && range && !(Number.isInteger(value) && value >= range.min && value <= range.max))
    problems.push(`${where}: ${name} must be ${wholeNumberText(range)}, got ${show(said)}`);
  else if (choices && !choices.includes(String(value)))
    problems.push(`${where}: ${name} must be one of ${choices.join(", ")}, got ${show(said)}`);
  return value;
}

async function readFile(folder: string, problems: string[]): Promise<ReadonlyMap<SettingName, Setting>> {
  const [name, ...others] = FILES.filter((file) => existsSync(join(folder, file)));
  if (name === undefined) return new Map();
  if (others.length > 0) {
    problems.push(`there are ${[name, ...others].join(" and ")}; keep one of them`);
    return new Map();
  }
  const isModule = /\.m?[jt]s$/.test(name);
  let file: YamlFile;
  try {
    file = new YamlFile(isModule ? await moduleText(join(folder, name)) : readFileSync(join(folder, name), "utf8"));
  } catch (error) {
    problems.push(`${name}: cannot be read: ${thrownText(error)}`);
    return new Map();
  }
  const known = NAMES.filter((one) => DEFINITIONS[one].inFile);
  const found = new Map<SettingName, Setting>();
  for (const [key, field] of file.problems.length === 0 ? file.root.fields(known) : []) {
    const value = readValue(field, DEFINITIONS[key as SettingName]);
    // The position of a value in a module is unknown.
    found.set(key as SettingName, { value, origin: isModule ? name : `${name}:${field.line}:${field.column}` });
  }
  for (const problem of file.problems)
    problems.push(
      isModule
        ? `${name}: ${problem.path === "" ? "" : `${problem.path}: `}${problem.problem}`
        : `${name}:${fileProblemText(problem)}`,
    );
  return found;
}

function readValue(field: YamlValue, { choices, range }: Definition): Value | undefined {
  if (range) return field.wholeNumber(range);
  const text = field.text();
  if (text === undefined || choices === undefined || choices.includes(text)) return text;
  return field.wrong(`must be one of ${choices.join(", ")}, got ${show(text)}`);
}

/** The default export of a module as JSON, which is also YAML. */
async function moduleText(path: string): Promise<string> {
  const { default: settings }: { default?: unknown } = await import(pathToFileURL(path).href);
  return JSON.stringify(settings) ?? "";
}
