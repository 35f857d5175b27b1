/**
 * Error data: what a message of kind `error` says, `{ code, message, reason?, data?, cause? }`, and how it is made from a code or from
 * something thrown. SPEC: M13, M14, U73.
 *
 * A failure that is turned into data is bounded: the `cause` chain ends after a fixed number of links (it may be
 * cyclic), texts are clipped, and no stack travels, because a stack tells a client about our files.
 */

import { DEPTH_MAX, ERROR_CAUSE_DEPTH_MAX, FAILURE_DATA_LENGTH_MAX, OBJECT_KEYS_MAX } from "../limits.ts";
import type { Json, JsonLimits } from "./json.ts";
import { cloneJson } from "./json-copy.ts";
import { type Problem, problemText, show, within } from "./problem.ts";

/** The codes that the system itself uses, and what they mean. Handlers may use any code from 400 to 599. */
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

/** The reason of a failure that names none, by its code. */
const REASONS: Readonly<Record<number, string>> = {
  ...{ 400: "BAD_REQUEST", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "CONFLICT", 410: "EXPIRED", 413: "TOO_LARGE" },
  ...{ 422: "INVALID", 500: "FAILED", 502: "UPSTREAM_FAILED", 503: "UNAVAILABLE", 504: "TIMED_OUT" },
};

/** The data stand two levels deep in their message. */
const DATA_LIMITS: JsonLimits = {
  bytesMax: FAILURE_DATA_LENGTH_MAX,
  depthMax: DEPTH_MAX - 2,
  keysMax: OBJECT_KEYS_MAX,
};

/** Characters of a reason. */
const REASON_LENGTH_MAX = 64;

export type SystemErrorCode = keyof typeof ERROR_MEANINGS;

/** A sender may add context under other keys; they are kept, and this type does not name them. */
export type ErrorData = {
  /** An integer from 400 to 599; a smaller or larger number is not an error code. */
  readonly code: number;
  readonly message: string;
  /** For programs, like `SOLD_OUT`. Absent where the code says it all. */
  readonly reason?: string;
  /** Facts of the reason. */
  readonly data?: Json;
  readonly cause?: ErrorData;
  /** The parts of an `AggregateError`, each as one text. */
  readonly errors?: readonly { readonly code: number; readonly message: string }[];
};

/** Characters of one error text; a chain of them still fits an NDJSON line. */
const ERROR_TEXT_LENGTH_MAX = 1_024;

export interface FailureOptions<Data extends Json | undefined = Json | undefined> {
  /** For programs: upper-case words like `SOLD_OUT`. It follows from the code unless given. */
  readonly reason?: string | undefined;
  /** Facts of the reason, as JSON; the caller gets them. */
  readonly data?: Data;
  readonly cause?: unknown;
}

/** What a handler throws to choose the code of its error answer; everything else it throws is a 500. */
export class Failure<Reason extends string = string, Data extends Json | undefined = Json | undefined> extends Error {
  override readonly name = "Failure";
  readonly code: number;
  readonly reason: Reason;
  readonly data: Data;

  constructor(code: number, message: string, options: FailureOptions<Data> & { readonly reason?: Reason } = {}) {
    const { reason, data, ...rest } = options;
    super(message, rest);
    if (!isErrorCode(code)) throw new RangeError(`a failure needs a code from 400 to 599, got ${show(code)}`);
    if (reason !== undefined && !isReason(reason))
      throw new RangeError(
        `a reason is upper-case words like SOLD_OUT, of at most ${REASON_LENGTH_MAX} characters, got ${show(reason)}`,
      );
    this.code = code;
    this.reason = reason ?? (reasonOf(code) as Reason);
    this.data = (data === undefined ? undefined : checkedData(data)) as Data;
  }
}

/** A copy: the caller gets the data as they are now. */
function checkedData(data: Json): Json {
  const copy = cloneJson(data, DATA_LIMITS);
  if (copy.kind === "impure") throw new RangeError(`the data of a failure: ${problemText(copy.problem)}`);
  const { length } = JSON.stringify(copy.value);
  if (length <= FAILURE_DATA_LENGTH_MAX) return copy.value;
  throw new RangeError(
    `the data of a failure take ${length} characters as JSON; at most ${FAILURE_DATA_LENGTH_MAX} are carried: name what holds the rest`,
  );
}

/** The reason of a failure that names none. */
export function reasonOf(code: number): string {
  return REASONS[code] ?? (code < 500 ? "REFUSED" : "FAILED");
}

