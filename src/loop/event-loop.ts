/**
 * The CQRS event loop (RFC 0032): composes its components and is their public interface. It only routes: no handler
 * runs here, no turn waits.
 *
 * ```
 *   adapters ─┐              ┌─> command, query ──> pending table ──> the one actor
 *   actors ───┼─> lanes ─> turn ─> event ──> journal ──> every subscriber's actor
 *   timers ───┘              └─> reply, error ──> the requester (by causation, from the asked actor only)
 * ```
 * SPEC: L. Not here: taking messages from lanes (`Turns`), routing (`Router`, `EventFanout`), delivery of answers
 * (`Answers`), durability (the journals), transports (adapters).
 */

import type { HandlingRing } from "../bus/handling-ring.ts";
import type { Host, Timer } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { HOLD_LOOK_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { errorData, thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { error, type Lineage } from "../message/lineage.ts";
import { Answers } from "./answers.ts";
import { Callers } from "./callers.ts";
import type { Capability } from "./capability.ts";
import { CircleWatch } from "./circle-watch.ts";
import type { CommandJournal } from "./command-journal.ts";
import { receivedMessage } from "./emission.ts";
import { EventFanout } from "./event-fanout.ts";
import type { EventJournal } from "./event-journal.ts";
import { EventStreams } from "./event-streams.ts";
import { inbound, type LaneName, laneOf } from "./inbound.ts";
import { KeptCommands } from "./kept-commands.ts";
import { Lanes } from "./lanes.ts";
import { LiveQueries } from "./live-queries.ts";
import type { AdapterLife, Liveness } from "./liveness.ts";
import { type LoopLimits, loopLimits, requireTime } from "./loop-limits.ts";
import { Observations, type Observer } from "./observation.ts";
import { ObservationSubscribers } from "./observation-subscribers.ts";
import { OwnRequests } from "./own-requests.ts";
import { type Connection, NOBODY, type Origin } from "./pending-request.ts";
import { PendingTable } from "./pending-table.ts";
import { RequestDispatch } from "./request-dispatch.ts";
import { Router } from "./router.ts";
import { BootError, RoutingTable } from "./routing-table.ts";
import type { WatchQuery } from "./shared-query.ts";
import { SupervisedActor } from "./supervised-actor.ts";
import { Turns } from "./turns.ts";

/** The actors of a loop, its journals and its limits. */
export interface EventLoopOptions extends Partial<LoopLimits> {
  /** Time and randomness; those of the process by default. */
  readonly host?: Host;
  /** Keeps the process running while the loop is alive (§16). By default if no `host` is given. */
  readonly holdProcess?: boolean;
  readonly capabilities: Readonly<Record<string, Capability>>;
  /** Journals events before they are delivered. Without one they are delivered at once and not kept. */
  readonly events?: EventJournal;
  /** Journals commands before their handler is called. Without it, commands are dispatched at once. */
  readonly commands?: CommandJournal;
  /** After this long a request of a client or an actor is answered with 504; never unless given. */
  readonly requestTimeoutMs?: number;
  readonly observe?: Observer;
  /** Remembers the last handlings of requests. */
  readonly handlings?: HandlingRing;
  /** Runs the live queries of clients. Without it, `Sys.Watch` answers 404. */
  readonly watchQuery?: WatchQuery;
  /** Observes faults only, so that ordinary work costs no time. */
  readonly observeFaults?: Observer;
}

/** Routes messages between clients and actors, one message a turn. */
export class EventLoop {
  readonly table: RoutingTable;
  readonly observations: Observations;
  readonly pending = new PendingTable();
  readonly actors = new Map<string, SupervisedActor>();
  readonly streams: EventStreams;
  readonly live: LiveQueries;
  readonly #adapters = new Set<AdapterLife>();
  readonly #host: Host;
  readonly #limits: LoopLimits;
  readonly #lanes: Lanes;
  readonly #answers: Answers;
  readonly #events: EventFanout;
  readonly #circles: CircleWatch;
  readonly #kept: KeptCommands | undefined;
  readonly #router: Router;
  readonly #turns: Turns;
  readonly #callers: Callers;
  readonly #hold: ProcessHold | undefined;

  /** Validates, indexes, then spawns and listens to every actor. If any step fails, no actor is left running. */
  static async boot(options: EventLoopOptions): Promise<EventLoop> {
    const capabilities = new Map(Object.entries(options.capabilities));
    const table = RoutingTable.build(capabilities);
    const host = options.host ?? systemHost();
    const observationSubscribers = new ObservationSubscribers({ host, table });
    const loop = new EventLoop(
      { ...options, host, holdProcess: options.holdProcess ?? options.host === undefined },
      table,
      observationSubscribers,
    );
    try {
      loop.#spawn(capabilities);
      loop.#events.subscribe();
      loop.#kept?.subscribe();
      observationSubscribers.subscribe(loop.observations, loop.actors);
    } catch (thrown) {
      await loop.stop();
      throw thrown;
    }
    return loop;
  }

  private constructor(
    options: EventLoopOptions & { readonly host: Host },
    table: RoutingTable,
    observationSubscribers: ObservationSubscribers,
  ) {
    const { host, events: journal, commands, requestTimeoutMs, handlings } = options;
    const { pending, actors } = this;
    this.#host = host;
    this.#limits = loopLimits(options);
    if (requestTimeoutMs !== undefined) requireTime("requestTimeoutMs", requestTimeoutMs);
    this.table = table;
    const observations = new Observations(host);
    this.observations = observations;
    if (options.observe) observations.add(options.observe);
    if (options.observeFaults) observations.addForFaults(options.observeFaults);
    const streams = new EventStreams({ host, journal });
    this.streams = streams;
    const live = new LiveQueries({
      ...{ host, watchQuery: options.watchQuery },
      hasQuery: (type) => table.route("query", type) !== undefined,
    });
    this.live = live;
    const lanes = new Lanes({ pending, laneMax: this.#limits.laneMax });
    this.#lanes = lanes;
    const answers = new Answers({ host, lanes, pending, observations, handlings });
    this.#answers = answers;
    const limited = { commands, requestTimeoutMs, handlings };
    const dispatch = new RequestDispatch({ host, lanes, pending, observations, answers, ...limited });
    const ownRequests = new OwnRequests({ host, lanes, pending, answers, dispatch, streams, live });
    const circles = new CircleWatch({ host, pending, observations, dispatch });
    this.#circles = circles;
    const events = new EventFanout({ host, table, actors, observations, answers, journal });
    this.#events = events;
    const kept =
      commands &&
      new KeptCommands({ host, table, actors, pending, observations, answers, dispatch, journal: commands });
    this.#kept = kept;
    this.#router = new Router({
      ...{ host, lanes, pending, table, actors, observations, observationSubscribers },
      ...{ answers, dispatch, ownRequests, events, circles, kept },
    });
    this.#turns = new Turns({ host, lanes, observations, router: this.#router, limits: this.#limits });
    this.#callers = new Callers({ host, lanes, answers });
    if (options.holdProcess !== true) return;
    const hold = new ProcessHold(host, () => this.liveness.alive);
    this.#hold = hold;
    lanes.onRest = () => hold.check();
  }

  #spawn(capabilities: ReadonlyMap<string, Capability>): void {
    const shared = { host: this.#host, home: this.#router, mailboxMax: this.#limits.mailboxMax };
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

  // Messages in -----------------------------------------------------------------------------------------------------

  /**
   * A message from outside: user lane, whatever its type (§8.2). It may be any value: it is checked and copied, and a
   * client that sent no valid message gets an error (`Connection.stream`). An adapter calls this in a task of its own,
   * such as a socket's event: turns begin when that is over.
   */
  receive(given: unknown, connection: Connection): void {
    const message = receivedMessage(given);
    if ("metadata" in message) this.receiveChecked(message, connection);
    else this.#answers.invalid(message, connection);
  }

  /** The same for a message that the adapter has parsed and checked itself, and of which it keeps no reference. */
  receiveChecked(message: Message, connection: Connection): void {
    const received = inbound(message, { kind: "adapter", connection });
    const refusal = this.#lanes.putFromAdapter(received);
    if (refusal !== undefined) this.#answers.refuse(received, 503, refusal);
  }

  /** A connection was closed: its requests wait for no answer any more (§14.7). */
  disconnect(connection: Connection): void {
    this.pending.disconnect(connection);
    this.streams.disconnect(connection);
    this.live.disconnect(connection);
    this.#lanes.disconnect(connection);
    this.#lanes.checkRest();
  }

  /** An adapter is about to close a connection: its open requests are answered with 503. */
  abandon(connection: Connection, reason: string): void {
    this.#answers.abandon(connection, reason);
  }

  /** An open adapter keeps the loop alive (§16). Call the returned function when it has closed. */
  attach(adapter: AdapterLife): () => void {
    this.#adapters.add(adapter);
    this.#hold?.check();
    return () => {
      this.#adapters.delete(adapter);
      this.#hold?.check();
    };
  }

  /** Puts a message into a lane. False if it was refused; its origin was told so. */
  enqueue(message: Message, origin: Origin = NOBODY, lane: LaneName = laneOf(message.type)): boolean {
    const given = inbound(message, origin);
    const refusal = this.#lanes.put(given, lane);
    if (refusal !== undefined) this.#answers.refuse(given, 503, refusal);
    return refusal === undefined;
  }

  /**
   * Bookkeeping at the end of the present turn, or of the next. At most 1,000 run in one turn; the rest is carried on.
   */
  microtask(task: () => void): void {
    this.#lanes.microtask(task);
  }

  /**
   * Runs a task once, when the present slice of turns is over, or after the present callback when none is on its way.
   */
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

  /** Starts an actor that was given up after too many crashes. */
  heal(capability: string): void {
    this.actors.get(capability)?.heal();
  }

  // Life ------------------------------------------------------------------------------------------------------------

  get liveness(): Liveness {
    let mailboxes = 0;
    let timers = 0;
    for (const actor of this.actors.values()) {
      mailboxes += actor.mailboxLength;
      timers += actor.scheduled;
    }
    let frames = 0;
    for (const adapter of this.#adapters) frames += adapter.frames;
    const [systemLane, userLane, turns] = [this.#lanes.length("system"), this.#lanes.length("user"), this.#turns.count];
    const pendingRequests = this.pending.size;
    const adapters = this.#adapters.size;
    const quiescent = this.#lanes.isResting && pendingRequests === 0 && mailboxes === 0;
    return {
      alive: !quiescent || adapters > 0 || timers > 0 || frames > 0,
      ...{ quiescent, systemLane, userLane, pendingRequests, mailboxes, timers, adapters, frames, turns },
    };
  }

  /** Resolves when lanes and mailboxes are empty and no request is pending. */
  async drained(): Promise<void> {
    while (!this.liveness.quiescent) {
      if (!this.#lanes.isResting || this.pending.size > 0) await this.#lanes.rest();
      await Promise.all([...this.actors.values()].map((actor) => actor.idle()));
      await this.#host.yield();
    }
  }

  /** Adapters take no more requests; earlier ones are still answered. */
  quiet(): void {
    for (const adapter of this.#adapters) adapter.quiet?.();
  }

  /** Takes no more messages, answers pending requests with 503, and ends the actors. */
  async stop(): Promise<void> {
    this.#lanes.close();
    this.#circles.stop();
    this.#kept?.stop();
    for (const entry of [...this.pending]) {
      this.#answers.resolve(
        entry.id,
        error(this.#host, entry, errorData(503, "the kernel has shut down", { reason: "DRAINING" })),
      );
    }
    this.streams.close();
    this.live.close();
    // An adapter or actor that fails to end must not keep the others alive.
    const adapters = [...this.#adapters].map(async (adapter) => adapter.close?.());
    await Promise.allSettled([...adapters, ...[...this.actors.values()].map((actor) => actor.stop())]);
    this.#hold?.end();
  }

  /** The names of actors that were told to end and have not. */
  get stopping(): readonly string[] {
    return [...this.actors.values()].filter(({ state }) => state === "stopping").map(({ name }) => name);
  }
}

/**
 * Keeps the process running while the loop is alive (RFC 0032 §16): a request that waits for a promise, or an adapter
 * that holds no handle of the runtime, would let it end. Checked when the lanes come to rest, when adapters come and
 * go, and once a second. SPEC: L95.
 */
class ProcessHold {
  readonly #host: Host;
  readonly #isAlive: () => boolean;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(host: Host, isAlive: () => boolean) {
    this.#host = host;
    this.#isAlive = isAlive;
  }

  check(): void {
    if (!this.#isOver && this.#isAlive()) this.#timer ??= this.#host.timer(HOLD_LOOK_MS, this.#look);
    else this.#release();
  }

  end(): void {
    this.#isOver = true;
    this.#release();
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    this.check();
  };

  #release(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
