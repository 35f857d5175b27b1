/**
 * Names of receipts: one document for each invocation, ever. The name says which invocation it is of and, if the id of the message carries a
 * time, when that was made. SPEC: U14.
 *
 *     receipt/<id>                                  a command
 *     receipt:stream:<id>                           a send; in another space that its handler wrote to: `:"<home space>"` follows
 *     receipt:event:<id> <subscriber> <length>      an event, and the subscriber that handled it; `length` is that of the id
 *
 * Ids come from clients and may hold any character. No two invocations share a name: each kind has its own prefix, and the length at
 * the end tells where the id of an event ends.
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

/** Where the receipt of an invocation is. */
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

/** The id of the command that a document of this name is a receipt of. */
export function commandOf(name: string): string | undefined {
  return name.startsWith(OF_COMMAND) ? name.slice(OF_COMMAND.length) : undefined;
}

/** The event that a document of this name is a receipt of, and its subscriber. */
export function eventOf(name: string): (Invocation & { kind: "event" }) | undefined {
  if (!name.startsWith(OF_EVENT)) return undefined;
  const end = name.lastIndexOf(" ");
  const idEnd = OF_EVENT.length + Number(name.slice(end + 1));
  if (!(idEnd < end)) return undefined;
  return { kind: "event", id: name.slice(OF_EVENT.length, idEnd), subscriber: name.slice(idEnd + 1, end) };
}

/** Whether a document of this name can be a receipt. */
export function isReceiptName(name: string): boolean {
  return name.startsWith(PREFIX) && PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** When the message was made that a document of this name is the receipt of; undefined if its id carries no time. */
export function madeAt(name: string): number | undefined {
  if (name.startsWith(OF_COMMAND)) return timeInId(name, OF_COMMAND.length);
  if (name.startsWith(OF_SEND)) return timeInId(name, OF_SEND.length);
  return name.startsWith(OF_EVENT) ? timeInId(name, OF_EVENT.length) : undefined;
}

/** Ranges of names, from the first text up to the second, that hold all receipts of messages made before a time. Other names may lie there. */
export function namesMadeBefore(timeMs: number): readonly (readonly [from: string, to: string])[] {
  const first = firstIdAt(timeMs);
  return PREFIXES.map((prefix) => [`${prefix}0`, `${prefix}${first}`]);
}
