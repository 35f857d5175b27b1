/**
 * The routing laws (RFC 0032 §9), one message per turn, and the check of every emission of an actor. Immediate failures
 * are terminal answers plus an observation: 404 no capability handles it, 409 the id is pending already, 422 the data
 * does not fit, 503 the actor takes no more. SPEC: L7-L12, L17.
 */
import type { Host } from "../host/host.ts";
import { causationOf, isId, type Message } from "../message/envelope.ts";
import {
  type ErrorData,
  errorData,
  errorText,
  Failure,
  failureFrom,
  fromError,
  thrownText,
} from "../message/error-data.ts";
import { error, reply } from "../message/lineage.ts";
import { eventRefusal, requestRefusal } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { ActorEvent, Relayed, Withdrawn } from "./capability.ts";
import type { CircleWatch } from "./circle-watch.ts";
import type { WithdrawResult } from "./command-journal.ts";
import { BadEmission, emittedBy } from "./emission.ts";
import type { EventFanout } from "./event-fanout.ts";
import { type Inbound, inbound, laneOf } from "./inbound.ts";
import type { KeptCommands } from "./kept-commands.ts";
import type { Lanes } from "./lanes.ts";
import { FailedAttempt, MadeMessageEvent } from "./mailbox-actor.ts";
import { declarationOf, schemaProblem, takesAny } from "./message-schema.ts";
import { type Observations, type ObservationType, stackOf } from "./observation.ts";
import type { ObservationSubscribers } from "./observation-subscribers.ts";
import type { OwnRequests } from "./own-requests.ts";
import type { Parcel } from "./parcel.ts";
import { isAwaited, type Origin, type PendingRequest, type RequestingActor } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";
import type { RequestDispatch } from "./request-dispatch.ts";
import type { RoutingTable } from "./routing-table.ts";
import type { ActorHome, SupervisedActor } from "./supervised-actor.ts";
import { circleClosedBy } from "./waiting-circle.ts";

export interface RouterParts {
  readonly host: Host;
  readonly lanes: Lanes;
  readonly pending: PendingTable;
  readonly table: RoutingTable;
  readonly actors: ReadonlyMap<string, SupervisedActor>;
  readonly observations: Observations;
  readonly observationSubscribers: ObservationSubscribers;
  readonly answers: Answers;
  readonly dispatch: RequestDispatch;
  readonly ownRequests: OwnRequests;
  readonly events: EventFanout;
  readonly circles: CircleWatch;
  /** Undefined without a journal for commands. */
  readonly kept: KeptCommands | undefined;
}

export class Router implements ActorHome {
  readonly #parts: RouterParts;

  constructor(parts: RouterParts) {
    this.#parts = parts;
  }

  /** One turn. An exception in it ends the message, not the loop. */
  route(inbound: Inbound): void {
    try {
      this.#byKind(inbound);
    } catch (thrown) {
      this.#notRouted(inbound, thrownText(thrown));
    }
  }

