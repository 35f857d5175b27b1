/**
 * Error data, `{ code, message, cause? }`: the data of an `error` message, created from a code or a thrown value. SPEC:
 * M13, M14.
 *
 * Error data is bounded: the `cause` chain, which may be cyclic, ends after a fixed number of links, texts are clipped,
 * and stacks are removed because they reveal our files to a client.
 */

import { ERROR_CAUSE_DEPTH_MAX } from "../limits.ts";
import { type Problem, show, within } from "./problem.ts";

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
  readonly cause?: ErrorData;
  /** The parts of an `AggregateError`, each as one text. */
  readonly errors?: readonly { readonly code: number; readonly message: string }[];
};

/** Limit of characters of one error text; a whole chain still fits an NDJSON line. */
const ERROR_TEXT_LENGTH_MAX = 1_024;

/** Thrown by a handler to choose the code of its error answer; any other thrown value is a 500. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: number;

  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    if (!isErrorCode(code)) throw new RangeError(`a failure needs a code from 400 to 599, got ${show(code)}`);
    this.code = code;
  }
}

export function isErrorCode(code: unknown): code is number {
  return Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599;
}

/** Error data for a system code; the message defaults to the code's meaning. */
export function errorData(code: SystemErrorCode, message: string = ERROR_MEANINGS[code], cause?: ErrorData): ErrorData {
  const text = cleanErrorText(message);
  return cause === undefined ? { code, message: text } : { code, message: text, cause };
}

/**
 * Error data for a thrown value: 500, or the code of a `Failure`, with its causes up to the limit. The parts of an
 * `AggregateError` are in `errors`.
 */
export function fromError(thrown: unknown): ErrorData {
  const links: ErrorData[] = [];
  for (let link = thrown; link !== undefined && links.length <= ERROR_CAUSE_DEPTH_MAX; link = causeOf(link)) {
    const errors = partsOf(link).map((part) => ({ code: codeOf(part), message: thrownText(part) }));
    links.push({ code: codeOf(link), message: ownText(link), ...(errors.length === 0 ? {} : { errors }) });
  }
  if (links.length === 0) return { code: 500, message: "undefined was thrown" };
  return links.reduceRight((cause, link) => ({ ...link, cause }));
}

/** Converts error data to a `Failure` with its causes, so that a handler can rethrow it. */
export function failureOf({ code, message, cause }: ErrorData): Failure {
  return new Failure(code, message, cause === undefined ? {} : { cause: failureOf(cause) });
}

/** Why `value` is not error data; undefined if it is. */
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
