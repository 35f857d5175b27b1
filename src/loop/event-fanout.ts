/**
 * Events: into the journal before a subscriber gets them, and from the journal to one subscriber at a time, each as a
 * `Parcel` (RFC 0032 §9.3). Without a journal all subscribers get them at once. SPEC: L9, L90, K26.
 */
import { isPassing, NotTaken } from "../bus/concluded.ts";
import type { Host } from "../host/host.ts";
import { RELAYED_EVENT_HEARD_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { Failure, fromError, thrownText } from "../message/error-data.ts";
import { error, reply } from "../message/lineage.ts";
import type { Attempt } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { retryPolicyOf } from "../work/retry-policy.ts";
import { mayKnow } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { EventDeliveries } from "./capability.ts";
import { copyMessage } from "./emission.ts";
import type { DeliveryOptions, EventJournal } from "./event-journal.ts";
import type { Inbound } from "./inbound.ts";
import type { Observations } from "./observation.ts";
import { DeliveryFailed, Parcel, type ParcelFailure } from "./parcel.ts";
import type { Origin } from "./pending-request.ts";
import type { RoutingTable } from "./routing-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export interface EventFanoutParts {
  readonly host: Host;
  readonly table: RoutingTable;
  readonly actors: ReadonlyMap<string, SupervisedActor>;
  readonly observations: Observations;
  readonly answers: Answers;
  readonly journal: EventJournal | undefined;
}

export class EventFanout {
  readonly #parts: EventFanoutParts;
  /** Relayed events, by id, whose relay waits until the subscribers have them. */
  readonly #unheard = new Map<string, { readonly names: Set<string>; readonly give: () => void }>();

  constructor(parts: EventFanoutParts) {
    this.#parts = parts;
  }

  /** Subscribes the actors to the journal, which delivers from now on. */
  subscribe(): void {
    const { journal, table, actors } = this.#parts;
    if (!journal) return;
    for (const [type, names] of table.subscribedTypes()) {
      for (const name of names) {
        const { work: space, clearance, deliveries } = actors.get(name)?.capability ?? {};
        const deliver = (message: Message, attempt?: Attempt) => this.#deliver(message, name, attempt);
        if (space === undefined || journal.subscribeWork === undefined) {
          const options = this.#options(deliveries, name, false);
          journal.subscribe(type, name, async (message) => void (await deliver(message)), options);
        } else {
          const options = this.#options(deliveries, name, true);
          journal.subscribeWork({ type, subscriber: name, space, clearance, ...options }, deliver);
        }
      }
    }
  }

