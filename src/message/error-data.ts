/**
 * Error data, `{ code, message, reason?, data?, cause? }`: the data of a message of kind `error`. `fromError` writes it
 * from a thrown value, `failureFrom` reads it as a `Failure`. SPEC: M13, M14, M41-M44.
 *
 * Error data is bounded: the `cause` chain ends after a fixed number of links (it may be cyclic), texts are clipped,
 * and no stack travels, because a stack names files of the server.
 */

import { DEPTH_MAX, ERROR_CAUSE_DEPTH_MAX, FAILURE_DATA_BYTES_MAX } from "../limits.ts";
import { DATA_LIMITS, type Json, type JsonLimits, type JsonObject } from "./json.ts";
import { type Clone, cloneData } from "./json-copy.ts";
import { isBranded } from "./millrace-error.ts";
import { type Problem, problemText, show, within } from "./problem.ts";
import { isReason, isRetryable, reasonOf } from "./reasons.ts";

/** The codes that the system itself uses. Handlers may use any code from 400 to 599. */
export const ERROR_MEANINGS = {
  400: "Malformed JSON",
  403: "Above the clearance",
  404: "No handler",
  409: "Duplicate request id",
  410: "Too old",
  413: "Too large",
  422: "Invalid message",
  500: "Handler failed",
  502: "Upstream failed",
  503: "Unavailable",
  504: "Request timed out",
} as const;

export type SystemErrorCode = keyof typeof ERROR_MEANINGS;

/** A sender may add context under other keys; they are kept, but not part of this type. */
export type ErrorData = {
  /** An integer from 400 to 599; a smaller or larger number is not an error code. */
  readonly code: number;
  readonly message: string;
  /** For programs, `UPPER_SNAKE`. Absent: the reason of the code. */
  readonly reason?: string;
  /** Data for the reason. */
  readonly data?: Json;
  /** Absent: as the code says. */
  readonly retryable?: boolean;
  readonly cause?: ErrorData;
  /** The parts of an `AggregateError`, each as one text. */
  readonly errors?: readonly { readonly code: number; readonly message: string }[];
};

/** Limit of characters of one error text; a whole chain still fits an NDJSON line. */
const ERROR_TEXT_LENGTH_MAX = 1_024;

/** Marks instances, so that `instanceof` holds between two copies of the package. */
const FAILURE = Symbol.for("millrace.failure");

/** Options of `Failure`. */
export interface FailureOptions<Reason extends string = string, Data = unknown> extends ErrorOptions {
  /** For programs: an `UPPER_SNAKE` word. Default: the reason of the code, like `NOT_FOUND` for 404. */
  readonly reason?: Reason;
  /** JSON that belongs to the reason. */
  readonly data?: Data;
  /** Whether the same request, under the same id, can succeed later. Default: true for 429, 502, 503 and 504. */
  readonly retryable?: boolean;
}

/** An answer of kind `error`. Handlers throw it to choose code and reason; any other thrown value is a 500. */
export class Failure<Reason extends string = string, Data = Json | undefined> extends Error {
  override readonly name = "Failure";
  /** From 400 to 599. */
  readonly code: number;
  /** For programs. The kernel's list is closed (`KernelReason`), that of an app is open. */
  readonly reason: Reason;
  readonly data: Data;
  /** Whether the same request, under the same id, can succeed later. */
  readonly retryable: boolean;
  /** Other keys of the error data that it was read from. */
  readonly extras: JsonObject;

  constructor(code: number, message: string, options: FailureOptions<Reason, Data> = {}, extras: JsonObject = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    const { reason, data, retryable } = options;
    if (!isErrorCode(code)) throw new RangeError(`a failure needs a code from 400 to 599, got ${show(code)}`);
    if (reason !== undefined && !isReason(reason)) {
      throw new RangeError(`the reason of a failure is a word like SOLD_OUT, got ${show(reason)}`);
    }
    this.code = code;
    this.reason = reason ?? (reasonOf(code) as string as Reason);
    this.data = (data === undefined ? undefined : copyOf(data)) as Data;
    this.retryable = retryable ?? isRetryable(code);
    this.extras = extras;
  }

  get [FAILURE](): true {
    return true;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this method
    return isBranded(this, Failure, FAILURE, value);
  }
}

/** The deepest cause still fits the depth of a message. */
const FAILURE_LIMITS: JsonLimits = {
  ...DATA_LIMITS,
  bytesMax: FAILURE_DATA_BYTES_MAX,
  depthMax: DEPTH_MAX - ERROR_CAUSE_DEPTH_MAX - 2,
};

