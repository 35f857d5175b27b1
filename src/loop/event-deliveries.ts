/**
 * Events that actors have in hand on behalf of the journal, and which of them have failed: a handler that threw, an actor that crashed. A
 * delivery is settled by what it says here; without it, an event whose handler failed would count as handled. SPEC: L9, K26.
 */

export class EventDeliveries {
  /** By actor, then by the event's id: why it failed; undefined while it has not. */
  readonly #underWay = new Map<string, Map<string, string | undefined>>();

  begin(actor: string, id: string): void {
    const events = this.#underWay.get(actor);
    if (events) events.set(id, undefined);
    else this.#underWay.set(actor, new Map([[id, undefined]]));
  }

  failed(actor: string, id: string, reason: string): void {
    const events = this.#underWay.get(actor);
    if (events?.has(id)) events.set(id, reason);
  }

  /** What the actor had in hand is lost with it. */
  crashed(actor: string, reason: string): void {
    const events = this.#underWay.get(actor);
    for (const id of events?.keys() ?? []) events?.set(id, reason);
  }

  /** Lets go of an event; gives the reason where it failed. */
  end(actor: string, id: string): string | undefined {
    const events = this.#underWay.get(actor);
    const reason = events?.get(id);
    events?.delete(id);
    if (events?.size === 0) this.#underWay.delete(actor);
    return reason;
  }
}
