/**
 * Conversion between messages and journal rows. An entry is encoded into columns once, before the transaction. Both
 * directions keep every key of the envelope; a row inserted by hand with only the ADR's columns becomes an event with a
 * derived id.
 */

import { checkMessage, type Message, type Metadata } from "../../message/envelope.ts";
import { thrownText } from "../../message/error-data.ts";
import type { Json, JsonObject } from "../../message/json.ts";
import { topicType } from "../../message/topic.ts";
import type { Delivery, DoneOutcome, JournalEntry, JournalRow, JournalStatus } from "../journal.ts";
import { type Rejection, rejected } from "../rejection.ts";
import { checkEnding, checkName } from "../request-check.ts";
import { sameMessage, sameSource } from "../same-message.ts";
import type { Row } from "./connection.ts";
import { digestOf, erasedDigest } from "./erased-text.ts";
import type { SignedColumns } from "./journal-hash.ts";
import { jsonText } from "./json-text.ts";

/** The `next_attempt_at` of a row that waits for consumers; never reached. */
export const PARKED_S = Number.POSITIVE_INFINITY;

/**
 * An entry as columns, except values known only in the transaction: its id, its hash, and whether its lease is live.
 */
export interface EncodedEntry extends SignedColumns {
  readonly as: JournalEntry["as"];
  /** Bytes of payload and metadata. */
  readonly bytes: number;
}

export type Encoded =
  | {
      readonly kind: "encoded";
      readonly entries: readonly EncodedEntry[];
      readonly bytes: number;
      /** The reasons for entries that were left out, by index. */
      readonly leftOut?: ReadonlyMap<number, Rejection> | undefined;
    }
  | Rejection;

export function encodeEntries(
  entries: readonly JournalEntry[],
  nowMs: number,
  payloadBytesMax: number,
  leaveOut?: "too-large",
): Encoded {
  const encoded: EncodedEntry[] = [];
  let bytes = 0;
  let leftOut: Map<number, Rejection> | undefined;
  for (let at = 0; at < entries.length; at++) {
    const one = encodeEntry(entries[at]!, nowMs);
    if (one.bytes > payloadBytesMax) {
      const what = `message ${one.messageId} has ${one.bytes} bytes`;
      const refusal = rejected("refused", "too-large", `${what}; a journal row takes ${payloadBytesMax}`);
      // An entry that would leave an empty list is refused.
      if (leaveOut === undefined || (encoded.length === 0 && at === entries.length - 1)) return refusal;
      leftOut ??= new Map();
      leftOut.set(at, refusal);
      continue;
    }
    encoded.push(one);
    bytes += one.bytes;
  }
  return { kind: "encoded", entries: encoded, bytes, leftOut };
}

function encodeEntry({ message, topic, source, as }: JournalEntry, nowMs: number): EncodedEntry {
  const { id, timestamp, correlation, causation } = message.metadata;
  checkName("a topic", topic);
  checkName("a source", source);
  checkName("a message's id", id);
  if (correlation !== undefined) checkName("a correlation", correlation);
  if (typeof causation === "string") checkName("a causation", causation);
  if (as.status === "failed") checkName("an error", as.error);
  if (as.status === "done" && as.ending !== undefined) checkEnding(as.ending);
  const payload = jsonText("a message's data", message.data);
  const metadata = furtherMetadata(message.metadata);
  const bytes = Buffer.byteLength(payload);
  return {
    createdAt: nowMs / 1_000,
    topic,
    source,
    payload,
    messageId: id,
    kind: message.kind,
    type: message.type,
    correlation: correlation ?? null,
    causation: causation ?? null,
    timestamp: timestamp === nowMs ? null : timestamp,
    metadata,
    as,
    bytes: metadata === null ? bytes : Math.max(bytes, Buffer.byteLength(metadata)),
  };
}

