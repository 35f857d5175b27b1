/**
 * The way of events: into the journal before anybody has them, from it to one subscriber at a time, and whether a delivery is over (RFC 0032 §9.3).
 * What is done with requests and answers is the router's. SPEC: L9, K26.
 */
import type { Host } from "../host/host.ts";
import { RELAYED_EVENT_HEARD_MS } from "../limits.ts";
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
  /** Relayed events, by id, with a relay that waits until the subscribers have them. */
  readonly #unheard = new Map<string, { readonly names: Set<string>; readonly give: () => void }>();

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
      taken(origin, message);
      return this.#tellRelay(origin, message);
    }
    const heard = origin.kind === "relay" ? this.#heardBySubscribers(message) : undefined;
    this.#journal.publish(message, source).then(
      () => {
        this.deliveries.kept(message.metadata.id);
        taken(origin, message);
        if (heard) void heard.then(() => this.#tellRelay(origin, message));
        else this.#tellRelay(origin, message);
      },
      (thrown: unknown) => {
        this.#unheard.get(message.metadata.id)?.give();
        const reason = `not journaled: ${thrownText(thrown)}`;
        this.deliveries.kept(message.metadata.id, `${message.type} was ${reason}`);
        this.#loop.observations.tell("Sys.RoutingError", { type: message.type, reason }, message);
        const failure = thrown instanceof Failure ? thrown : new Failure(503, reason);
        this.#tellRelay(origin, message, failure);
        taken(origin, message);
        if (origin.kind === "adapter")
          this.#loop.tell(origin.connection, error(this.#host, message, fromError(failure)));
      },
    );
  }

  /**
   * Resolves when each subscriber of this loop was given the event, or after a bounded time: a subscriber may be busy, or in another process. The
   * next message of the relay then comes after the event, as RFC 0032 §12.4 orders `Timer.Fired` and its message. Undefined without subscribers.
   */
  #heardBySubscribers({ type, metadata: { id } }: Message): Promise<void> | undefined {
    const names = this.#loop.table.subscribers(type);
    if (names.length === 0) return undefined;
    return new Promise((resolve) => {
      const timer = this.#host.timer(RELAYED_EVENT_HEARD_MS, () => give());
      const give = () => {
        timer.cancel();
        this.#unheard.delete(id);
        resolve();
      };
      this.#unheard.set(id, { names: new Set(names), give });
    });
  }

  #heard(id: string, name: string): void {
    if (this.#unheard.size === 0) return;
    const unheard = this.#unheard.get(id);
    if (unheard?.names.delete(name) && unheard.names.size === 0) unheard.give();
  }

  /** A relay keeps an event until it is kept elsewhere. */
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
      this.#heard(id, name);
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

/** A client sends further events while earlier ones are on their way, but not without end. */
function taken(origin: Origin, event: Message): void {
  if (origin.kind === "adapter") origin.connection.taken?.(event);
}
