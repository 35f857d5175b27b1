/**
 * The CQRS event loop (RFC 0032) as adapters, actors and callers know it: what is asked of it goes into the lanes, what comes of it goes back
 * to whoever asked. It routes and does nothing else: no handler runs here, no turn waits.
 *
 * ```
 *   adapters ─┐              ┌─> command, query ──> pending table ──> the one actor
 *   actors ───┼─> lanes ─> turn ─> event ──> journal ──> every subscriber's actor
 *   timers ───┘              └─> reply, error ──> whoever asked (by causation, from the asked actor only)
 * ```
 * SPEC: L. Deliberately not here: when a message is taken (`Turns`), by which law it is handed on (`Router`), durability (the journal),
 * transports (adapters), what handlers do.
 */

import type { HandlingRing } from "../bus/handling-ring.ts";
import type { Host } from "../host/host.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { type ErrorData, errorData, type Failure, type SystemErrorCode, thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { error, type Lineage } from "../message/lineage.ts";
import { Callers } from "./callers.ts";
import type { Capability } from "./capability.ts";
import type { CommandJournal } from "./command-journal.ts";
import { copyMessage, Emissions } from "./emissions.ts";
import type { EventJournal } from "./event-journal.ts";
import { EventStreams } from "./event-streams.ts";
import {
  type Connection,
  type Inbound,
  inbound,
  type LaneName,
  laneOf,
  NOBODY,
  type Origin,
  type Sent,
} from "./inbound.ts";
import type { AdapterLife, Liveness } from "./liveness.ts";
import { type LoopLimits, loopLimits, requireTime } from "./loop-limits.ts";
import type { MadeMessageEvent } from "./mailbox-actor.ts";
import { Observations, type Observer } from "./observation.ts";
import { ObservationSubscribers } from "./observation-subscribers.ts";
import { type PendingRequest, PendingTable } from "./pending-table.ts";
import { Router } from "./router.ts";
import { BootError, RoutingTable } from "./routing-table.ts";
import { type ActorHome, SupervisedActor } from "./supervised-actor.ts";
import { Turns } from "./turns.ts";

export interface EventLoopOptions extends Partial<LoopLimits> {
  readonly host: Host;
  readonly capabilities: Readonly<Record<string, Capability>>;
  /** Journals events before they are delivered. Without one they are delivered at once and not kept. */
  readonly events?: EventJournal;
  /** Keeps commands that nobody waits for, and those of capabilities that want it. Without one they are dispatched at once. */
  readonly commands?: CommandJournal;
  /** After this long a request of a client or an actor is answered with 504; never unless given. */
  readonly requestTimeoutMs?: number;
  readonly observe?: Observer;
  /** Remembers the last handlings of requests. */
  readonly handlings?: HandlingRing;
  /** Hears of faults alone: ordinary work costs nothing then. */
  readonly observeFaults?: Observer;
}

export class EventLoop implements ActorHome {
  readonly table: RoutingTable;
  readonly observations: Observations;
  readonly observationSubscribers: ObservationSubscribers;
  readonly pending = new PendingTable();
  readonly actors = new Map<string, SupervisedActor>();
  readonly streams: EventStreams;
  readonly handlings: HandlingRing | undefined;
  readonly #adapters = new Set<AdapterLife>();
  readonly #host: Host;
  readonly #limits: LoopLimits;
  readonly #router: Router;
  readonly #turns: Turns;
  readonly #callers: Callers;
  readonly #emissions: Emissions;
  #stopped = false;

  /** Validates, indexes, then spawns and listens to every actor. Where anything is wrong, nothing is left running. */
  static async boot(options: EventLoopOptions): Promise<EventLoop> {
    const capabilities = new Map(Object.entries(options.capabilities));
    const loop = new EventLoop(options, RoutingTable.build(capabilities));
    try {
      loop.#spawn(capabilities);
      loop.#subscribe(options.events);
      if (options.commands) loop.#router.keepCommands(options.commands);
      loop.observationSubscribers.subscribe(loop.observations, loop.actors);
    } catch (thrown) {
      await loop.stop();
      throw thrown;
    }
    return loop;
  }