function cloneFailureData(data: unknown): Clone {
  return cloneData(data, FAILURE_LIMITS, "a failure");
}

function copyOf(data: unknown): Json {
  const clone = cloneFailureData(data);
  if (clone.kind === "clone") return clone.value;
  throw new TypeError(`the data of a failure is JSON: ${problemText(within("data", clone.problem))}`);
}

/** Whether an error is a `Failure`, and of this reason if one is named. */
export function isFailure<Reason extends string = string>(
  error: unknown,
  reason?: Reason,
): error is Failure<Reason, Json | undefined> {
  return error instanceof Failure && (reason === undefined || error.reason === reason);
}

export function isErrorCode(code: unknown): code is number {
  return Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599;
}

/** Optional fields of error data besides code and message. */
export type ErrorExtras = Pick<ErrorData, "reason" | "data" | "cause">;

/** Error data for a system code; the message defaults to the code's meaning. */
export function errorData(
  code: SystemErrorCode,
  message: string = ERROR_MEANINGS[code],
  extras: ErrorExtras = {},
): ErrorData {
  return { code, message: cleanErrorText(message), ...extras };
}

/**
 * Error data for a thrown value: 500, or the code, reason and data of a `Failure`, with the chain of causes as far as
 * the limit. The parts of an `AggregateError` are in `errors`.
 */
export function fromError(thrown: unknown): ErrorData {
  const links: ErrorData[] = [];
  for (let link = thrown; link !== undefined && links.length <= ERROR_CAUSE_DEPTH_MAX; link = causeOf(link)) {
    const errors = partsOf(link).map((part) => ({ code: codeOf(part), message: thrownText(part) }));
    const { code, ...more } = readOr(() => particularsOf(link), UNREADABLE);
    links.push({ ...more, code, message: ownText(link), ...(errors.length === 0 ? {} : { errors }) });
  }
  if (links.length === 0) return { code: 500, message: "undefined was thrown" };
  return links.reduceRight((cause, link) => ({ ...link, cause }));
}

const UNREADABLE = { code: 500 };

/**
 * The keys of error data that a failure adds to its text. A value of the code's own is left out: the reader knows it.
 */
function particularsOf(thrown: unknown): Omit<ErrorData, "message"> {
  if (!(thrown instanceof Failure) || !isErrorCode(thrown.code)) return UNREADABLE;
  const { code, reason, data, retryable, extras } = thrown;
  const copy = data === undefined ? undefined : cloneFailureData(data);
  const context = cloneFailureData(extras);
  return {
    ...(context.kind === "clone" ? (context.value as JsonObject) : {}),
    code,
    ...(isReason(reason) && reason !== reasonOf(code) ? { reason } : {}),
    ...(copy?.kind === "clone" ? { data: copy.value } : {}),
    ...(typeof retryable === "boolean" && retryable !== isRetryable(code) ? { retryable } : {}),
  };
}

/** The failure that error data describes, with its causes and every other key. SPEC: M43. */
export function failureFrom({ code, message, reason, data, retryable, cause, ...extras }: ErrorData): Failure {
  return new Failure(
    code,
    message,
    {
      ...(reason === undefined ? {} : { reason }),
      ...(data === undefined ? {} : { data }),
      ...(retryable === undefined ? {} : { retryable }),
      ...(cause === undefined ? {} : { cause: failureFrom(cause) }),
    },
    extras,
  );
}

/** Why `value` is not error data; undefined if it is. */
export function findErrorDataProblem(value: unknown, links = 0): Problem | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { path: "", problem: `must be an object with code and message, got ${show(value)}` };
  }
  const { code, message, reason, data, retryable, cause } = value as { readonly [key: string]: unknown };
  if (!isErrorCode(code)) {
    return { path: "code", problem: `must be an integer from 400 to 599, got ${show(code)}` };
  }
  if (typeof message !== "string") return { path: "message", problem: `must be a string, got ${show(message)}` };
  if (reason !== undefined && !isReason(reason))
    return { path: "reason", problem: `must be a word like SOLD_OUT, got ${show(reason)}` };
  const clone = data === undefined ? undefined : cloneFailureData(data);
  if (clone?.kind === "impure") return within("data", clone.problem);
  if (retryable !== undefined && typeof retryable !== "boolean")
    return { path: "retryable", problem: `must be true or false, got ${show(retryable)}` };
  if (cause === undefined) return undefined;
  if (links === ERROR_CAUSE_DEPTH_MAX) {
    return { path: "cause", problem: `must end after ${ERROR_CAUSE_DEPTH_MAX} causes` };
  }
  const problem = findErrorDataProblem(cause, links + 1);
  return problem === undefined ? undefined : within("cause", problem);
}

