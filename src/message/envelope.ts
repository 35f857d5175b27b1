/**
 * The envelope of a message, `{ kind, type, data, metadata }`, and its check. SPEC: M1-M5.
 *
 * The check returns the given value itself, so that metadata unknown to this version (trace context, for example) is
 * kept. Schemas of capabilities are checked elsewhere; `data` must only exist and, in an `error`, be error data.
 */

import { TOPIC_LENGTH_MAX } from "../limits.ts";
import { findErrorDataProblem } from "./error-data.ts";
import { findImpurity, isCleanText, type Json, type JsonLimits, VALUE_LIMITS } from "./json.ts";
import { type Problem, problemText, show, within } from "./problem.ts";

/** A request to change state, a request to read, a fact, and the two kinds of answer. */
export const KINDS = ["command", "query", "event", "reply", "error"] as const;
/** The kinds of messages. */
export type Kind = (typeof KINDS)[number];

/** Identity, time and lineage of a message. */
export interface Metadata {
  /** Unique; the host creates UUIDv7, other senders may use any text. */
  readonly id: string;
  /** Milliseconds since 1970 by the sender's clock. Not an order: clocks step back. */
  readonly timestamp: number;
  /** Identifies the conversation; copied to every consequence of a message. */
  readonly correlation?: string;
  /** The id of the message that directly caused this one. `null` means the same as absent; see `causationOf`. */
  readonly causation?: string | null;
  /** Taint label; copied to every consequence of the message. */
  readonly label?: readonly string[];
  readonly [key: string]: Json | undefined;
}

/** The envelope of all messages. */
export interface Message<Data = Json> {
  readonly kind: Kind;
  readonly type: string;
  readonly data: Data;
  readonly metadata: Metadata;
}

/** A message that has passed the check. */
export interface Accepted {
  readonly kind: "accepted";
  readonly message: Message;
}

/** Why a message was refused, with the data for an answer to its sender. */
export interface Refused {
  readonly kind: "refused";
  readonly code: 400 | 413 | 422;
  readonly message: string;
  /** Present if they could be read and are valid. */
  readonly id?: string;
  readonly type?: string;
  readonly correlation?: string;
}

/** The result of the check of a message. */
export type Checked = Accepted | Refused;

/** Ids are index keys in every store, and Postgres limits index keys to 2,704 bytes. */
export const ID_LENGTH_MAX = 255;
/** Every topic has a type: a topic of one segment gains the prefix `Topic.`. */
export const TYPE_LENGTH_MAX = TOPIC_LENGTH_MAX + "Topic.".length;

/** Checks a message that was created in this process: it must be pure JSON and a valid envelope. */
export function checkMessage(value: unknown, limits: JsonLimits = VALUE_LIMITS): Checked {
  const impurity = findImpurity(value, limits);
  return impurity === undefined ? checkEnvelope(value) : refuse(value, impurity);
}

/** Checks only the envelope of a value that is known to be pure JSON (just parsed, or already checked). */
export function checkEnvelope(value: unknown): Checked {
  const problem = findEnvelopeProblem(value);
  // The only cast to `Message`: every field was just checked.
  return problem === undefined ? { kind: "accepted", message: value as Message } : refuse(value, problem);
}

/** The id of the direct cause; `null` counts as absent. */
export function causationOf(message: Pick<Message<unknown>, "metadata">): string | undefined {
  return message.metadata.causation ?? undefined;
}

/** Cache of the last valid type: a request, its answer and the next request often share it. */
let knownType = "Syscall.Ping";

/** `^[A-Z][a-zA-Z0-9]*\.[A-Z][a-zA-Z0-9]*$`, scanned by hand: exactly two PascalCase segments. */
export function isMessageType(text: string): boolean {
  if (text === knownType) return true;
  if (text.length > TYPE_LENGTH_MAX) return false;
  const dot = endOfSegment(text, 0);
  if (dot === 0 || text.charCodeAt(dot) !== 0x2e) return false;
  const end = endOfSegment(text, dot + 1);
  if (end === dot + 1 || end !== text.length) return false;
  knownType = text;
  return true;
}

