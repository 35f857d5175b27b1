/**
 * The interface of a verb, and the exit codes (SPEC: K11).
 */
import { MillraceError } from "../message/millrace-error.ts";
import type { Terminal } from "./terminal.ts";

/** `interrupted`: ended by a second signal, with the code that shells use for Ctrl-C. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Signals that end a continuous verb: Ctrl-C, `kill`, and a closed terminal. */
export const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** An option and its help text. */
export interface VerbOption {
  readonly type: "boolean" | "string";
  /** Placeholder of its value in a usage line; only for a text. */
  readonly value?: string;
  readonly about: string;
}

/** Every printing verb has it. */
export const JSON_OPTION: VerbOption = { type: "boolean", about: "print JSON, one value a line" };

export interface Verb {
  readonly name: string;
  /** The text after the name: `events [--json]`. */
  readonly usage: string;
  readonly summary: string;
  /** A working call for `--help`; several lines if needed. */
  readonly example: string;
  readonly options: Readonly<Record<string, VerbOption>>;
  /** The maximum number of words after the verb. */
  readonly wordsMax: number;
  run(call: VerbCall): Promise<ExitCode>;
}

export interface VerbCall {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
}

/** Wrong use of the command; the message has the right use. */
export class UsageError extends MillraceError<"USAGE"> {
  override readonly name = "UsageError";

  constructor(message: string, options?: ErrorOptions) {
    super("USAGE", message, options);
  }
}

/** A whole number option; undefined if not given. */
export function readNumber(
  name: string,
  value: string | boolean | undefined,
  { min, max }: { min: number; max: number },
): number | undefined {
  if (value === undefined) return undefined;
  const number = value === "" ? Number.NaN : Number(value);
  if (Number.isSafeInteger(number) && number >= min && number <= max) return number;
  throw new UsageError(`--${name} is a whole number from ${min} to ${max}, not ${JSON.stringify(value)}`);
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A duration option in milliseconds: `90s`, `15m`, `12h`, `30d`. */
export function readAge(name: string, value: string | boolean | undefined): number | undefined {
  if (value === undefined) return undefined;
  const [, count, unit] = String(value).match(/^(\d{1,9})([smhd])$/) ?? [];
  if (count === undefined)
    throw new UsageError(`--${name} is a time like 90s, 15m, 12h or 30d, not ${JSON.stringify(value)}`);
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
