/**
 * Names of sends. An event id is minted when something is sent and stays the same for good: it orders, it carries lineage, and the
 * receipt's name follows from it. It begins with the time at which it was minted, so that its receipt can have an end (decision 0014); then comes the hash of where
 * the send came from (`origin`) and of the stream's full link, and a number that counts the sends of that origin: so plain code hashes once for each stream, not for each send. A caller who gives an id of his own gets the hash of it with his session and the link,
 * so that nobody's ids meet anybody else's. SPEC: I11.
 */
import { periodText, SEND_HASH_DIGITS } from "../message/id-time.ts";
import { hashText } from "../message/sha256.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import type { Address } from "./address.ts";

/** A stream's full link as one text, in which no part can pass for another. */
export function linkText({ home, path }: Address): string {
  const { replica, document } = home;
  return JSON.stringify([replica.space, document.scope, document.id, path]);
}

/** The hash in the ids of the sends that one origin makes to one stream; a number makes each of them. */
export function originHash(origin: string, link: string): string {
  return hashText(`sent ${JSON.stringify(origin)} ${link}`).slice(0, SEND_HASH_DIGITS);
}

/** What the ids begin with that an origin makes within a period. */
export function causalEventIds(period: number, hash: string): string {
  return `${periodText(period)}${hash}.`;
}

export function callerEventId(session: string, id: string, link: string): string {
  return hashText(`called ${JSON.stringify([session, id])} ${link}`);
}

/** Where the result of a handling is: one document for each event, ever. Its value is what the handler returned. */
export function receiptOf(eventId: string): DocumentRef {
  return { scope: SHARED_SCOPE, id: `receipt:stream:${eventId}` };
}

/** Says in another space that the handling's writes there have been made: they go first, and must not be made twice. */
export function childReceiptOf(eventId: string, home: string): DocumentRef {
  return { scope: SHARED_SCOPE, id: `receipt:stream:${eventId}:${JSON.stringify(home)}` };
}