/** End of the PascalCase segment that starts at `start`; `start` itself if there is none. */
function endOfSegment(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (!(first >= 0x41 && first <= 0x5a)) return start;
  let end = start + 1;
  while (end < text.length && isAlphanumeric(text.charCodeAt(end))) end++;
  return end;
}

function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

export function isKind(value: unknown): value is Kind {
  switch (value) {
    case "command":
    case "query":
    case "event":
    case "reply":
    case "error":
      return true;
    default:
      return false;
  }
}

/** A string that can be a message or conversation id. */
export function isId(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= ID_LENGTH_MAX;
}

interface Fields {
  readonly kind?: unknown;
  readonly type?: unknown;
  readonly data?: unknown;
  readonly metadata?: unknown;
}

function findEnvelopeProblem(value: unknown): Problem | undefined {
  if (!isObject(value)) return { path: "", problem: `a message must be an object, got ${show(value)}` };
  const { kind, type, data, metadata }: Fields = value;
  if (!isKind(kind)) return { path: "kind", problem: `must be one of ${KINDS.join(", ")}; got ${show(kind)}` };
  if (typeof type !== "string" || !isMessageType(type)) {
    return {
      path: "type",
      problem: `must be two PascalCase names joined by a dot, like Memory.Get; got ${show(type)}`,
    };
  }
  if (data === undefined) return { path: "data", problem: "is required; use null for none" };
  if (!isObject(metadata)) return { path: "metadata", problem: `must be an object, got ${show(metadata)}` };
  const problem = findMetadataProblem(metadata, kind === "reply" || kind === "error");
  if (problem !== undefined) return within("metadata", problem);
  if (kind === "error") {
    const inData = findErrorDataProblem(data);
    if (inData !== undefined) return within("data", inData);
  }
  return findStrangeField(value);
}

function findMetadataProblem(metadata: object, answers: boolean): Problem | undefined {
  const { id, timestamp, correlation, causation } = metadata as {
    [name in "id" | "timestamp" | "correlation" | "causation"]?: unknown;
  };
  if (!isId(id)) return notAnId("id", id);
  if (!Number.isSafeInteger(timestamp) || (timestamp as number) < 0) {
    return { path: "timestamp", problem: `must be a non-negative integer, got ${show(timestamp)}` };
  }
  if (correlation !== undefined && !isId(correlation)) return notAnId("correlation", correlation);
  if (causation === undefined || causation === null) {
    return answers
      ? { path: "causation", problem: "is required in a reply or error: the id of the request" }
      : undefined;
  }
  return isId(causation) ? undefined : notAnId("causation", causation);
}

function notAnId(path: string, value: unknown): Problem {
  return { path, problem: `must be a string of 1 to ${ID_LENGTH_MAX} characters, got ${show(value)}` };
}

/** Unknown fields are refused because journals and other formats would drop them. */
function findStrangeField(message: object): Problem | undefined {
  for (const key in message) {
    if (key === "kind" || key === "type" || key === "data" || key === "metadata") continue;
    return within(key, { path: "", problem: "is not a field of a message; put it under metadata" });
  }
  return undefined;
}

function refuse(value: unknown, problem: Problem): Refused {
  return { kind: "refused", code: 422, message: problemText(problem), ...readableNames(value) };
}

/** The readable names of an invalid message, so that its sender can identify it. */
function readableNames(value: unknown): Pick<Refused, "id" | "type" | "correlation"> {
  const names: { id?: string; type?: string; correlation?: string } = {};
  const type = dataProperty(value, "type");
  if (typeof type === "string" && isMessageType(type)) names.type = type;
  const metadata = dataProperty(value, "metadata");
  const id = dataProperty(metadata, "id");
  if (isId(id) && isCleanText(id)) names.id = id;
  const correlation = dataProperty(metadata, "correlation");
  if (isId(correlation) && isCleanText(correlation)) names.correlation = correlation;
  return names;
}

/** The value is arbitrary, so only plain own data properties are read. */
function dataProperty(value: unknown, key: string): unknown {
  return isObject(value) ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
