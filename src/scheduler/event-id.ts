/**
 * Names of sends. An event id is minted when something is sent and stays the same for good: it orders, it carries lineage, and the
 * receipt's name follows from it. It begins with the time at which it was minted, so that its receipt can have an end (decision 0014); then comes the hash of where
 * the send came from (`origin`) and of the stream's full link, and a number that counts the sends of that origin: so plain code hashes once for each stream, not for each send. A caller who gives an id of his own gets the hash of it with his session and the link,
 * so that nobody's ids meet anybody else's. SPEC: I11.
 */
import { periodText, SEND_HASH_DIGITS } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import { Receipt } from "../store/receipt.ts";
import { madeAt, receiptOf } from "../store/receipt-name.ts";
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

/**
 * What the ids begin with that one origin mints for one stream within a period: a number makes each of them. What is the same for all of them
 * is found out once, and a send keeps its number and the stem: it may be old by the time it is handled, and whatever it alone referred to
 * would grow as old.
 */
export class EventStem {
  readonly period: number;
  readonly #ids: string;
  readonly #receipts: string;
  readonly #madeAtMs: number | undefined;

  constructor(period: number, hash: string) {
    this.period = period;
    this.#ids = `${periodText(period)}${hash}.`;
    this.#receipts = receiptOf({ kind: "send", id: this.#ids }).id;
    this.#madeAtMs = madeAt(this.#receipts);
  }

  id(number: number): string {
    return this.#ids + number;
  }

  receipt(number: number, result: Json): Receipt {
    return new Receipt({ scope: SHARED_SCOPE, id: this.#receipts + number }, result, this.#madeAtMs);
  }
}

export function callerEventId(session: string, id: string, link: string): string {
  return hashText(`called ${JSON.stringify([session, id])} ${link}`);
}
