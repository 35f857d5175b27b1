/**
 * Commands that are durable before their handler is called: all commands of a capability, or with `durable: "unawaited"` those that no
 * requester waits for. SPEC: L39, L41-L43, L80, L82-L84.
 *
 * ```
 *   keep ──durable──> kept ──delivered by the journal──> with its actor ──answered──> over: the journal hears, and whoever waits
 *     └──not taken──> refused └──its actor takes no more──> kept: the journal delivers it again later
 *   kept ──settled by another process──> over: whoever waits hears what the journal knows
 *   delivered, of an earlier process ──┬──> with its actor ──> ...
 *                                      └──may not be handled again──> over, as interrupted
 * ```
 * From `keep` on the request is pending, so that nothing else can be asked under its id; whoever asks the same again joins it. Nothing is
 * dispatched from here but what the journal delivers. Deliberately not here: claims, leases, retries (the bus).
 */

import type { Host } from "../host/host.ts";
import { COMMANDS_KEPT_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { equal } from "../message/equality.ts";
import { type ErrorData, errorData, Failure, failureOf, thrownText } from "../message/error-data.ts";
import { error, reply } from "../message/lineage.ts";
import { refusalOf } from "./admission.ts";
import type { Capability } from "./capability.ts";
import type { CommandJournal, KeptBefore } from "./command-journal.ts";
import type { EventDeliveries } from "./event-deliveries.ts";
import type { EventLoop } from "./event-loop.ts";
import { NOBODY, type Origin, type Sent } from "./inbound.ts";
import { KeptElsewhere } from "./kept-elsewhere.ts";
import type { Kept, PendingRequest } from "./pending-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

interface KeptCommandsParts {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly journal: CommandJournal;
  readonly deliveries: EventDeliveries;
  /** Gives a command that is pending to its actor, or answers why not. */
  readonly post: (inbound: Sent, entry: PendingRequest) => void;
}

/** One command on its way from the journal to its outcome. */
class KeptCommand implements Kept {
  readonly message: Message;
  readonly sentBy: Origin;
  state: "kept" | "posted" = "kept";
  readonly #end = Promise.withResolvers<void>();

  constructor(message: Message, sentBy: Origin) {
    this.message = message;
    this.sentBy = sentBy;
    // Where the loop ends before it was delivered, nobody looks.
    this.#end.promise.catch(() => undefined);
  }

  /** Settles when it is over, for the journal. */
  get end(): Promise<void> {
    return this.#end.promise;
  }

  /** Whether that is asked for too, whoever asks and whenever. */
  isFor({ type, data }: Message): boolean {
    return type === this.message.type && equal(data, this.message.data);
  }

  ended(answer: Message | Message<ErrorData>, requester: Origin): void {
    if (answer.kind === "reply") return this.#end.resolve();
    const failure = failureOf(answer.data as ErrorData);
    // A requester was told, and may ask again: the command must not be handled a second time without it.
    this.#end.reject(requester.kind === "nobody" ? failure : new Error(failure.message, { cause: failure.cause }));
  }
}

export class KeptCommands {
  readonly #parts: KeptCommandsParts;
  readonly #elsewhere: KeptElsewhere;
  /** The ids of those that go into the journal now. */
  readonly #onTheirWay = new Set<string>();

  constructor(parts: KeptCommandsParts) {
    this.#parts = parts;
    const { host, loop, journal } = parts;
    this.#elsewhere = new KeptElsewhere({ host, journal, found: (entry, now) => this.#found(entry, now) });
    for (const { kind, type, capability } of loop.table.routes()) {
      if (kind === "command") journal.take(type, capability, (message, deaths) => this.#deliver(message, deaths));
    }
  }

  /** Whether a request must be durable before its handler is called. */
  mustKeep({ message, origin }: Sent, { durable }: Capability): boolean {
    if (message.kind !== "command" || durable === false) return false;
    return durable !== "unawaited" || !isAwaited(message, origin);
  }

  keep({ message, origin }: Sent, actor: SupervisedActor): PendingRequest | undefined {
    const { loop, journal } = this.#parts;
    const isWaitedFor = isAwaited(message, origin);
    const refusal = this.#refusal(actor, isWaitedFor);
    if (refusal !== undefined) {
      // Who waits hears of it himself.
      const failure = isWaitedFor ? undefined : `${message.type} was not journaled: ${refusal}`;
      this.#parts.deliveries.kept(message.metadata.id, failure);
      loop.refuse({ message, origin }, 503, refusal);
      return undefined;
    }
    const requester = origin.kind === "relay" || isWaitedFor ? origin : NOBODY;
    const entry = loop.pending.insert(message, requester, actor, new KeptCommand(message, origin));
    this.#onTheirWay.add(entry.id);
    journal.keep(message, actor.name).then(
      (before) => {
        this.#arrived(entry);
        this.#isKept(entry, before);
      },
      (thrown: unknown) => {
        this.#arrived(entry, isWaitedFor ? undefined : `${message.type} was not journaled: ${thrownText(thrown)}`);
        this.#isNotKept(entry, thrown);
      },
    );
    return entry;
  }

  #arrived({ id }: PendingRequest, failure?: string): void {
    this.#onTheirWay.delete(id);
    this.#parts.deliveries.kept(id, failure);
  }

  /** Whether the journal has yet to say that it has a command. */
  isOnItsWay(id: string): boolean {
    return this.#onTheirWay.has(id);
  }

  /** Who waits can ask again later, if his command left nothing behind; of what nobody waits for, the journal sees to that. */
  #refusal(actor: SupervisedActor, isWaitedFor: boolean): string | undefined {
    if (this.#parts.loop.pending.kept >= COMMANDS_KEPT_MAX)
      return `${COMMANDS_KEPT_MAX} commands of the journal are under way`;
    return isWaitedFor ? actor.refusal : undefined;
  }

  stop(): void {
    this.#elsewhere.stop();
  }

  /** Whether a request is what is being done already, for nobody who waits: then it gets the answer. */
  joins({ message, origin }: Sent, entry: PendingRequest): boolean {
    const { kept } = entry;
    if (!(kept instanceof KeptCommand) || entry.origin.kind !== "nobody" || !isAwaited(message, origin)) return false;
    if (!kept.isFor(message)) return false;
    this.#parts.loop.pending.join(entry, origin);
    return true;
  }

  // Into the journal -----------------------------------------------------------------------------------------------------------

  #isKept(entry: PendingRequest, before: KeptBefore = { status: "pending" }): void {
    this.#releaseRelay(entry);
    this.#found(entry, before);
  }

  /** What the journal has of a command that was not delivered here. */
  #found(entry: PendingRequest, before: KeptBefore): void {
    const { host, loop } = this.#parts;
    if (!this.#isWaiting(entry)) return;
    if (before.status === "pending" || before.status === "processing") return this.#elsewhere.watch(entry);
    if (entry.actor.capability.idempotent && entry.origin.kind !== "nobody") return this.#post(entry);
    const reason = `${entry.id} was handled, and its answer is not kept; choose another id to have it handled again`;
    const told = before.status === "done" ? errorData(410, reason) : errorData(500, before.error);
    loop.resolve(entry.id, error(host, entry, told));
  }

  #isNotKept(entry: PendingRequest, thrown: unknown): void {
    const { host, loop } = this.#parts;
    const failure = thrown instanceof Failure ? thrown : new Failure(503, thrownText(thrown));
    const code = failure.code === 422 ? 422 : 503;
    const reason = `not journaled: ${failure.message}`;
    this.#tellRelay(entry, (message) => error(host, message, errorData(code, reason)));
    if (!this.#isWaiting(entry)) return;
    // It is in the journal in other words, and a receipt tells whether it is the same.
    if (code === 422 && entry.actor.capability.idempotent && entry.origin.kind !== "nobody") return this.#post(entry);
    const { message } = entry.kept as KeptCommand;
    loop.pending.take(entry.id);
    loop.refuse({ message, origin: entry.origin }, code, reason);
  }

  #releaseRelay(entry: PendingRequest): void {
    this.#tellRelay(entry, (message) => reply(this.#parts.host, message, null));
  }

  /** Whoever relays a command keeps it until it is kept here. */
  #tellRelay(entry: PendingRequest, answer: (message: Message) => Message | Message<ErrorData>): void {
    const { origin, kept } = entry;
    if (origin.kind !== "relay" || !(kept instanceof KeptCommand)) return;
    this.#parts.loop.pending.release(entry);
    origin.actor.answer(answer(kept.message));
  }

  #isWaiting({ id, kept }: PendingRequest): boolean {
    const entry = this.#parts.loop.pending.get(id);
    return entry !== undefined && entry.kept === kept && kept instanceof KeptCommand && kept.state === "kept";
  }

  // Out of it ------------------------------------------------------------------------------------------------------------------

  async #deliver(message: Message, deaths: number): Promise<void> {
    const pending = this.#parts.loop.pending.get(message.metadata.id);
    const kept = pending?.kept instanceof KeptCommand && pending.kept.isFor(message) ? pending.kept : undefined;
    // Delivered again while it is being handled: the process had lost its lease for a moment.
    if (kept?.state === "posted") return kept.end;
    const actor = this.#actorOf(message);
    // First of all: any answer that postpones the delivery also resets the journal's count of deaths.
    if (deaths > 0 && !actor.capability.idempotent) return this.#interrupt(message, actor, kept && pending);
    if (pending !== undefined && kept === undefined)
      throw new Failure(503, `request id ${pending.id} is in use for another request`);
    const entry = pending ?? this.#taken(message, actor);
    // The delivery may come before `keep` resolves. The relay does not wait for the outcome.
    this.#releaseRelay(entry);
    const { refusal } = actor;
    if (refusal !== undefined) throw this.#notNow(entry, message, refusal);
    this.#post(entry, message);
    return (entry.kept as KeptCommand).end;
  }

  /** Fails a command that may have been done in part, and answers its requester if there is one. */
  #interrupt(message: Message, actor: SupervisedActor, entry: PendingRequest | undefined): Promise<void> {
    const { host, loop } = this.#parts;
    const { name: capability } = actor;
    loop.observations.tell("Sys.ActorFault", { capability, reason: INTERRUPTED, type: message.type }, message);
    if (entry === undefined) throw new Failure(500, INTERRUPTED);
    const kept = entry.kept as KeptCommand;
    this.#releaseRelay(entry);
    kept.state = "posted";
    loop.resolve(entry.id, error(host, entry, errorData(500, INTERRUPTED)));
    return kept.end;
  }

  /** Its actor takes no more for the moment. Whoever waits goes on waiting: it was accepted, and the journal delivers it again, here or elsewhere. */
  #notNow(entry: PendingRequest, message: Message, reason: string): Failure {
    const { loop } = this.#parts;
    const { kind, type } = message;
    loop.observations.tell("Sys.Overload", { kind, type, code: 503, reason }, message);
    if (entry.origin.kind === "nobody") loop.pending.take(entry.id);
    else this.#elsewhere.watch(entry);
    return new Failure(503, reason);
  }

  #actorOf({ kind, type }: Message): SupervisedActor {
    const { table, actors } = this.#parts.loop;
    const route = table.route(kind, type);
    const actor = route && actors.get(route.capability);
    if (!actor) throw new Failure(404, `nobody handles ${kind} ${type}`);
    return actor;
  }

  /** A command that an earlier process has journaled; throws if its capability does not accept it any more. */
  #taken(message: Message, actor: SupervisedActor): PendingRequest {
    const { loop } = this.#parts;
    const inbound = { message: loop.copy(message), origin: NOBODY };
    const refusal = refusalOf(inbound, actor);
    if (refusal) throw new Failure(refusal.code, refusal.reason);
    return loop.pending.insert(inbound.message, NOBODY, actor, new KeptCommand(inbound.message, NOBODY));
  }

  /** What the journal delivers is handled as it is there: the same may have been asked here at another time. */
  #post(entry: PendingRequest, message = (entry.kept as KeptCommand).message): void {
    const { loop, post } = this.#parts;
    (entry.kept as KeptCommand).state = "posted";
    // A copy: what is compared with later requests is what was kept.
    post({ message: loop.copy(message), origin: entry.origin }, entry);
  }
}

const INTERRUPTED =
  "interrupted: the process died while it was under way, and it may have been done in part; its capability is neither transactional nor idempotent";

/** Whether somebody gets the answer. An actor that only sends does not, nor does whoever set a timer. */
function isAwaited({ metadata }: Message, origin: Origin): boolean {
  switch (origin.kind) {
    case "adapter":
    case "caller":
      return true;
    case "actor":
      return origin.actor.awaits(metadata.id);
    case "relay":
    case "nobody":
      return false;
  }
}
