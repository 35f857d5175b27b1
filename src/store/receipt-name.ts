/**
 * Names of receipts: one document per invocation. The name contains the invocation and, if the message id carries a
 * time, the creation time. SPEC: U14.
 *
 *     receipt/<id>                                  a command
 *     receipt:stream:<id>                           a send; then `:"<home space>"` if written to another space
 *     receipt:event:<id> <subscriber> <length>      an event and its subscriber; `length` is that of the id
 *
 * Ids come from clients and may contain any character. Names are unique: each kind has its own prefix, and the length
 * at the end marks where the id of an event ends.
 */
import { firstIdAt, timeInId } from "../message/id-time.ts";
import { type DocumentRef, SHARED_SCOPE } from "./document.ts";

/** One message handled by one handler. */
export type Invocation =
  | { readonly kind: "command"; readonly id: string }
  /** `home`: the space of the stream, for the receipt in another space. */
  | { readonly kind: "send"; readonly id: string; readonly home?: string }
  | { readonly kind: "event"; readonly id: string; readonly subscriber: string };

const PREFIX = "receipt";
const OF_COMMAND = `${PREFIX}/`;
const OF_SEND = `${PREFIX}:stream:`;
const OF_EVENT = `${PREFIX}:event:`;
const PREFIXES = [OF_COMMAND, OF_SEND, OF_EVENT] as const;

/** The document of an invocation's receipt. */
export function receiptOf(invocation: Invocation): DocumentRef {
  return { scope: SHARED_SCOPE, id: receiptName(invocation) };
}

function receiptName(invocation: Invocation): string {
  const { id } = invocation;
  switch (invocation.kind) {
    case "command":
      return OF_COMMAND + id;
    case "send":
      return invocation.home === undefined ? OF_SEND + id : `${OF_SEND}${id}:${JSON.stringify(invocation.home)}`;
    case "event":
      return `${OF_EVENT}${id} ${invocation.subscriber} ${id.length}`;
  }
}

/** The command id in a receipt's name, if any. */
export function commandOf(name: string): string | undefined {
  return name.startsWith(OF_COMMAND) ? name.slice(OF_COMMAND.length) : undefined;
}

/** The event and subscriber in a receipt's name, if any. */
export function eventOf(name: string): (Invocation & { kind: "event" }) | undefined {
  if (!name.startsWith(OF_EVENT)) return undefined;
  const end = name.lastIndexOf(" ");
  const idEnd = OF_EVENT.length + Number(name.slice(end + 1));
  if (!(idEnd < end)) return undefined;
  return { kind: "event", id: name.slice(OF_EVENT.length, idEnd), subscriber: name.slice(idEnd + 1, end) };
}

/** The invocation in a receipt's name, if any. */
export function invocationOf(name: string): Invocation | undefined {
  if (name.startsWith(OF_COMMAND)) return { kind: "command", id: name.slice(OF_COMMAND.length) };
  if (name.startsWith(OF_SEND)) return { kind: "send", id: name.slice(OF_SEND.length) };
  return eventOf(name);
}

/** Whether a document of this name can be a receipt. */
export function isReceiptName(name: string): boolean {
  return name.startsWith(PREFIX) && PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** Creation time of the message, encoded in the receipt's name, if any. */
export function madeAt(name: string): number | undefined {
  if (name.startsWith(OF_COMMAND)) return timeInId(name, OF_COMMAND.length);
  if (name.startsWith(OF_SEND)) return timeInId(name, OF_SEND.length);
  return name.startsWith(OF_EVENT) ? timeInId(name, OF_EVENT.length) : undefined;
}

/** Name ranges (from, to) that contain all receipts of messages made before a time. Other names may lie in them. */
export function namesMadeBefore(timeMs: number): readonly (readonly [from: string, to: string])[] {
  const first = firstIdAt(timeMs);
  return PREFIXES.map((prefix) => [`${prefix}0`, `${prefix}${first}`]);
}
