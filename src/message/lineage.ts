/**
 * Creates messages and their lineage: the metadata that a message inherits from its cause. SPEC: M15, M16.
 *
 * Ids and timestamps come from the host through the interface `Mint`. The functions check the type; the purity of
 * `data` is checked once, where a message enters the loop or the journal.
 */

import { contentId } from "./content-id.ts";
import { isMessageType, type Kind, type Message, type Metadata, TYPE_LENGTH_MAX } from "./envelope.ts";
import type { ErrorData } from "./error-data.ts";
import type { Json } from "./json.ts";
import { MillraceError } from "./millrace-error.ts";
import { show } from "./problem.ts";

/** The parts of the host used here: the time in milliseconds, and new unique ids. */
export interface Mint {
  now(): number;
  /** `nowMs` is the last result of `now`. */
  id(nowMs?: number): string;
}

/** Metadata that a caller may set: all but id and timestamp. */
export type Lineage = Omit<Partial<Metadata>, "id" | "timestamp"> & { readonly id?: never; readonly timestamp?: never };

/** The part of a message that its answer needs. */
export type Answerable = Pick<Message<unknown>, "type" | "metadata">;

/** The given text is not a message type. */
export class MessageTypeError extends MillraceError<"MESSAGE_TYPE_INVALID"> {
  override readonly name = "MessageTypeError";

  constructor(type: unknown) {
    super(
      "MESSAGE_TYPE_INVALID",
      `a message type is two PascalCase names joined by a dot, like Memory.Get, of at most ${TYPE_LENGTH_MAX} characters; got ${show(type)}`,
    );
  }
}

/** Makes a command. */
export function commandMessage<Data extends Json>(
  mint: Mint,
  type: string,
  data: Data,
  lineage?: Lineage,
): Message<Data> {
  return make(mint, "command", type, data, lineage);
}

/** Makes a query. */
export function queryMessage<Data extends Json>(
  mint: Mint,
  type: string,
  data: Data,
  lineage?: Lineage,
): Message<Data> {
  return make(mint, "query", type, data, lineage);
}

/** Makes an event. */
export function eventMessage<Data extends Json>(
  mint: Mint,
  type: string,
  data: Data,
  lineage?: Lineage,
): Message<Data> {
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
 * The lineage of a consequence of `parent`: causation (the parent's id), correlation, label, and trace context with the
 * parent's span as the parent span.
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
  // Equals the result of `make` in one step: most requests have no lineage, and each is answered.
  const timestamp = mint.now();
  return { kind, type, data, metadata: { causation, id: mint.id(timestamp), timestamp } };
}

function make<Data>(mint: Mint, kind: Kind, type: string, data: Data, lineage?: Lineage): Message<Data> {
  if (!isMessageType(type)) throw new MessageTypeError(type);
  const timestamp = mint.now();
  // Id and timestamp come last, so that untyped callers cannot override them.
  return { kind, type, data, metadata: { ...lineage, id: mint.id(timestamp), timestamp } };
}

/** `version-traceId-parentId-flags`, with further fields in later versions. */
const TRACEPARENT = /^([0-9a-f]{2}-[0-9a-f]{32})-[0-9a-f]{16}(-.*)$/;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{4})-([0-9a-f]{12})$/;

/**
 * The W3C trace context of a consequence of a message with this id and context; an invalid context is returned
 * unchanged. Handling a message is a span whose id is derived from the message id, so each consequence is a child of
 * its cause without a table of spans. SPEC: M38.
 */
export function childOf(traceparent: string, messageId: string): string {
  const fields = TRACEPARENT.exec(traceparent);
  return fields ? `${fields[1]}-${spanIdOf(messageId)}${fields[2]}` : traceparent;
}

/** The id of the span in which a message is handled: 16 hexadecimal digits, not all zero. */
export function spanIdOf(messageId: string): string {
  const uuid = UUID.exec(messageId);
  // The last two groups of a UUID hold 62 random bits.
  const digits = uuid ? `${uuid[1]}${uuid[2]}` : contentId(["span", messageId]).slice(0, 16);
  return digits === NO_SPAN ? "0000000000000001" : digits;
}

const NO_SPAN = "0".repeat(16);
