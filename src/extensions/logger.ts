/** Log entries of extensions and their loader, with level and source, for the opener of the kernel. */
import { visibleLine } from "../message/visible-text.ts";

/** From the least to the most important. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
/** The level of a log entry. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One entry of the log. */
export interface LogEntry {
  readonly level: LogLevel;
  /** `ext.inbox` for an extension, `extensions` for their loader. */
  readonly source: string;
  readonly message: string;
}

/** Takes the log entries of extensions. */
export type Log = (entry: LogEntry) => void;

/** Writes to the log in the name of an extension. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export function loggerFor(source: string, log: Log): Logger {
  const at = (level: LogLevel) => (message: string) => log({ level, source, message });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** To the process's error output, one line for each entry, from a level on: the default without a logger. */
export function logToStderr(from: LogLevel = "warn"): Log {
  const shown = LOG_LEVELS.slice(LOG_LEVELS.indexOf(from));
  return ({ level, source, message }) => {
    if (shown.includes(level)) process.stderr.write(`millrace: ${level} ${source}: ${visibleLine(message)}\n`);
  };
}