  /**
   * `when` and `onFailed` get the value that the handler threw. The actor calls its `onFailed`, in the attempt if there
   * is one.
   */
  #options(deliveries: EventDeliveries | undefined, name: string, isWork: boolean): DeliveryOptions {
    const { retry, hasOnFailed = false, ...others } = deliveries ?? {};
    const policy = retryPolicyOf(retry);
    const { when } = policy;
    const plainly = async (failure: HandlerFailure, message: Message) => {
      const problem = await this.#parts.actors.get(name)?.failed(message, failure);
      if (problem !== undefined) throw new Error(problem);
    };
    const onFailed: DeliveryOptions["onFailed"] = (failure, attempt, message) =>
      isWork && attempt !== undefined
        ? this.#parts.actors.get(name)?.failedWork(message, failureIn(failure), attempt)
        : plainly(failureIn(failure), message);
    return {
      ...others,
      retry: when === undefined ? policy : { ...policy, when: (thrown) => when(thrownIn(thrown)) },
      ...(hasOnFailed ? { onFailed } : {}),
    };
  }

  /** Appends an event to the journal, which delivers it later. Without one, its subscribers get it now. */
  publish({ message, origin, sending }: Inbound): void {
    const { journal, table } = this.#parts;
    if (!journal) {
      for (const name of table.subscribers(message.type)) this.#post(message, name, undefined);
      sending?.done();
      taken(origin, message);
      return this.#tellRelay(origin, message);
    }
    const heard = origin.kind === "relay" ? this.#heardBySubscribers(message) : undefined;
    journal.publish(message, sourceOf(origin)).then(
      () => {
        sending?.done();
        taken(origin, message);
        if (heard) void heard.then(() => this.#tellRelay(origin, message));
        else this.#tellRelay(origin, message);
      },
      (thrown: unknown) => {
        this.#unheard.get(message.metadata.id)?.give();
        const reason = `not journaled: ${thrownText(thrown)}`;
        sending?.done(`${message.type} was ${reason}`, isPassing(thrown));
        this.#notJournaled(origin, message, thrown instanceof Failure ? thrown : new Failure(503, reason), reason);
      },
    );
  }

  #notJournaled(origin: Origin, message: Message, failure: Failure, reason: string): void {
    const { host, observations, answers } = this.#parts;
    observations.tell("Sys.RoutingError", { type: message.type, reason }, message);
    this.#tellRelay(origin, message, failure);
    taken(origin, message);
    if (origin.kind === "adapter") answers.tell(origin.connection, error(host, message, fromError(failure)));
  }

  /** A relay keeps an event until the journal has it. */
  #tellRelay(origin: Origin, message: Message, failure?: Failure): void {
    const { host } = this.#parts;
    if (origin.kind !== "relay") return;
    origin.actor.answer(failure ? error(host, message, fromError(failure)) : reply(host, message, null));
  }

  // To the subscribers
  // --------------------------------------------------------------------------------------------------

  /** Takes an event through one subscriber for the journal; rejects with the failure of its handler. */
  #deliver(message: Message, name: string, attempt?: Attempt): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const over = (failure: ParcelFailure | undefined, thrown: unknown) => {
        const { end, isTimeout } = parcel;
        if (failure?.isPassing) reject(new NotTaken(failure.reason));
        else if (failure !== undefined) reject(new DeliveryFailed(failure.reason, { thrown, isTimeout }));
        else if (end === undefined || end.kind === "returned") resolve(end?.value);
        else reject(end.error);
      };
      const parcel = new Parcel(copyMessage(message), over, attempt);
      const refusal = this.#post(message, name, parcel);
      if (refusal === undefined) this.#heard(message.metadata.id, name);
      else parcel.ended(refusal);
    });
  }

  /** Puts an event into the mailbox of one subscriber; the reason if it is not taken. */
  #post(message: Message, name: string, parcel: Parcel | undefined): string | undefined {
    const { actors, observations } = this.#parts;
    const actor = actors.get(name);
    // The refusal is neither told nor counted, because even the existence of the event is above the clearance.
    if (actor !== undefined && !mayKnow(actor.capability, message)) {
      parcel?.ended();
      return undefined;
    }
    let reason: string | undefined;
    try {
      const given = parcel?.message ?? copyMessage(message);
      reason = actor ? actor.post({ message: given, request: undefined, parcel }) : `${name} is unhealthy`;
      if (reason === undefined) {
        if (observations.wanted) observations.tell("Sys.Routed", { capability: name, type: message.type }, message);
        return undefined;
      }
      observations.tell("Sys.Overload", { capability: name, reason }, message);
    } catch (thrown) {
      reason = `postMessage of ${name} failed: ${thrownText(thrown)}`;
      observations.tell("Sys.ActorFault", { capability: name, reason }, message);
    }
    return reason;
  }

  // Relays
  // --------------------------------------------------------------------------------------------------------------

  /**
   * Resolves when each subscriber of this loop was given the event, or after a bounded time: a subscriber may be busy,
   * or in another process. The next message of the relay then comes after the event, as RFC 0032 §12.4 orders
   * `Timer.Fired` and its message. Undefined without subscribers.
   */
  #heardBySubscribers({ type, metadata: { id } }: Message): Promise<void> | undefined {
    const { host, table } = this.#parts;
    const names = table.subscribers(type);
    if (names.length === 0) return undefined;
    return new Promise((resolve) => {
      const timer = host.timer(RELAYED_EVENT_HEARD_MS, () => give());
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
}

/** The value that a handler threw, from the error of its delivery. */
function thrownIn(error: unknown): unknown {
  return error instanceof DeliveryFailed ? error.thrown : error;
}

function failureIn(failure: HandlerFailure): HandlerFailure {
  const { thrown, ...others } = failure;
  if (!(thrown instanceof DeliveryFailed)) return failure;
  return thrown.isTimeout ? { ...others, kind: "timeout" } : { ...others, thrown: thrown.thrown };
}

/** Lets a client send further events: only a bounded number may be unjournaled. */
function taken(origin: Origin, event: Message): void {
  if (origin.kind === "adapter") origin.connection.taken?.(event);
}

function sourceOf(origin: Origin): string {
  if (origin.kind === "actor") return origin.actor.name;
  return origin.kind === "adapter" ? origin.connection.adapter : "kernel";
}
