/**
 * Ids of sends. An event id is created with the send and does not change: it gives the order, the lineage and the
 * receipt's name. It consists of the time of its creation, so that its receipt can expire (decision 0014); a hash of
 * the origin and the stream's link; and the origin's count. Plain code therefore hashes once per stream, not per send.
 * An id that the caller gives is hashed with its session and the link, so that ids of different sessions cannot
 * collide. SPEC: I11.
 */
import { periodText, SEND_HASH_DIGITS } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import { Receipt } from "../store/receipt.ts";
import { madeAt, receiptOf } from "../store/receipt-name.ts";
import type { NodeAddress } from "./node.ts";

/** A stream's full link as one unambiguous text. */
export function linkText({ home, path }: NodeAddress): string {
  const { replica, document } = home;
  return JSON.stringify([replica.space, document.scope, document.id, path]);
}

/** The hash in the ids of all sends of one origin to one stream. */
export function originHash(origin: string, link: string): string {
  return hashText(`sent ${JSON.stringify(origin)} ${link}`).slice(0, SEND_HASH_DIGITS);
}

/**
 * The common prefix of the ids that one origin gives to sends to one stream within a period. A send keeps only its
 * number and this shared object, because memory that only old sends refer to would become garbage of the old
 * generation.
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
