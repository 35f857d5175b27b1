/**
 * Events that actors have in hand on behalf of the journal: which of them have failed (a handler that threw, an actor that crashed), and what
 * their handlers have sent that is not in the journal yet. A delivery is settled by what it says here; without it, an event whose handler failed
 * would count as handled, and what it led to could be lost with the process while it counts as done. SPEC: L9, K26.
 */
import { causationOf, type Message } from "../message/envelope.ts";

class EventDelivery {
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
  readonly #unkept = new Map<string, EventDelivery>();

  begin(actor: string, id: string): void {
    const events = this.#underWay.get(actor);
    if (events) events.set(id, new EventDelivery());
    else this.#underWay.set(actor, new Map([[id, new EventDelivery()]]));
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
    this.#unkept.set(id, delivery);
  }

  /** It is durable, or in the hands of who handles it; or it will never be, for that reason. */
  kept(id: string, failure?: string): void {
    const delivery = this.#unkept.get(id);
    if (delivery === undefined) return;
    this.#unkept.delete(id);
    delivery.unkept?.delete(id);
    if (failure !== undefined) delivery.failure ??= failure;
    if (delivery.unkept?.size === 0) delivery.wake?.();
  }

  /** Resolves when all that was sent because of an event is kept; undefined where it is. */
  allKept(actor: string, id: string): Promise<void> | undefined {
    const delivery = this.#underWay.get(actor)?.get(id);
    if (delivery === undefined || !delivery.unkept?.size) return undefined;
    return new Promise((resolve) => {
      delivery.wake = resolve;
    });
  }

  /** Lets go of an event; gives the reason where it failed. */
  end(actor: string, id: string): string | undefined {
    const events = this.#underWay.get(actor);
    const delivery = events?.get(id);
    events?.delete(id);
    if (events?.size === 0) this.#underWay.delete(actor);
    for (const sent of delivery?.unkept ?? []) this.#unkept.delete(sent);
    return delivery?.failure;
  }
}