function codeOf(thrown: unknown): number {
  return readOr(() => (thrown instanceof Failure ? thrown.code : 500), 500);
}

function causeOf(thrown: unknown): unknown {
  return readOr(() => (thrown instanceof Error ? thrown.cause : undefined), undefined);
}

/**
 * A thrown value as one text: its message, the parts of an `AggregateError`, and causes not yet mentioned. SPEC: M37.
 */
export function thrownText(thrown: unknown): string {
  let text = "";
  let link = thrown;
  for (let links = 0; links <= ERROR_CAUSE_DEPTH_MAX && (links === 0 || link !== undefined); links++) {
    // Only the first line of a cause: engines append lists of files.
    const own = links === 0 ? ownText(link) : (ownText(link).split("\n", 1)[0] as string);
    if (!text.includes(own)) text = text === "" ? own : `${text}: ${own}`;
    const parts = partsOf(link)
      .map(ownText)
      .filter((part) => !text.includes(part));
    if (parts.length > 0) text = `${text === "" ? "" : `${text}: `}${parts.join("; ")}`;
    link = causeOf(link);
  }
  return cleanErrorText(text);
}

/** The text of one thrown value, without causes and parts. */
function ownText(thrown: unknown): string {
  const text = readOr(() => rawText(thrown), "an unprintable value was thrown");
  return cleanErrorText(withoutSource(text));
}

function rawText(thrown: unknown): string {
  if (thrown instanceof Error) return String(thrown.message || (partsOf(thrown).length > 0 ? "" : thrown.name));
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const { message } = thrown as { readonly message?: unknown };
  if (typeof message === "string" && message !== "") return message;
  const text = "toString" in thrown ? String(thrown) : "[object ";
  return text.startsWith("[object ") || Array.isArray(thrown) ? shownValue(thrown, SHOWN_DEPTH_MAX) : text;
}

/** A thrown object as text similar to JSON, of bounded size. */
function shownValue(value: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, SHOWN_TEXT_LENGTH_MAX));
  if (typeof value !== "object" || value === null) return String(value);
  if (depth === 0) return "…";
  const keys = Object.keys(value);
  const shown = keys.slice(0, SHOWN_ENTRIES_MAX).map((key) => {
    const child = shownValue((value as { readonly [key: string]: unknown })[key], depth - 1);
    return Array.isArray(value) ? child : `${JSON.stringify(key)}:${child}`;
  });
  if (keys.length > shown.length) shown.push("…");
  return Array.isArray(value) ? `[${shown.join(",")}]` : `{${shown.join(",")}}`;
}

const SHOWN_DEPTH_MAX = 3;
const SHOWN_ENTRIES_MAX = 16;
const SHOWN_TEXT_LENGTH_MAX = 256;

/** Source lines, the marks below them, and stack lines, which some runtimes put into an error's text. */
const SOURCE_LINE = /^\s*(?:\d* *\|.*|[\^~]+|at .*(?:[:)]\d*:?\d*\)?|\)|>))\s*$/;

/** Clients must not see our source. */
function withoutSource(text: string): string {
  if (!text.includes("\n")) return text;
  const lines = text.split("\n").filter((line) => !SOURCE_LINE.test(line));
  return lines.length === 0 ? text.slice(0, text.indexOf("\n")) : lines.join("\n").trim();
}

/** The parts of an `AggregateError`. */
function partsOf(thrown: unknown): readonly unknown[] {
  return readOr(() => {
    const { errors } = thrown instanceof Error ? (thrown as { readonly errors?: unknown }) : {};
    return Array.isArray(errors) ? errors.slice(0, ERROR_CAUSE_DEPTH_MAX) : [];
  }, []);
}

/**
 * Reading a thrown value may run foreign code (accessors, `toString`, proxies); if that throws too, `fallback` is used.
 */
function readOr<T>(read: () => T, fallback: T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Makes a text valid for a message: well-formed, without NUL, of bounded length. */
export function cleanErrorText(text: string): string {
  const clipped = text.length > ERROR_TEXT_LENGTH_MAX ? `${text.slice(0, ERROR_TEXT_LENGTH_MAX)}…` : text;
  return clipped.toWellFormed().replaceAll("\0", "\ufffd");
}

/** An error as one line for the journal, with its causes. */
export function errorText(error: unknown): string {
  const texts: string[] = [];
  for (let link: ErrorData | undefined = fromError(error); link !== undefined; link = link.cause)
    texts.push(link.message);
  return texts.join(", because: ");
}