  private constructor(options: EventLoopOptions, table: RoutingTable) {
    this.#host = options.host;
    this.#limits = loopLimits(options);
    if (options.requestTimeoutMs !== undefined) requireTime("requestTimeoutMs", options.requestTimeoutMs);
    this.table = table;
    this.handlings = options.handlings;
    this.observations = new Observations(options.host);
    if (options.observe) this.observations.add(options.observe);
    if (options.observeFaults) this.observations.addForFaults(options.observeFaults);
    this.observationSubscribers = new ObservationSubscribers({ host: options.host, table });
    this.#router = new Router(this, options);
    this.#callers = new Callers(options.host, this);
    this.#emissions = new Emissions(this.#router);
    this.#turns = new Turns({
      ...{ host: options.host, observations: this.observations, router: this.#router },
      limits: this.#limits,
    });
    this.streams = new EventStreams({ host: options.host, journal: options.events });
  }

  #spawn(capabilities: ReadonlyMap<string, Capability>): void {
    const shared = { host: this.#host, home: this, mailboxMax: this.#limits.mailboxMax };
    for (const [name, capability] of capabilities) {
      const actor = new SupervisedActor({ name, capability, ...shared });
      try {
        actor.start();
      } catch (thrown) {
        throw new BootError([`capability ${name}: spawn failed: ${thrownText(thrown)}`]);
      }
      this.actors.set(name, actor);
    }
  }

  #subscribe(events: EventJournal | undefined): void {
    if (!events) return;
    for (const [type, names] of this.table.subscribedTypes()) {
      for (const name of names) events.subscribe(type, name, (message) => this.#router.events.handle(message, name));
    }
  }

  // Ingress ----------------------------------------------------------------------------------------------------------------

  /**
   * A message from outside: user lane, whatever its type (§8.2). It is known to be valid. An adapter calls it in a task of its own, such
   * as a socket's event: turns begin when that is over.
   */
  receive(message: Message, connection: Connection): void {
    if (this.#put(inbound(message, { kind: "adapter", connection }), "user")) this.#turns.beginAfterThis();
  }

  /** A connection is gone: nobody waits for its answers any more (§14.7). */
  disconnect(connection: Connection): void {
    this.pending.disconnect(connection);
    this.streams.disconnect(connection);
    this.#turns.disconnect(connection);
    this.#turns.checkRest();
  }

  /** Whether whoever has sent a message went before its turn came. */
  isGone(origin: Origin): boolean {
    return this.#turns.isGone(origin);
  }

  /** An adapter is about to close a connection: what it still waits for is answered, not left open. */
  abandon(connection: Connection, reason: string): void {
    for (const request of this.pending.waitingFor(connection)) {
      this.giveUp(request, error(this.#host, request, errorData(503, reason)));
    }
  }

  /** An adapter that is open keeps the loop alive (§16); call what is returned when it has closed. */
  attach(adapter: AdapterLife): () => void {
    this.#adapters.add(adapter);
    return () => {
      this.#adapters.delete(adapter);
    };
  }

  /** False where the message was refused, which is told already. */
  enqueue(message: Message, origin: Origin = NOBODY, lane: LaneName = laneOf(message.type)): boolean {
    return this.admit(inbound(message, origin), lane);
  }

  /** The same, where more is known of the message. */
  admit(given: Inbound, lane: LaneName): boolean {
    const isTaken = this.#put(given, lane);
    if (isTaken) this.#turns.wake();
    return isTaken;
  }

  /** Puts a message into a lane; false where it was refused. */
  #put(given: Inbound, lane: LaneName): boolean {
    if (this.#stopped || (this.#turns.isFull(lane) && !this.#isAwaited(given))) {
      const why = this.#stopped ? "the kernel is shutting down" : `the ${lane} lane is full (${this.#limits.laneMax})`;
      this.refuse(given, 503, why);
      return false;
    }
    this.#turns.put(given, lane);
    return true;
  }

  /** An answer that somebody waits for is let in when the lane is full: there are no more of them than pending requests. */
  #isAwaited({ message, origin }: Inbound): boolean {
    if ((message.kind !== "reply" && message.kind !== "error") || origin.kind !== "actor") return false;
    return this.pending.get(causationOf(message) ?? "")?.actor === origin.actor;
  }

  /** Bookkeeping at the end of the present turn, or of the next. Bounded; what is over is carried on. */
  microtask(task: () => void): void {
    this.#turns.microtask(task);
  }

  /** Runs a task once, when the present slice of turns is over, or after the present callback when none is on its way. */
  atSliceEnd(task: () => void): void {
    this.#turns.atSliceEnd(task);
  }

  /** Asks from this process; resolves with the data of the reply, and rejects with a `Failure`. */
  command(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return this.#callers.command(type, data, lineage);
  }

  query(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return this.#callers.query(type, data, lineage);
  }

  /** Sends a whole request from this process; resolves with the answer, a reply or an error. */
  request(message: Message): Promise<Message> {
    return this.#callers.request(message);
  }

  // Answers ------------------------------------------------------------------------------------------------------------------

  /**
   * Says why a message was not accepted. The sender of a request and the client that sent an event get an error; the pending
   * table is not touched. Every refusal is observed.
   */
  refuse({ message, origin }: Sent, code: SystemErrorCode, reason: string): void {
    const { kind, type } = message;
    const told = error(this.#host, message, errorData(code, reason));
    // The mark tells a refusal from a handler's own answer: the request may be sent again.
    const refusal = { ...told, metadata: { ...told.metadata, refused: true } };
    if (kind === "command" || kind === "query") this.deliver(origin, refusal);
    else if (kind === "event" && origin.kind === "adapter") {
      origin.connection.taken?.(message);
      this.tell(origin.connection, refusal);
    }
    this.observations.tell(code === 503 ? "Sys.Overload" : "Sys.RoutingError", { kind, type, code, reason }, message);
  }

  /** Answers a pending request and forgets it; where an actor answers, only what it was asked, which it may have named. */
  resolve(id: string, answer: Message | Message<ErrorData>, from?: SupervisedActor, request?: PendingRequest): boolean {
    const entry = this.pending.take(id, from, request);
    if (!entry) return false;
    entry.kept?.ended(answer, entry.origin);
    if (entry.handling !== undefined) this.handlings?.ended(entry.handling, outcomeText(answer), entry.begunAt);
    this.deliver(entry.origin, answer);
    this.#turns.checkRest();
    return true;
  }

  /** Answers a requester who is to wait no longer; what the journal keeps is handled all the same. */
  giveUp(entry: PendingRequest, answer: Message<ErrorData>): void {
    if (entry.kept === undefined) return void this.resolve(entry.id, answer);
    const { origin } = entry;
    this.pending.release(entry);
    this.deliver(origin, answer);
  }

  deliver(origin: Origin, answer: Message | Message<ErrorData>): void {
    switch (origin.kind) {
      case "adapter":
        return this.#deliverTo(origin.connection, answer);
      case "actor":
        if (!this.#answerTo(origin.actor, answer)) this.orphan(answer, origin);
        return;
      case "caller":
        return origin.answer(answer);
      case "relay":
        // It asked for nobody in particular, but it may want to know that the message was handled.
        this.#answerTo(origin.actor, answer);
        return;
      case "nobody":
        return;
    }
  }

  /** An actor that throws upon its answer has had it. */
  #answerTo(actor: SupervisedActor, answer: Message | Message<ErrorData>): boolean {
    try {
      return actor.answer(answer);
    } catch (thrown) {
      const reason = `postMessage failed: ${thrownText(thrown)}`;
      this.observations.tell("Sys.ActorFault", { capability: actor.name, reason }, answer);
      return true;
    }
  }

  /** An adapter that fails is told of, and keeps nobody else's turn from coming. */
  #deliverTo(connection: Connection, answer: Message | Message<ErrorData>): void {
    try {
      connection.deliver(answer);
    } catch (thrown) {
      const { kind, type } = answer;
      const reason = `not delivered by ${connection.adapter}: ${thrownText(thrown)}`;
      this.observations.tell("Sys.RoutingError", { kind, type, reason }, answer);
    }
  }

  /** Writes to a connection a message that answers none of its requests. */
  tell(connection: Connection, message: Message | Message<ErrorData>): void {
    try {
      connection.stream(message as Message);
    } catch (thrown) {
      const { kind, type } = message;
      const reason = `not written by ${connection.adapter}: ${thrownText(thrown)}`;
      this.observations.tell("Sys.RoutingError", { kind, type, reason }, message);
    }
  }

  /** An outcome that nobody waits for reaches nobody (§14.5). */
  orphan({ kind, type, metadata }: Message | Message<ErrorData>, origin: Origin): void {
    const from = origin.kind === "actor" ? origin.actor.name : origin.kind;
    this.observations.tell(
      "Sys.OrphanOutcome",
      { type, kind, causation: metadata.causation ?? "", from },
      { metadata },
    );
  }

  // Actors -------------------------------------------------------------------------------------------------------------------

  emitted(actor: SupervisedActor, data: unknown): Failure | undefined {
    return this.#emissions.take(actor, data);
  }

  emittedMade(actor: SupervisedActor, said: MadeMessageEvent): Failure | undefined {
    return this.#emissions.takeMade(actor, said);
  }

  crashed(actor: SupervisedActor, reason: string, next: "restart" | "unhealthy"): void {
    this.observations.tell("Sys.ActorFault", { capability: actor.name, reason });
    this.#router.events.crashed(actor, reason);
    if (next === "unhealthy") this.observations.tell("Sys.ActorUnhealthy", { capability: actor.name, reason });
    // What it had asked is of no use to the next one, which has not asked it.
    for (const entry of [...this.pending]) {
      if (entry.origin !== actor.origin) continue;
      if (entry.kept === undefined) this.pending.take(entry.id);
      else this.pending.release(entry);
    }
    for (const id of this.pending.of(actor)) {
      const entry = this.pending.get(id);
      // What the journal keeps and has not delivered is delivered to the next.
      if (entry && entry.kept?.state !== "kept")
        this.resolve(id, error(this.#host, entry, errorData(500, `${actor.name} crashed: ${reason}`)));
    }
  }

  restarted(actor: SupervisedActor): void {
    this.observations.tell("Sys.ActorRestarted", { capability: actor.name });
  }

  /** Starts an actor that was given up after too many crashes. */
  heal(capability: string): void {
    this.actors.get(capability)?.heal();
  }

  /** Each receiver its own: nothing that one does to a message is seen by another (§6.3). */
  copy(message: Message): Message {
    return copyMessage(message);
  }

  // Life ---------------------------------------------------------------------------------------------------------------------

  get liveness(): Liveness {
    let mailboxes = 0;
    let timers = 0;
    for (const actor of this.actors.values()) {
      mailboxes += actor.mailboxLength;
      timers += actor.scheduled;
    }
    let frames = 0;
    for (const adapter of this.#adapters) frames += adapter.frames;
    const [systemLane, userLane, turns] = [this.#turns.length("system"), this.#turns.length("user"), this.#turns.count];
    const pendingRequests = this.pending.size;
    const adapters = this.#adapters.size;
    const quiescent = this.#turns.isResting && pendingRequests === 0 && mailboxes === 0;
    return {
      alive: !quiescent || adapters > 0 || timers > 0 || frames > 0,
      ...{ quiescent, systemLane, userLane, pendingRequests, mailboxes, timers, adapters, frames, turns },
    };
  }

  /** Resolves when the lanes are empty, no mailbox holds anything and nobody waits for an answer. */
  async drained(): Promise<void> {
    while (!this.liveness.quiescent) {
      if (!this.#turns.isResting || this.pending.size > 0) await this.#turns.rest();
      await Promise.all([...this.actors.values()].map((actor) => actor.idle()));
      await this.#host.yield();
    }
  }

  /** Takes nothing more, answers what is still pending with 503, and ends the actors. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#router.stop();
    for (const entry of [...this.pending]) {
      this.resolve(entry.id, error(this.#host, entry, errorData(503, "the kernel has shut down")));
    }
    this.streams.close();
    // One that does not end cleanly must not keep the others alive.
    await Promise.allSettled([...this.actors.values()].map((actor) => actor.stop()));
  }

  /** The names of actors that were told to end and have not. */
  get stopping(): readonly string[] {
    return [...this.actors.values()].filter(({ state }) => state === "stopping").map(({ name }) => name);
  }
}

function outcomeText({ kind, data }: Message | Message<ErrorData>): string {
  if (kind === "reply") return "replied";
  const { code, message } = data as ErrorData;
  return `${code}: ${message}`;
}
