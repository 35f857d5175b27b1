/**
 * The routing laws (RFC 0032 §9): by kind, one turn's worth at a time. Immediate failures are terminal answers plus an observation:
 * 404 nobody handles it, 409 the id is pending already, 422 the data does not fit, 503 the actor takes no more.
 */
import type { Host } from "../host/host.ts";
import { causationOf, isId, type Message } from "../message/envelope.ts";
import {
  type ErrorData,
  errorData,
  Failure,
  failureOf,
  type SystemErrorCode,
  thrownText,
} from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { causedBy, command, error, reply } from "../message/lineage.ts";
import { eventRefusal, refusalOf } from "./admission.ts";
import { CircleWatch } from "./circle-watch.ts";
import type { CommandJournal } from "./command-journal.ts";
import type { EventDeliveries } from "./event-deliveries.ts";
import type { EventLoop, EventLoopOptions } from "./event-loop.ts";
import { EventRouting } from "./event-routing.ts";
import {
  type Connection,
  type Inbound,
  inbound,
  laneOf,
  NOBODY,
  type Origin,
  type Sender,
  type Sent,
} from "./inbound.ts";
import { KeptCommands } from "./kept-commands.ts";
import { declarationOf, schemaProblem, takesAny } from "./message-schema.ts";
import { type ObservationType, stackOf } from "./observation.ts";
import type { PendingRequest } from "./pending-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";
import { circleClosedBy } from "./waiting-circle.ts";

/** Facts about a message that an actor has emitted. */
export interface Emission {
  /** Of an error answer: the value that the handler threw. */
  readonly thrown: unknown;
  /** Of an answer: the request, if the actor was given that. */
  readonly request: PendingRequest | undefined;
  /** Of a relayed message: its authority. */
  readonly sender: Sender | undefined;
}

export class Router {
  readonly #loop: EventLoop;
  readonly #host: Host;
  readonly events: EventRouting;
  readonly #requestTimeoutMs: number | undefined;
  readonly #deliveries: EventDeliveries;
  readonly #circles: CircleWatch;
  #kept: KeptCommands | undefined;
  #commands: CommandJournal | undefined;

