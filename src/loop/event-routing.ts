/**
 * The way of events: into the journal before anybody has them, from it to one subscriber at a time, and whether a delivery is over (RFC 0032 §9.3).
 * What is done with requests and answers is the router's. SPEC: L9, K26.
 */
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import { Failure, fromError, thrownText } from "../message/error-data.ts";
import { error, reply } from "../message/lineage.ts";
import { mayKnow } from "./admission.ts";
import { EventDeliveries } from "./event-deliveries.ts";
import type { EventJournal } from "./event-journal.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Inbound, Origin } from "./inbound.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export class EventRouting {
  /** What the journal delivers now, and what its handlers have sent. */
  readonly deliveries = new EventDeliveries();
  readonly #loop: EventLoop;
  readonly #host: Host;
  readonly #journal: EventJournal | undefined;

  constructor(loop: EventLoop, host: Host, journal: EventJournal | undefined) {
    this.#loop = loop;
    this.#host = host;
    this.#journal = journal;
  }

  /** Into the journal, which delivers it later; without one, to its subscribers now. */
  publish({ message, origin }: Inbound): void {
    const source =
      origin.kind === "actor" ? origin.actor.name : origin.kind === "adapter" ? origin.connection.adapter : "kernel";
    if (!this.#journal) {
      for (const name of this.#loop.table.subscribers(message.type)) this.#deliver(message, name);
      return this.#tellRelay(origin, message);
    }
    this.#journal.publish(message, source).then(
      () => {
        this.deliveries.kept(message.metadata.id);
        this.#tellRelay(origin, message);
      },
      (thrown: unknown) => {
        const reason = `not journaled: ${thrownText(thrown)}`;
        this.deliveries.kept(message.metadata.id, `${message.type} was ${reason}`);
        this.#loop.observations.tell("Sys.RoutingError", { type: message.type, reason }, message);
        const failure = thrown instanceof Failure ? thrown : new Failure(503, reason);
        this.#tellRelay(origin, message, failure);
        if (origin.kind === "adapter")
          this.#loop.tell(origin.connection, error(this.#host, message, fromError(failure)));
      },
    );
  }

  /** Whoever relays an event keeps it until it is kept elsewhere. */
  #tellRelay(origin: Origin, message: Message, failure?: Failure): void {
    if (origin.kind !== "relay") return;
    origin.actor.answer(failure ? error(this.#host, message, fromError(failure)) : reply(this.#host, message, null));
  }

  /** Takes an event through one subscriber for the journal; throws where that failed, so that the delivery does. */
  async handle(message: Message, name: string): Promise<void> {
    const { id } = message.metadata;
    const delivery = this.deliveries.begin(name, id);
    let failed: string | undefined;
    try {
      this.#deliver(message, name);
      // Handed over is not handled: with the process it would be lost.
      await this.#loop.actors.get(name)?.handled();
      await this.deliveries.allKept(delivery);
    } finally {
      failed = this.deliveries.end(name, id, delivery);
    }
    if (failed !== undefined) throw new Error(failed);
  }

  /** What an actor had in hand is gone with it. */
  crashed(actor: SupervisedActor, reason: string): void {
    this.deliveries.crashed(actor.name, `${actor.name} crashed: ${reason}`);
  }

  /** Puts an event into one subscriber's mailbox; throws where it cannot be taken, so that the delivery fails visibly. */
  #deliver(message: Message, name: string): void {
    const actor = this.#loop.actors.get(name);
    // Not told, and not counted as failed: that it was published is above its clearance too.
    if (actor !== undefined && !mayKnow(actor.capability, message)) return;
    let reason: string | undefined;
    try {
      reason = actor ? actor.post(this.#loop.copy(message)) : `${name} is unhealthy`;
      if (reason === undefined) return;
      this.#loop.observations.tell("Sys.Overload", { capability: name, reason }, message);
    } catch (thrown) {
      reason = `postMessage of ${name} failed: ${thrownText(thrown)}`;
      this.#loop.observations.tell("Sys.ActorFault", { capability: name, reason }, message);
    }
    if (this.#journal) throw new Error(reason);
  }
}
