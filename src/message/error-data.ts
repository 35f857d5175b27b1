/**
 * Error data: what a message of kind `error` says, `{ code, message, cause? }`, and how it is made from a code or from
 * something thrown. SPEC: M13, M14.
 *
 * A failure that is turned into data is bounded: the `cause` chain ends after a fixed number of links (it may be
 * cyclic), texts are clipped, and no stack travels, because a stack tells a client about our files.
 */

import { ERROR_CAUSE_DEPTH_MAX } from "../limits.ts";
import { type Problem, show, within } from "./problem.ts";

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

export type SystemErrorCode = keyof typeof ERROR_MEANINGS;

/** A sender may add context under other keys; they are kept, and this type does not name them. */
export type ErrorData = {
  /** An integer from 400 to 599; a smaller or larger number is not an error code. */
  readonly code: number;
  readonly message: string;
  readonly cause?: ErrorData;
};

/** Characters of one error text; a chain of them still fits an NDJSON line. */
const ERROR_TEXT_LENGTH_MAX = 1_024;

/** What a handler throws to choose the code of its error answer; everything else it throws is a 500. */
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

/** Error data for one of the system's own codes; the message defaults to the code's meaning. */
export function errorData(code: SystemErrorCode, message: string = ERROR_MEANINGS[code], cause?: ErrorData): ErrorData {
  const text = cleanErrorText(message);
  return cause === undefined ? { code, message: text } : { code, message: text, cause };
}

/** Error data for something thrown: 500, or the code of a `Failure`, with the chain of causes as far as the limit. */
export function fromError(thrown: unknown): ErrorData {
  const links: ErrorData[] = [];
  for (let link = thrown; link !== undefined && links.length <= ERROR_CAUSE_DEPTH_MAX; link = causeOf(link)) {
    links.push({ code: codeOf(link), message: thrownText(link) });
  }
  if (links.length === 0) return { code: 500, message: "undefined was thrown" };
  return links.reduceRight((cause, link) => ({ ...link, cause }));
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

function codeOf(thrown: unknown): number {
  return readOr(() => (thrown instanceof Failure ? thrown.code : 500), 500);
}

function causeOf(thrown: unknown): unknown {
  return readOr(() => (thrown instanceof Error ? thrown.cause : undefined), undefined);
}

/** What something thrown says, as text that a message may carry; it may be anything. */
export function thrownText(thrown: unknown): string {
  const read = () => String(thrown instanceof Error ? thrown.message || thrown.name : thrown);
  return cleanErrorText(readOr(read, "something unprintable was thrown"));
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
