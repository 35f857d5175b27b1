/**
 * Names of sends. An event id is minted when something is sent and stays the same for good: it orders, it carries lineage, and the
 * receipt's name follows from it. It is the hash of where the send came from (`origin`), the stream's full link, and a number
 * that counts the sends of that origin. A caller who gives an id of his own gets the hash of it with his session and the link,
 * so that nobody's ids meet anybody else's. SPEC: I11.
 */
import { hashText, PrefixHash } from "../message/sha256.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import type { Address } from "./address.ts";

/** A stream's full link as one text, in which no part can pass for another. */
export function linkText({ home, path }: Address): string {
  const { replica, document } = home;
  return JSON.stringify([replica.space, document.scope, document.id, path]);
}

/** Ids of the sends that one origin makes to one stream, by their number. */
export function causalEventIds(origin: string, link: string): PrefixHash {
  const from = `sent ${JSON.stringify(origin)} ${link} `;
  // To the end of a block: then a number takes one more and no others.
  return new PrefixHash(from.padEnd(Math.ceil(from.length / BLOCK_LENGTH) * BLOCK_LENGTH));
}

/** What SHA-256 takes at a time. */
const BLOCK_LENGTH = 64;

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
