/**
 * The makers of messages, and lineage: what a message takes over from the one that caused it. SPEC: M15, M16.
 *
 * Ids and timestamps come from the host, through the small `Mint` that this room asks for. The makers check the type;
 * that `data` is pure JSON is checked once, where a message enters the loop or the journal.
 */

import { isMessageType, type Kind, type Message, type Metadata, TYPE_LENGTH_MAX } from "./envelope.ts";
import type { ErrorData } from "./error-data.ts";
import type { Json } from "./json.ts";
import { MillraceError } from "./millrace-error.ts";
import { show } from "./problem.ts";
import { childOf } from "./trace-context.ts";

/** What a maker needs of the host: the time in milliseconds, and a new unique id. */
export interface Mint {
  now(): number;
  /** `nowMs` is what `now` has just said. */
  id(nowMs?: number): string;
}

/** Metadata that a caller may give: everything but what the mint decides. */
export type Lineage = Omit<Partial<Metadata>, "id" | "timestamp"> & { readonly id?: never; readonly timestamp?: never };

export type Answerable = Pick<Message<unknown>, "type" | "metadata">;

/** A maker was given a type that no message can have. */
export class MessageTypeError extends MillraceError<"MESSAGE_TYPE_INVALID"> {
  override readonly name = "MessageTypeError";

  constructor(type: unknown) {
    super(
      "MESSAGE_TYPE_INVALID",
      `a message type is two PascalCase names joined by a dot, like Memory.Get, of at most ${TYPE_LENGTH_MAX} characters; got ${show(type)}`,
    );
  }
}

export function command<Data extends Json>(mint: Mint, type: string, data: Data, lineage?: Lineage): Message<Data> {
  return make(mint, "command", type, data, lineage);
}

export function query<Data extends Json>(mint: Mint, type: string, data: Data, lineage?: Lineage): Message<Data> {
  return make(mint, "query", type, data, lineage);
}

export function event<Data extends Json>(mint: Mint, type: string, data: Data, lineage?: Lineage): Message<Data> {
  return make(mint, "event", type, data, lineage);
}

/** The answer to `request`: its type, and its id as causation. */
export function reply<Data extends Json>(mint: Mint, request: Answerable, data: Data): Message<Data> {
  return answer(mint, "reply", request, data);
}

/** The failed answer to `request`: its type, and its id as causation. */
export function error(mint: Mint, request: Answerable, data: ErrorData): Message<ErrorData> {
  return answer(mint, "error", request, data);
}

/**
 * The lineage of a consequence of `parent`: the parent's id as causation, its correlation, its label, and its trace context with
 * the parent's own span as the parent span.
 */
export function causedBy(parent: Pick<Message<unknown>, "metadata">): Lineage {
  const { id, correlation, traceparent, tracestate, label } = parent.metadata;
  const lineage: { -readonly [Key in keyof Lineage]: Lineage[Key] } = { causation: id };
  if (correlation !== undefined) lineage.correlation = correlation;
  if (typeof traceparent === "string") lineage["traceparent"] = childOf(traceparent, id);
  else if (traceparent !== undefined) lineage["traceparent"] = traceparent;
  if (tracestate !== undefined) lineage["tracestate"] = tracestate;
  if (label !== undefined) lineage.label = label;
  return lineage;
}

function answer<Data>(mint: Mint, kind: Kind, request: Answerable, data: Data): Message<Data> {
  const { type, metadata } = request;
  const { id: causation, correlation, traceparent, tracestate, label } = metadata;
  const carriesTrace = traceparent !== undefined || tracestate !== undefined;
  const carriesMore = correlation !== undefined || carriesTrace || label !== undefined;
  if (carriesMore || !isMessageType(type)) return make(mint, kind, type, data, causedBy(request));
  // What `make` would make of it, in one piece: most requests carry nothing on, and every one is answered.
  const timestamp = mint.now();
  return { kind, type, data, metadata: { causation, id: mint.id(timestamp), timestamp } };
}

function make<Data>(mint: Mint, kind: Kind, type: string, data: Data, lineage?: Lineage): Message<Data> {
  if (!isMessageType(type)) throw new MessageTypeError(type);
  const timestamp = mint.now();
  // Spread last to first in meaning: what the mint decides cannot be overridden by untyped callers.
  return { kind, type, data, metadata: { ...lineage, id: mint.id(timestamp), timestamp } };
}
