/**
 * Whether an appended message equals the one stored under its id. SPEC: J11.
 *
 * Events are compared with their causes, but without their time: a client that missed the answer repeats them later.
 * Commands are compared by type and data only: they may be repeated for another reason too.
 */
import type { Message } from "../message/envelope.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";

export function sameMessage(stored: Message, other: Message): boolean {
  if (stored.kind !== other.kind) return false;
  if (stored.kind === "command") return stored.type === other.type && equal(stored.data, other.data);
  return equal(withoutTime(stored), withoutTime(other));
}

/** Ignores the source of a command: it is journaled by its sender or by the capability that handles it. */
export function sameSource(stored: Sourced, other: Sourced): boolean {
  return stored.source === other.source || stored.message.kind === "command";
}

interface Sourced {
  readonly message: Message;
  readonly source: string;
}

/** A message is JSON, but its type allows optional metadata to be `undefined`. */
function withoutTime({ metadata, ...message }: Message): Json {
  return JSON.parse(JSON.stringify({ ...message, metadata: { ...metadata, timestamp: 0 } }));
}
