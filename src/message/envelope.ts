/**
 * The envelope: what a message is, `{ kind, type, data, metadata }`, and the check that a value is one. SPEC: M1-M5.
 *
 * The check never replaces what it checked: the message that is dispatched is the very value that came in, so that
 * metadata which this version does not know (trace context, for one) is kept. It does not know any capability's
 * schema; `data` is only required to be there and, in an `error`, to be error data.
 */

import { TOPIC_LENGTH_MAX } from "../limits.ts";
import { findErrorDataProblem } from "./error-data.ts";
import { findImpurity, isCleanText, type Json, type JsonLimits, VALUE_LIMITS } from "./json.ts";
import { type Problem, problemText, show, within } from "./problem.ts";

/** A request to change something, a question, a past fact, and the two ways a request can be answered. */
export const KINDS = ["command", "query", "event", "reply", "error"] as const;
export type Kind = (typeof KINDS)[number];

export interface Metadata {
  /** Unique; the host mints UUIDv7, other senders may use what they like. */
  readonly id: string;
  /** Milliseconds since 1970 by the sender's clock. Not an order: clocks step back. */
  readonly timestamp: number;
  /** Names the conversation; passed on unchanged to everything that a message causes. */
  readonly correlation?: string;
  /** The id of the message that directly caused this one. `null` means the same as absent; see `causationOf`. */
  readonly causation?: string | null;
  /** Names of what it was made of that not everybody may know; passed on to everything that the message causes. */
  readonly label?: readonly string[];
  readonly [key: string]: Json | undefined;
}

export interface Message<Data = Json> {
  readonly kind: Kind;
  readonly type: string;
  readonly data: Data;
  readonly metadata: Metadata;
}

export interface Accepted {
  readonly kind: "accepted";
  readonly message: Message;
}

/** Why a message was not taken, with what an adapter needs to answer its sender. */
export interface Refused {
  readonly kind: "refused";
  readonly code: 400 | 413 | 422;
  readonly message: string;
  /** As far as they could be read and are valid themselves. */
  readonly id?: string;
  readonly type?: string;
  readonly correlation?: string;
}

export type Checked = Accepted | Refused;

/** Ids are keys of an index in every store, and Postgres takes no index key above 2,704 bytes. */
export const ID_LENGTH_MAX = 255;
/** Long enough that every topic has a type: a topic of one segment gains the prefix `Topic.`. */
export const TYPE_LENGTH_MAX = TOPIC_LENGTH_MAX + "Topic.".length;

/** Checks a message that was made in this process: it must be pure JSON and a valid envelope. */
export function checkMessage(value: unknown, limits: JsonLimits = VALUE_LIMITS): Checked {
  const impurity = findImpurity(value, limits);
  return impurity === undefined ? checkEnvelope(value) : refuse(value, impurity);
}

/** Checks the envelope only, of a value that is known to be pure JSON because it was just parsed or already checked. */
export function checkEnvelope(value: unknown): Checked {
  const problem = findEnvelopeProblem(value);
  // The one place where a value becomes a Message: every field was just checked.
  return problem === undefined ? { kind: "accepted", message: value as Message } : refuse(value, problem);
}

/** The id of the direct parent, with `null` read as absent. */
export function causationOf(message: Pick<Message<unknown>, "metadata">): string | undefined {
  return message.metadata.causation ?? undefined;
}

/** A text that is a type, the last one found: a request, its answer and the next request often have the same. */
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

/** Where the PascalCase segment that starts at `start` ends; `start` itself if none starts there. */
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

/** A string that can name a message or a conversation. */
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

/** A field that we do not know would be lost on the way through journals and other formats, so it is refused here. */
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

/** What can be read of a message that is otherwise invalid, so that its sender can tell which one was refused. */
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

/** The value may be anything here, so nothing but plain own data is touched. */
function dataProperty(value: unknown, key: string): unknown {
  return isObject(value) ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