  #notRouted(inbound: Inbound, reason: string): void {
    const { kind, type } = inbound.message;
    try {
      inbound.sending?.done(`${type} was not routed: ${reason}`);
      this.#parts.answers.refuse(inbound, 500, reason);
    } catch (thrown) {
      // The sender cannot be told either.
      this.#parts.observations.tell("Sys.RoutingError", { kind, type, code: 500, reason: thrownText(thrown) });
    }
  }

  #byKind(inbound: Inbound): void {
    switch (inbound.message.kind) {
      case "command":
      case "query":
        return this.#request(inbound);
      case "event":
        return this.#event(inbound);
      case "reply":
      case "error":
        return this.#outcome(inbound);
    }
  }

  #event(inbound: Inbound): void {
    const problem = eventRefusal(inbound);
    if (problem === undefined) return this.#parts.events.publish(inbound);
    this.#parts.answers.refuse(inbound, 403, problem);
    inbound.sending?.done(`${inbound.message.type} was refused: ${problem}`);
  }

  // Requests --------------------------------------------------------------------------------------------------------

  #request(inbound: Inbound): void {
    const entry = this.#journaled(inbound);
    // A command that is not journaled is its requester's business from here on.
    if (entry === undefined) return inbound.sending?.done();
    const { lanes, pending, dispatch } = this.#parts;
    if (lanes.isGone(inbound.origin)) pending.release(entry);
    dispatch.limitTime(entry);
  }

  /** Dispatches or refuses a request; its entry if it goes into the journal first. */
  #journaled(inbound: Inbound): PendingRequest | undefined {
    const { message, origin } = inbound;
    const { table, pending, actors, ownRequests, dispatch, circles, kept } = this.#parts;
    const route = table.route(message.kind, message.type);
    const waiting = inbound.isNew ? undefined : pending.get(message.metadata.id);
    if (waiting && (waiting.kept === undefined || !route)) return void this.#inUse(inbound);
    if (!route) return void ownRequests.answer(inbound);
    const actor = actors.get(route.capability) as SupervisedActor;
    const refusal = requestRefusal(inbound, actor);
    if (refusal) return void dispatch.refuse(inbound, refusal.code, refusal.reason, refusal.extras);
    if (waiting) return void this.#join(inbound, waiting);
    if (origin.kind === "actor") {
      const circle = circleClosedBy(message, origin.actor, actor, pending);
      if (circle) return void this.#bad(origin.actor, new BadEmission(message, whyCircle(message, circle)), undefined);
      if (actor.isAsking) circles.suspect();
    }
    if (kept?.mustKeep(inbound, actor.capability)) return kept.keep(inbound, actor);
    // Before it is dispatched: an actor may answer at once.
    const entry = inbound.isNew ? pending.insertNew(message, origin, actor) : pending.insert(message, origin, actor);
    dispatch.post(inbound, entry);
    return undefined;
  }

  /** The same command runs already. */
  #join(inbound: Inbound, waiting: PendingRequest): void {
    const { lanes, dispatch, kept } = this.#parts;
    // A requester that left waits for no answer.
    if (lanes.isGone(inbound.origin)) return;
    if (kept?.joins(inbound, waiting)) dispatch.limitTime(waiting);
    else this.#inUse(inbound);
  }

  /** No delivery fails by it: the same event may have come before, and sent this very request. */
  #inUse(inbound: Inbound): void {
    this.#parts.answers.refuse(inbound, 409, `request id ${inbound.message.metadata.id} is in use`, {
      reason: "ID_IN_USE",
    });
  }

  // Withdrawal of relayed messages
  // --------------------------------------------------------------------------------------

  /** SPEC: T12. A message in a lane is not found: the relay asks again a task later. */
  async withdraw({ ids, causedBy: cause }: Relayed): Promise<Withdrawn> {
    const { pending, kept } = this.#parts;
    const all = new Set(ids);
    if (cause !== undefined) {
      for (const { id, type, cause: request } of pending)
        if (request === cause.request && type === cause.type) all.add(id);
      for (const id of (await kept?.causedBy(cause.request, cause.type)) ?? []) all.add(id);
    }
    const counts = { withdrawn: 0, underway: 0, gone: 0 };
    for (const id of all) counts[await this.#withdraw(id)]++;
    return counts;
  }

  async #withdraw(id: string): Promise<WithdrawResult> {
    const { host, pending, kept, answers } = this.#parts;
    const entry = pending.get(id);
    if (entry === undefined || entry.kept !== undefined) return (await kept?.withdraw(id)) ?? "gone";
    if (!entry.actor.withdraw(id)) return "underway";
    answers.resolve(id, reply(host, entry, null));
    return "withdrawn";
  }

  // Outcomes --------------------------------------------------------------------------------------------------------

  /** Joined on causation alone, and only from the actor that was asked (§9.1, §14.5). */
  #outcome({ message, origin, request }: Inbound): void {
    const { pending, answers } = this.#parts;
    if (origin.kind !== "actor") return answers.orphan(message, origin);
    const { actor } = origin;
    const id = causationOf(message) ?? "";
    // If the actor was given the request, the answer was made from it.
    const asked = request ?? pending.get(id);
    if (asked?.id === id && asked.actor === actor && asked.type !== message.type) {
      const reason = `${message.type} is no answer to ${asked.type}`;
      return void this.#bad(actor, new BadEmission(message, reason), undefined);
    }
    if (!answers.resolve(id, message, actor, request)) answers.orphan(message, origin);
  }

  // Emissions of actors
  // -------------------------------------------------------------------------------------------------

  /** Takes an event of an actor; the reason if its message is not routed. */
  take(actor: SupervisedActor, said: ActorEvent): Failure | undefined {
    if (said instanceof FailedAttempt) return this.#attemptFailed(actor, said);
    const emitted = emittedBy(said);
    try {
      if (emitted instanceof BadEmission) return this.#bad(actor, emitted, said.parcel);
      return this.#emission(actor, emitted, said);
    } catch (thrown) {
      // Schemas are code of users.
      const envelope = emitted instanceof BadEmission ? emitted.envelope : emitted;
      return this.#bad(actor, new BadEmission(envelope, thrownText(thrown)), said.parcel);
    }
  }

  #attemptFailed({ name: capability }: SupervisedActor, { given, thrown, delayMs }: FailedAttempt): undefined {
    const { code } = fromError(thrown);
    const reason = `${errorText(thrown)}; tried again in ${Math.round(delayMs)} ms`;
    const fault = { capability, reason, code, type: given.type, ...stackOf(thrown) };
    this.#parts.observations.tell("Sys.ActorFault", fault, given);
  }

  #emission(actor: SupervisedActor, message: Message, said: ActorEvent): Failure | undefined {
    const made = said instanceof MadeMessageEvent ? said : undefined;
    const parcel = said.parcel ?? actor.parcelOf(message);
    if (causationOf(message) === undefined) {
      const reason = "metadata.causation: is required in messages of an actor";
      return this.#bad(actor, new BadEmission(message, reason), parcel);
    }
    if (actor.capability.relays) {
      this.#observeTimer(message);
      return this.#put(message, isOutcome(message) ? actor.origin : { kind: "relay", actor, sender: made?.sender });
    }
    const problem = takesAny(actor.capability.outbound, message) ? undefined : this.#emissionProblem(actor, message);
    if (problem) return this.#bad(actor, new BadEmission(message, problem), parcel);
    if (message.kind === "error" && this.#fault(actor, message as Message<never> as Message<ErrorData>, made, parcel))
      return undefined;
    return this.#put(message, actor.origin, made?.request, parcel);
  }

  /** The emitter of an event hears that no lane takes it: no requester waits for an event. */
  #put(message: Message, origin: Origin, request?: PendingRequest, parcel?: Parcel): Failure | undefined {
    const { lanes, answers } = this.#parts;
    const counts = message.kind === "event" || message.kind === "command";
    const sent = inbound(message, origin, request, counts ? parcel?.send() : undefined);
    const refusal = lanes.put(sent, laneOf(message.type));
    if (refusal === undefined) return undefined;
    answers.refuse(sent, 503, refusal);
    const reason = `${message.type} was not taken: ${refusal}`;
    const isHeard = origin.kind === "actor" && message.kind === "command" && origin.actor.awaits(message.metadata.id);
    sent.sending?.done(isHeard ? undefined : reason, true);
    return message.kind === "event" ? new Failure(503, reason) : undefined;
  }

  /** Why an actor may not emit this. */
  #emissionProblem({ name, capability }: SupervisedActor, message: Message): string | undefined {
    const { kind, type } = message;
    if (!this.#parts.table.mayEmit(name, kind, type))
      return `${kind} ${type} is not declared as outbound by ${name}${declarationOf(message)}`;
    return kind === "error" ? undefined : schemaProblem(capability.outbound, message)?.text;
  }

  /** Reports a failed handler. True for the handler of an event or observation: no requester waits for its outcome. */
  #fault(
    actor: SupervisedActor,
    message: Message<ErrorData>,
    made: MadeMessageEvent | undefined,
    parcel: Parcel | undefined,
  ): boolean {
    const { code } = message.data;
    const reason = thrownText(failureFrom(message.data));
    const { type } = message;
    const { pending, table, observations, observationSubscribers } = this.#parts;
    const asked = pending.get(causationOf(message) ?? "");
    // An event may have the id of a request: its failure is not the answer to that.
    const isAsked = parcel === undefined && asked?.actor === actor && asked.type === type;
    const thrown = made?.thrown;
    if (!isAsked && observationSubscribers.failed(actor, message, thrown ?? new Error(`${actor.name}: ${reason}`)))
      return true;
    const ofEvent = !isAsked && (parcel !== undefined || table.subscribers(message.type).includes(actor.name));
    // Without a waiting requester, a refusal is a failure too (U74).
    const isUnheard = isAsked && asked?.kind === "command" && !isAwaited(asked, asked.origin);
    if (code >= 500 || ofEvent || isUnheard) {
      const fault = { capability: actor.name, reason, code, type, ...stackOf(thrown) };
      observations.tell("Sys.ActorFault", fault, message);
    }
    if (ofEvent) parcel?.fail(reason);
    return ofEvent;
  }

  #observeTimer({ kind, type, data, metadata }: Message): void {
    const observed = TIMER_OBSERVATIONS[`${kind} ${type}`];
    if (observed) this.#parts.observations.tell(observed, data, { metadata });
  }

  /**
   * Refuses an emission. If it was an answer, the requester gets an error. If it was a request, the actor gets one. If
   * it was an event, `emit` throws in this process; a worker cannot be told in time, so the message that it handles
   * fails (L91).
   */
  #bad(actor: RequestingActor, { envelope: said, reason }: BadEmission, parcel: Parcel | undefined): Failure {
    const { host, observations } = this.#parts;
    observations.tell("Sys.ActorFault", { capability: actor.name, reason }, causeIn(said));
    if (said?.kind === "reply" || said?.kind === "error")
      this.#failRequest(actor, said, `${actor.name} gave an invalid answer: ${reason}`);
    else if ((said?.kind === "command" || said?.kind === "query") && typeof said.metadata?.id === "string") {
      if (!actor.awaits(said.metadata.id)) parcel?.fail(`${said.type} was not sent: ${reason}`);
      actor.answer(error(host, said as Message, errorData(500, `not sent: ${reason}`)));
    } else if (!actor.hearsRefusals) {
      parcel?.fail(`${said?.type ?? "a message"} was not emitted: ${reason}`);
      if (said?.kind === "event") this.#failRequest(actor, said, `${said.type} was not emitted: ${reason}`);
    }
    return new Failure(500, reason);
  }

  /** Answers the request that caused an emission, if its actor emitted that. */
  #failRequest(actor: RequestingActor, { metadata }: Partial<Message>, reason: string): void {
    const { host, pending, answers } = this.#parts;
    const id = metadata?.causation;
    const entry = typeof id === "string" ? pending.get(id) : undefined;
    if (entry?.actor === actor) answers.resolve(entry.id, error(host, entry, errorData(500, reason)));
  }

  // Lives of actors -------------------------------------------------------------------------------------------------

  crashed(actor: SupervisedActor, reason: string, next: "restart" | "unhealthy"): void {
    const { host, pending, observations, answers } = this.#parts;
    observations.tell("Sys.ActorFault", { capability: actor.name, reason });
    if (next === "unhealthy") observations.tell("Sys.ActorUnhealthy", { capability: actor.name, reason });
    // The next actor has not asked the requests of this one.
    for (const entry of [...pending]) {
      if (entry.origin !== actor.origin) continue;
      if (entry.kept === undefined) pending.take(entry.id);
      else pending.release(entry);
    }
    for (const id of pending.of(actor)) {
      const entry = pending.get(id);
      // A journaled command that was not delivered yet is delivered to the next actor.
      if (entry && entry.kept?.state !== "kept")
        answers.resolve(id, error(host, entry, errorData(500, `${actor.name} crashed: ${reason}`)));
    }
  }

  restarted(actor: SupervisedActor): void {
    this.#parts.observations.tell("Sys.ActorRestarted", { capability: actor.name });
  }
}

/** An emission as a cause, if it has an id. */
function causeIn(said: Partial<Message> | null): Pick<Message, "metadata"> | undefined {
  const { id, correlation, timestamp } = said?.metadata ?? {};
  if (!isId(id) || timestamp === undefined) return undefined;
  return { metadata: { id, timestamp, ...(isId(correlation) ? { correlation } : {}) } };
}

/** Answers and events of the timer, and the observations of them (§17). */
const TIMER_OBSERVATIONS: Readonly<Record<string, ObservationType>> = {
  "reply Timer.Set": "Sys.TimerSet",
  "reply Timer.Every": "Sys.TimerSet",
  "reply Timer.Cancel": "Sys.TimerCancelled",
  "event Timer.Fired": "Sys.TimerFired",
};

function whyCircle({ kind, type }: Message, circle: readonly string[]): string {
  const waiting = `${circle.join(" waits for ")}, which handles one message at a time`;
  return `${kind} ${type} would never be answered: ${waiting}; call its handler as a function, or use send() and do not wait`;
}

function isOutcome({ kind }: Message): boolean {
  return kind === "reply" || kind === "error";
}
