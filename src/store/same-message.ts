/**
 * Whether a message that is appended is the one that is in the journal under its id. SPEC: J11.
 *
 * An event is what it says, with its time and its causes. A command is what is asked for, whoever asks and whenever: who did not hear the answer
 * asks again under the same id, and may do so at another time or for another reason.
 */
import type { Message } from "../message/envelope.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";

export function sameMessage(stored: Message, other: Message): boolean {
  if (stored.kind !== other.kind) return false;
  if (stored.kind === "command") return stored.type === other.type && equal(stored.data, other.data);
  return equal(asJson(stored), asJson(other));
}

/** A command is journaled by its sender or by the capability that handles it: its source does not tell it from another. */
export function sameSource(stored: Sourced, other: Sourced): boolean {
  return stored.source === other.source || stored.message.kind === "command";
}

interface Sourced {
  readonly message: Message;
  readonly source: string;
}

/** A message is JSON; its interface cannot say so because optional metadata may be written as `undefined`. */
function asJson(message: Message): Json {
  return JSON.parse(JSON.stringify(message));
}
