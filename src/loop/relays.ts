/**
 * For whom a relaying capability speaks. A timer may carry a `Sys.RequestTimeout` (RFC 0032 §12.7); when it fires, the loop must know who
 * had set it, or any client could end any request by way of the timer. Kept in memory: requests do not outlive the process either.
 */
import { RELAYS_REMEMBERED_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import type { Connection, Origin } from "./inbound.ts";

export class Relays {
  readonly #askers = new Map<string, Origin>();

  get size(): number {
    return this.#askers.size;
  }

  /** Remembers who asked for a timeout to be relayed; other templates need no authority. What was relayed itself, a timer set by a timer, has none. */
  note({ data, metadata }: Message, asker: Origin): void {
    if (asker.kind === "relay" || asker.kind === "nobody") return;
    const template = (data as { message?: { type?: unknown } | null } | null)?.message;
    if (template?.type !== "Sys.RequestTimeout") return;
    this.#askers.set(metadata.id, asker);
    if (this.#askers.size <= RELAYS_REMEMBERED_MAX) return;
    for (const oldest of this.#askers.keys()) {
      this.#askers.delete(oldest);
      return;
    }
  }

  /** Who asked, by the id of the request that the relayed message was caused by. A timer fires once, so it is then forgotten. */
  askerOf(causation: string | undefined): Origin | undefined {
    if (causation === undefined) return undefined;
    const asker = this.#askers.get(causation);
    this.#askers.delete(causation);
    return asker;
  }

  disconnect(connection: Connection): void {
    for (const [id, asker] of this.#askers) {
      if (asker.kind === "adapter" && asker.connection === connection) this.#askers.delete(id);
    }
  }
}