/** Metadata without its own column: unknown keys, and a causation that is `null` rather than absent. */
function furtherMetadata(metadata: Metadata): string | null {
  let further: [string, Json][] | undefined;
  // Pure JSON inherits no enumerable property, and this loop creates no list of keys.
  for (const key in metadata) {
    if (key === "id" || key === "timestamp" || key === "correlation") continue;
    const value = metadata[key];
    if (value === undefined || (key === "causation" && value !== null)) continue;
    further ??= [];
    further.push([key, value]);
  }
  return further === undefined ? null : jsonText("a message's metadata", Object.fromEntries(further));
}

/** The public form of a row; `deliveries` are those of this row. */
export function journalRow(row: Row, deliveries: readonly Delivery[]): JournalRow {
  const read = readMessage(row);
  const { processed_at, error, outcome, reason, next_attempt_at, lease } = row;
  const deaths = Number(row["deaths"]);
  return {
    id: Number(row["id"]),
    topic: String(row["topic"]),
    source: String(row["source"]),
    ...read,
    status: row["status"] as JournalStatus,
    createdAtMs: toMs(row["created_at"]),
    ...(processed_at === null ? {} : { processedAtMs: toMs(processed_at) }),
    ...(error === null ? {} : { error: String(error) }),
    ...(outcome === null ? {} : { outcome: outcome as DoneOutcome, reason: String(reason ?? "") }),
    attempts: Number(row["attempts"]),
    ...(deaths === 0 ? {} : { deaths }),
    ...(next_attempt_at === null || next_attempt_at === PARKED_S ? {} : { nextAttemptAtMs: toMs(next_attempt_at) }),
    ...(lease === null ? {} : { lease: Number(lease) }),
    deliveries,
  };
}

export function toMs(seconds: unknown): number {
  return Math.round(Number(seconds) * 1_000);
}

/** Whether a row contains the message of an entry, with the same topic and, except for commands, the same source. */
export function holdsSameContent(row: Row, entry: EncodedEntry): boolean {
  if (row["topic"] !== entry.topic) return false;
  const { message: stored } = readMessage(row);
  if (stored === undefined) return false;
  const message = rebuild(asRow(entry));
  const isFrom = sameSource({ message: stored, source: String(row["source"]) }, { message, source: entry.source });
  const erased = erasedDigest(String(row["payload"]));
  if (erased === undefined) return isFrom && sameMessage(stored, message);
  return isFrom && row["kind"] === entry.kind && digestOf(entry.payload) === erased;
}

/** The columns that a message is rebuilt from. */
function asRow(entry: EncodedEntry): Row {
  return {
    id: null,
    topic: entry.topic,
    payload: entry.payload,
    created_at: entry.createdAt,
    message_id: entry.messageId,
    kind: entry.kind,
    type: entry.type,
    correlation_id: entry.correlation,
    causation_id: entry.causation,
    timestamp: entry.timestamp,
    metadata: entry.metadata,
  };
}

function readMessage(row: Row): { message: Message } | { message: undefined; unreadable: string } {
  try {
    const message = rebuild(row);
    // Our own rows were checked before; rows inserted by hand were not.
    if (row["hash"] === null) {
      const checked = checkMessage(message);
      if (checked.kind === "refused") return { message: undefined, unreadable: checked.message };
    }
    return { message };
  } catch (error) {
    return { message: undefined, unreadable: `journal row ${row["id"]} is no message: ${thrownText(error)}` };
  }
}

function rebuild(row: Row): Message {
  const { topic, payload, message_id, type, correlation_id, causation_id, timestamp, metadata } = row;
  const further = metadata === null ? undefined : (JSON.parse(String(metadata)) as JsonObject);
  return {
    kind: row["kind"] as Message["kind"],
    type: type === null ? topicType(String(topic)) : String(type),
    data: JSON.parse(String(payload)) as Json,
    metadata: {
      id: message_id === null ? `journal-${row["id"]}` : String(message_id),
      timestamp: timestamp === null ? toMs(row["created_at"]) : Number(timestamp),
      ...(correlation_id === null ? {} : { correlation: String(correlation_id) }),
      ...(causation_id === null ? {} : { causation: String(causation_id) }),
      ...further,
    },
  };
}