  constructor(loop: EventLoop, { host, events, requestTimeoutMs }: EventLoopOptions) {
    this.#loop = loop;
    this.#host = host;
    this.events = new EventRouting(loop, host, events);
    this.#deliveries = this.events.deliveries;
    this.#requestTimeoutMs = requestTimeoutMs;
    const { pending, observations } = loop;
    this.#circles = new CircleWatch({
      ...{ host, pending, observations },
      giveUp: (request, reason) => this.#timeoutLater(request, reason),
    });
  }

  /** From now on commands are kept that have to be; the actors are there. */
  keepCommands(journal: CommandJournal): void {
    this.#commands = journal;
    const post = (inbound: Sent, entry: PendingRequest) => this.#post(inbound, entry);
    this.#kept = new KeptCommands({ host: this.#host, loop: this.#loop, journal, deliveries: this.#deliveries, post });
  }

  /** One turn. Whatever goes wrong in it is the message's end, not the loop's. */
  route(inbound: Inbound): void {
    try {
      this.#byKind(inbound);
    } catch (thrown) {
      this.#notRouted(inbound, thrownText(thrown));
    }
  }

  #notRouted(inbound: Inbound, reason: string): void {
    const { kind, type, metadata } = inbound.message;
    try {
      this.#deliveries.kept(metadata.id, `${type} was not routed: ${reason}`);
      this.#loop.refuse(inbound, 500, reason);
    } catch (thrown) {
      // Not even that it was refused can be said to whoever sent it.
      this.#loop.observations.tell("Sys.RoutingError", { kind, type, code: 500, reason: thrownText(thrown) });
    }
  }

  #byKind(inbound: Inbound): void {
    switch (inbound.message.kind) {
      case "command":
        this.#request(inbound);
        return this.#handedOn(inbound.message);
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
    if (problem === undefined) this.events.publish(inbound);
    else this.#loop.refuse(inbound, 403, problem);
  }

  stop(): void {
    this.#circles.stop();
    this.#kept?.stop();
  }

  // Requests -----------------------------------------------------------------------------------------------------------------

  #request(inbound: Inbound): void {
    const { message, origin } = inbound;
    const { table, pending, actors } = this.#loop;
    const route = table.route(message.kind, message.type);
    const waiting = inbound.isNew ? undefined : pending.get(message.metadata.id);
    if (waiting && (waiting.kept === undefined || !route)) return this.#inUse(inbound);
    if (!route) return this.#ownRequest(inbound);
    const actor = actors.get(route.capability) as SupervisedActor;
    const refusal = refusalOf(inbound, actor);
    if (refusal) return this.#refuse(inbound, refusal.code, refusal.reason);
    if (waiting) return this.#join(inbound, waiting);
    if (origin.kind === "actor") {
      const circle = circleClosedBy(message, origin.actor, actor, pending);
      if (circle) return void this.badEmission(origin.actor, message, whyCircle(message, circle));
      if (actor.isAsking) this.#circles.suspect();
    }
    if (!this.#kept?.mustKeep(inbound, actor.capability)) {
      // Before it is dispatched: an actor may answer at once.
      const entry = inbound.isNew ? pending.insertNew(message, origin, actor) : pending.insert(message, origin, actor);
      return this.#post(inbound, entry);
    }
    const entry = this.#kept.keep(inbound, actor);
    if (!entry) return;
    if (this.#loop.isGone(origin)) pending.release(entry);
    this.#limitTime(entry);
  }

  /** The same is being done already. */
  #join(inbound: Inbound, waiting: PendingRequest): void {
    // Who has gone meanwhile waits for nothing.
    if (this.#loop.isGone(inbound.origin)) return;
    if (this.#kept?.joins(inbound, waiting)) this.#limitTime(waiting);
    else this.#inUse(inbound);
  }

  /** A command that nothing keeps is the business of who asked for it from here on. */
  #handedOn({ metadata: { id } }: Message): void {
    if (!this.#kept?.isOnItsWay(id)) this.#deliveries.kept(id);
  }

  /** Where nobody waits for the answer, the event because of which it was sent was not handled as it should be. */
  #refuse(inbound: Sent, code: SystemErrorCode, reason: string): void {
    const { message, origin } = inbound;
    const { id } = message.metadata;
    if (origin.kind === "actor" && !origin.actor.awaits(id))
      this.#deliveries.kept(id, `${message.type} was refused: ${reason}`);
    // Whoever set a timer was told that it is set. What is refused for the moment is sent again.
    if (origin.kind === "relay" && code !== 503) {
      if (message.kind === "command") this.#commands?.refused?.(message, reason);
      const fault = { capability: origin.actor.name, reason, code, type: message.type };
      this.#loop.observations.tell("Sys.ActorFault", fault, message);
    }
    this.#loop.refuse(inbound, code, reason);
  }

  /** It may be the very same, sent by an event that came again while that is done: so no delivery fails by it. */
  #inUse(inbound: Sent): void {
    this.#loop.refuse(inbound, 409, `request id ${inbound.message.metadata.id} is in use`);
  }

  /** Gives a request that is pending to its actor, or answers why not. */
  #post(inbound: Sent, entry: PendingRequest): void {
    const { message, origin } = inbound;
    const { pending, observations } = this.#loop;
    const { actor } = entry;
    let refusal: string | undefined;
    // Before it is dispatched: an actor may answer at once.
    entry.handling = this.#loop.handlings?.given(message, actor.name, senderText(entry.kept?.sentBy ?? origin));
    try {
      refusal = actor.post(message, entry);
    } catch (thrown) {
      const reason = `postMessage failed: ${thrownText(thrown)}`;
      observations.tell("Sys.ActorFault", { capability: actor.name, reason }, message);
      return this.#takeBack(inbound, entry, 500, `${actor.name}: ${reason}`);
    }
    if (refusal !== undefined) return this.#takeBack(inbound, entry, 503, refusal);
    // It is done, as what was asked just before; its outcome is an orphan.
    if (this.#loop.isGone(origin) && entry.kept === undefined) pending.take(entry.id);
    if (entry.kept === undefined) this.#limitTime(entry);
    if (observations.wanted) observations.tell("Sys.Routed", { capability: actor.name, type: message.type }, message);
  }

  /** The actor could not even take it: the requester hears so at once. */
  #takeBack(inbound: Sent, entry: PendingRequest, code: 500 | 503, reason: string): void {
    this.#loop.pending.take(entry.id);
    if (entry.handling !== undefined) this.#loop.handlings?.ended(entry.handling, `${code}: ${reason}`);
    entry.kept?.ended(error(this.#host, entry, errorData(code, reason)), entry.origin);
    this.#refuse(inbound, code, reason);
  }

  #limitTime(entry: PendingRequest): void {
    const { kind } = entry.origin;
    if (this.#requestTimeoutMs === undefined || kind === "caller" || kind === "nobody") return;
    if (this.#loop.pending.get(entry.id) !== entry) return;
    entry.timeout = this.#host.timer(this.#requestTimeoutMs, () => this.#timeoutLater(entry));
  }

  /** What the loop answers itself: no capability can claim it. */
  #ownRequest(inbound: Inbound): void {
    switch (`${inbound.message.kind} ${inbound.message.type}`) {
      case "command Sys.RequestTimeout":
        return this.#timeout(inbound);
      case "command Sys.Subscribe":
        return this.#stream(inbound, (message, connection) => this.#loop.streams.subscribe(message, connection));
      case "command Sys.Unsubscribe":
        return this.#stream(inbound, (message, connection) => this.#loop.streams.unsubscribe(message, connection));
      default:
        return this.#refuse(inbound, 404, `nobody handles ${inbound.message.kind} ${inbound.message.type}`);
    }
  }

  /** The loop's own timeout goes through the system lane like anybody's (§12.7). */
  #timeoutLater(request: Pick<Message, "metadata">, reason?: string): void {
    const data = { requestId: request.metadata.id, ...(reason === undefined ? {} : { reason }) };
    const timeout = command(this.#host, "Sys.RequestTimeout", data, causedBy(request));
    this.#loop.enqueue(timeout, NOBODY, "system");
  }

  /** `Sys.RequestTimeout`: an outsider cannot touch what another connection waits for (§12.8), not by a timer either. */
  #timeout(inbound: Inbound): void {
    const { message, origin } = inbound;
    const { requestId, reason } = (message.data ?? {}) as { requestId?: unknown; reason?: unknown };
    if (typeof requestId !== "string") return this.#refuse(inbound, 422, "data.requestId: must be the id of a request");
    const entry = this.#loop.pending.get(requestId);
    const expired = entry !== undefined && mayExpire(origin, entry.origin);
    // Only the loop itself knows why.
    const why = origin.kind === "nobody" && typeof reason === "string" ? reason : undefined;
    if (expired) this.#loop.giveUp(entry, error(this.#host, entry, errorData(504, why)));
    // Whoever asked is told what came of it; the loop's own timers ask for nothing.
    this.#loop.deliver(origin, reply(this.#host, message, { expired }));
  }

  /** Subscriptions of a client: only a connection can have them. */
  #stream(inbound: Inbound, answer: (message: Message, connection: Connection) => Json): void {
    const { message, origin } = inbound;
    if (origin.kind !== "adapter") return this.#refuse(inbound, 422, `${message.type} is for clients of an adapter`);
    if (this.#loop.isGone(origin)) return;
    // Only what a transaction or a handler publishes carries its label for certain: plain code may publish anything.
    if (origin.connection.clearance !== undefined)
      return this.#refuse(
        inbound,
        403,
        "a connection with a clearance cannot subscribe to events; ask for what it may know",
      );
    try {
      origin.connection.deliver(reply(this.#host, message, answer(message, origin.connection)));
    } catch (thrown) {
      const code = thrown instanceof Failure && (thrown.code === 422 || thrown.code === 404) ? thrown.code : 503;
      this.#refuse(inbound, code, thrownText(thrown));
    }
  }

  // Outcomes -----------------------------------------------------------------------------------------------------------------

  /** Joined on causation alone, and only from the actor that was asked (§9.1, §14.5). */
  #outcome({ message, origin, request }: Inbound): void {
    if (origin.kind !== "actor") return this.#loop.orphan(message, origin);
    const { actor } = origin;
    const id = causationOf(message) ?? "";
    // Where the actor was given the request with it, the answer was made from that.
    const asked = request ?? this.#loop.pending.get(id);
    if (asked?.id === id && asked.actor === actor && asked.type !== message.type)
      return void this.badEmission(actor, message, `${message.type} is no answer to ${asked.type}`);
    if (!this.#loop.resolve(id, message, actor, request)) this.#loop.orphan(message, origin);
  }

  // What actors emit -----------------------------------------------------------------------------------------------------------

  /** Takes what an actor has said, or gives the reason why it is not routed. */
  emission(actor: SupervisedActor, message: Message, { thrown, request, sender }: Emission): Failure | undefined {
    if (causationOf(message) === undefined)
      return this.badEmission(actor, message, "metadata.causation: is required of what an actor emits");
    if (actor.capability.relays) {
      this.#observeTimer(message);
      return this.#take(message, isOutcome(message) ? actor.origin : { kind: "relay", actor, sender });
    }
    const problem = takesAny(actor.capability.outbound, message) ? undefined : this.#emissionProblem(actor, message);
    if (problem) return this.badEmission(actor, message, problem);
    if (message.kind === "error" && this.#fault(actor, message as Message<never> as Message<ErrorData>, thrown))
      return undefined;
    return this.#take(message, actor.origin, request);
  }

  /** An event that is not taken reaches nobody, and nobody waits for it: whoever emits it has to know. */
  #take(message: Message, origin: Origin, request?: PendingRequest): Failure | undefined {
    // Before it is in a lane: from there it may be taken at once.
    if (origin.kind === "actor" && (message.kind === "event" || message.kind === "command"))
      this.#deliveries.sent(origin.actor.name, message);
    if (this.#loop.admit(inbound(message, origin, request), laneOf(message.type))) return undefined;
    const reason = `${message.type} was not taken: too much waits to be routed, or the kernel is shutting down`;
    const isHeard = origin.kind === "actor" && message.kind === "command" && origin.actor.awaits(message.metadata.id);
    this.#deliveries.kept(message.metadata.id, isHeard ? undefined : reason);
    return message.kind === "event" ? new Failure(503, reason) : undefined;
  }

  /** Why an actor may not say this. */
  #emissionProblem({ name, capability }: SupervisedActor, message: Message): string | undefined {
    const { kind, type } = message;
    if (!this.#loop.table.mayEmit(name, kind, type))
      return `${kind} ${type} is not among what ${name} declares as outbound${declarationOf(message)}`;
    return kind === "error" ? undefined : schemaProblem(capability.outbound, message);
  }

  /** Reports a failed handler. True when nobody waits for the outcome because it is an event's. */
  #fault(actor: SupervisedActor, message: Message<ErrorData>, thrown: unknown): boolean {
    const { code } = message.data;
    const reason = thrownText(failureOf(message.data));
    const { type } = message;
    const { pending, table, observations, observationSubscribers } = this.#loop;
    const asked = pending.get(causationOf(message) ?? "");
    // An event may have the id of a request: its failure is nobody's answer.
    const isAsked = asked?.actor === actor && asked.type === type;
    if (!isAsked && observationSubscribers.failed(actor, message, thrown ?? new Error(`${actor.name}: ${reason}`)))
      return true;
    const ofEvent = !isAsked && table.subscribers(message.type).includes(actor.name);
    if (code >= 500 || ofEvent) {
      const fault = { capability: actor.name, reason, code, type, ...stackOf(thrown) };
      observations.tell("Sys.ActorFault", fault, message);
    }
    if (ofEvent) this.#deliveries.failed(actor.name, causationOf(message) ?? "", reason);
    return ofEvent;
  }

  #observeTimer({ kind, type, data, metadata }: Message): void {
    const observed = TIMER_OBSERVATIONS[`${kind} ${type}`];
    if (observed) this.#loop.observations.tell(observed, data, { metadata });
  }

  /**
   * What an actor emitted is not routed. If it was somebody's answer, he gets an error instead of nothing; if it was a request, the
   * actor does, which would wait for ever.
   */
  badEmission(actor: SupervisedActor, data: unknown, reason: string): Failure {
    const said = data as Partial<Message> | null;
    this.#loop.observations.tell("Sys.ActorFault", { capability: actor.name, reason }, causeIn(said));
    if (said?.kind === "reply" || said?.kind === "error") this.#refuseAnswer(actor, said, reason);
    else if ((said?.kind === "command" || said?.kind === "query") && typeof said.metadata?.id === "string") {
      const { id, causation } = said.metadata;
      if (!actor.awaits(id))
        this.#deliveries.failed(actor.name, causation ?? "", `${said.type} was not sent: ${reason}`);
      actor.answer(error(this.#host, said as Message, errorData(500, `not sent: ${reason}`)));
    }
    return new Failure(500, reason);
  }

  #refuseAnswer(actor: SupervisedActor, { metadata }: Partial<Message>, reason: string): void {
    const id = metadata?.causation;
    const entry = typeof id === "string" ? this.#loop.pending.get(id) : undefined;
    if (!entry || entry.actor !== actor) return;
    const answer = error(this.#host, entry, errorData(500, `${actor.name} gave an invalid answer: ${reason}`));
    this.#loop.resolve(entry.id, answer);
  }
}

/** What was said, as a cause, where it has an id and a conversation. */
function causeIn(said: Partial<Message> | null): Pick<Message, "metadata"> | undefined {
  const { id, correlation, timestamp } = said?.metadata ?? {};
  if (!isId(id) || timestamp === undefined) return undefined;
  return { metadata: { id, timestamp, ...(isId(correlation) ? { correlation } : {}) } };
}

/** What the timer does, as it is observed (§17). */
const TIMER_OBSERVATIONS: Readonly<Record<string, ObservationType>> = {
  "reply Timer.Set": "Sys.TimerSet",
  "reply Timer.Every": "Sys.TimerSet",
  "reply Timer.Cancel": "Sys.TimerCancelled",
  "event Timer.Fired": "Sys.TimerFired",
};

/** Actors and the loop may time out any request; a client only its own, directly or by a timer that it has set. */
function mayExpire(asker: Origin, waiting: Origin): boolean {
  const client =
    asker.kind === "adapter"
      ? asker.connection.id
      : asker.kind === "relay" && asker.sender?.kind === "client"
        ? asker.sender.id
        : undefined;
  if (client !== undefined) return waiting.kind === "adapter" && waiting.connection.id === client;
  return asker.kind !== "relay" || asker.sender !== undefined;
}

function whyCircle({ kind, type }: Message, circle: readonly string[]): string {
  const waiting = `${circle.join(" waits for ")}, which handles one message at a time`;
  return `${kind} ${type} would never be answered: ${waiting}; call what handles it as a function, or use send() and do not wait`;
}

/** Who sent a message, for people. */
export function senderText(origin: Origin): string {
  switch (origin.kind) {
    case "adapter":
      return `a client of the ${origin.connection.adapter}`;
    case "actor":
    case "relay":
      return origin.actor.name;
    case "caller":
      return "the program";
    case "nobody":
      return "the kernel";
  }
}

function isOutcome({ kind }: Message): boolean {
  return kind === "reply" || kind === "error";
}
