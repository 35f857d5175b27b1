/**
 * Events that actors have in hand on behalf of the journal: which of them have failed (a handler that threw, an actor that crashed), and what
 * their handlers have sent that is not in the journal yet. A delivery is settled by what it says here; without it, an event whose handler failed
 * would count as handled, and what it led to could be lost with the process while it counts as done. SPEC: L9, K26.
 */
import { causationOf, type Message } from "../message/envelope.ts";

export class EventDelivery {
  /** Why it failed; undefined while it has not. */
  failure: string | undefined;
  /** The ids of what its handler has sent and nobody keeps yet; made by the first. */
  unkept: Set<string> | undefined;
  /** Called when there is nothing of that any more. */
  wake: (() => void) | undefined;
}

export class EventDeliveries {
  /** By actor, then by the event's id. */
  readonly #underWay = new Map<string, Map<string, EventDelivery>>();
  /** By the ids of what handlers have sent. */
  readonly #unkept = new Map<string, Set<EventDelivery>>();

  begin(actor: string, id: string): EventDelivery {
    const delivery = new EventDelivery();
    const events = this.#underWay.get(actor);
    if (events) events.set(id, delivery);
    else this.#underWay.set(actor, new Map([[id, delivery]]));
    return delivery;
  }

  failed(actor: string, id: string, reason: string): void {
    const delivery = this.#underWay.get(actor)?.get(id);
    if (delivery !== undefined) delivery.failure = reason;
  }

  /** What the actor had in hand is lost with it. */
  crashed(actor: string, reason: string): void {
    for (const delivery of this.#underWay.get(actor)?.values() ?? []) delivery.failure = reason;
  }

  /** An actor has sent something, which may be because of an event that it has in hand: it waits in a lane, and would be lost with it. */
  sent(actor: string, message: Message): void {
    const delivery = this.#underWay.get(actor)?.get(causationOf(message) ?? "");
    if (delivery === undefined) return;
    const { id } = message.metadata;
    delivery.unkept ??= new Set();
    delivery.unkept.add(id);
    const waiting = this.#unkept.get(id);
    if (waiting) waiting.add(delivery);
    else this.#unkept.set(id, new Set([delivery]));
  }

  /** It is durable, or in the hands of who handles it; or it will never be, for that reason. */
  kept(id: string, failure?: string): void {
    const deliveries = this.#unkept.get(id);
    if (deliveries === undefined) return;
    this.#unkept.delete(id);
    for (const delivery of deliveries) {
      delivery.unkept?.delete(id);
      if (failure !== undefined) delivery.failure ??= failure;
      if (delivery.unkept?.size === 0) delivery.wake?.();
    }
  }

  /** Resolves when all that was sent because of an event is kept; undefined where it is. */
  allKept(delivery: EventDelivery): Promise<void> | undefined {
    if (!delivery.unkept?.size) return undefined;
    return new Promise((resolve) => {
      delivery.wake = resolve;
    });
  }

  /** Lets go of an event; gives the reason where it failed. */
  end(actor: string, id: string, delivery: EventDelivery): string | undefined {
    const events = this.#underWay.get(actor);
    // The same event may have come again meanwhile: then it is that one's.
    if (events?.get(id) === delivery) events.delete(id);
    if (events?.size === 0) this.#underWay.delete(actor);
    for (const sent of delivery.unkept ?? []) {
      const waiting = this.#unkept.get(sent);
      if (waiting?.delete(delivery) && waiting.size === 0) this.#unkept.delete(sent);
    }
    return delivery.failure;
  }
}