export function isReason(reason: unknown): reason is string {
  return (
    typeof reason === "string" && reason.length <= REASON_LENGTH_MAX && /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(reason)
  );
}

export function isErrorCode(code: unknown): code is number {
  return Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599;
}

/** Error data for one of the system's own codes; the message defaults to the code's meaning. */
export function errorData(code: SystemErrorCode, message: string = ERROR_MEANINGS[code], cause?: ErrorData): ErrorData {
  const text = cleanErrorText(message);
  return cause === undefined ? { code, message: text } : { code, message: text, cause };
}

/**
 * Error data for a thrown value: 500, or the code of a `Failure`, with the chain of causes as far as the limit. The parts of an
 * `AggregateError` are in `errors`.
 */
export function fromError(thrown: unknown): ErrorData {
  const links: ErrorData[] = [];
  for (let link = thrown; link !== undefined && links.length <= ERROR_CAUSE_DEPTH_MAX; link = causeOf(link)) {
    const errors = partsOf(link).map((part) => ({ code: codeOf(part), message: thrownText(part) }));
    links.push({
      ...{ code: codeOf(link), message: ownText(link), ...reasonIn(link) },
      ...(errors.length === 0 ? {} : { errors }),
    });
  }
  if (links.length === 0) return { code: 500, message: "undefined was thrown" };
  return links.reduceRight((cause, link) => ({ ...link, cause }));
}

/** The failure that error data tells of, with its causes: a handler that passes it on loses nothing. */
export function failureOf({ code, message, reason, data, cause }: ErrorData): Failure {
  return new Failure(code, message, {
    // A sender of another kind may have its own form of reasons.
    ...(isReason(reason) ? { reason } : {}),
    ...(data === undefined ? {} : { data }),
    ...(cause === undefined ? {} : { cause: failureOf(cause) }),
  });
}

/** What keeps `value` from being error data, or undefined when it is. */
export function findErrorDataProblem(value: unknown, links = 0): Problem | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { path: "", problem: `must be an object with code and message, got ${show(value)}` };
  }
  const { code, message, cause } = value as { code?: unknown; message?: unknown; cause?: unknown };
  if (!isErrorCode(code)) {
    return { path: "code", problem: `must be an integer from 400 to 599, got ${show(code)}` };
  }
  if (typeof message !== "string") return { path: "message", problem: `must be a string, got ${show(message)}` };
  if (cause === undefined) return undefined;
  if (links === ERROR_CAUSE_DEPTH_MAX) {
    return { path: "cause", problem: `must end after ${ERROR_CAUSE_DEPTH_MAX} causes` };
  }
  const problem = findErrorDataProblem(cause, links + 1);
  return problem === undefined ? undefined : within("cause", problem);
}

/** The reason and data of a failure that has its own. */
function reasonIn(thrown: unknown): Pick<ErrorData, "reason" | "data"> {
  return readOr(() => {
    if (!(thrown instanceof Failure)) return {};
    const { code, reason, data } = thrown;
    return { ...(reason === reasonOf(code) ? {} : { reason }), ...(data === undefined ? {} : { data }) };
  }, {});
}

function codeOf(thrown: unknown): number {
  return readOr(() => (thrown instanceof Failure ? thrown.code : 500), 500);
}

function causeOf(thrown: unknown): unknown {
  return readOr(() => (thrown instanceof Error ? thrown.cause : undefined), undefined);
}

/** A thrown value as one text: its message, the parts of an `AggregateError`, and the causes that it does not name itself. SPEC: M37. */
export function thrownText(thrown: unknown): string {
  let text = "";
  let link = thrown;
  for (let links = 0; links <= ERROR_CAUSE_DEPTH_MAX && (links === 0 || link !== undefined); links++) {
    // Of a cause its first line: engines add lists of files to it.
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
  const text = readOr(() => rawText(thrown), "something unprintable was thrown");
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

/** A thrown object as text like JSON, of bounded size whatever it holds. */
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

/** Lines of source code, the marks below them, and lines of a stack, which some runtimes put into the text of an error. */
const SOURCE_LINE = /^\s*(?:\d* *\|.*|[\^~]+|at .*(?:[:)]\d*:?\d*\)?|\)|>))\s*$/;

/** A client must not see our source. */
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
 * Code of strangers runs when a thrown value is read (accessors, `toString`, and of a proxy even what asks for its class); if it throws too, we
 * use `fallback`.
 */
function readOr<T>(read: () => T, fallback: T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Any text as text that a message may carry: well-formed, without NUL, of bounded length. */
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
