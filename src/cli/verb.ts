/**
 * What a verb of the command is, and the codes it may end with (SPEC: K11).
 */
import { MillraceError } from "../message/millrace-error.ts";
import type { Terminal } from "./terminal.ts";

/** Interrupted: ended at once by a second signal, as a shell says of one that Ctrl-C has ended. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What ends a verb that goes on until it is ended: Ctrl-C, `kill`, and a terminal that is closed. */
export const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** An option, and what `--help` says of it. */
export interface VerbOption {
  readonly type: "boolean" | "string";
  /** What stands for its value in a usage line; only with a text. */
  readonly value?: string;
  readonly about: string;
}

/** Every verb that prints has it. */
export const JSON_OPTION: VerbOption = { type: "boolean", about: "print JSON, one value a line" };

export interface Verb {
  readonly name: string;
  /** After the name: `events [--json]`. */
  readonly usage: string;
  readonly summary: string;
  /** A call that works, for `--help`; several lines if one is not enough. */
  readonly example: string;
  readonly options: Readonly<Record<string, VerbOption>>;
  /** How many words may stand after the verb. */
  readonly wordsMax: number;
  run(call: VerbCall): Promise<ExitCode>;
}

export interface VerbCall {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
}

/** The command was called in a way that has no meaning; the message says which way has. */
export class UsageError extends MillraceError<"USAGE"> {
  override readonly name = "UsageError";

  constructor(message: string, options?: ErrorOptions) {
    super("USAGE", message, options);
  }
}

/** A whole number given as an option; undefined when it was not given. */
export function readNumber(
  name: string,
  value: string | boolean | undefined,
  { min, max }: { min: number; max: number },
): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= min && number <= max) return number;
  throw new UsageError(`--${name} is a whole number from ${min} to ${max}, not ${JSON.stringify(value)}`);
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A length of time given as an option, in milliseconds: `90s`, `15m`, `12h`, `30d`. */
export function readAge(name: string, value: string | boolean | undefined): number | undefined {
  if (value === undefined) return undefined;
  const [, count, unit] = String(value).match(/^(\d{1,9})([smhd])$/) ?? [];
  if (count === undefined)
    throw new UsageError(`--${name} is a time like 90s, 15m, 12h or 30d, not ${JSON.stringify(value)}`);
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
