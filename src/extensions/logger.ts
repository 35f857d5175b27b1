/** What extensions and their loader say: entries with a level and a source, to whoever opened the kernel. */

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogEntry {
  readonly level: LogLevel;
  /** `ext.inbox` for an extension, `extensions` for their loader. */
  readonly source: string;
  readonly message: string;
}

export type Log = (entry: LogEntry) => void;

export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export function loggerFor(source: string, log: Log): Logger {
  const at = (level: LogLevel) => (message: string) => {
    try {
      log({ level, source, message });
    } catch {
      // Whoever listens must not take part in what he is told about.
    }
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Where nothing else is said: what a person should see, on the process's error output, one line for each entry. */
export function logToStderr({ level, source, message }: LogEntry): void {
  if (level !== "warn" && level !== "error") return;
  process.stderr.write(`millrace: ${level} ${source}: ${message.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ")}\n`);
}
