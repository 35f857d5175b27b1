/**
 * Commands that are durable before their handler is called: all commands of a capability, or with `durable:
 * "unawaited"` those without a waiting requester. SPEC: L39, L41-L43, L80, L82-L84.
 *
 * ```
 *   keep ──durable──> kept ──delivered by the journal──> with its actor ──answered──> over: both are told
 *     └──not taken──> refused └──its actor takes no more──> kept: the journal delivers it again later
 *   kept ──settled by another process──> over: the requester gets the journal's status
 *   delivered, of an earlier process ──┬──> with its actor ──> ...
 *                                      └──may not be handled again──> over, as interrupted
 * ```
 * From `keep` on the request is pending, so that no other request can use its id; a repeated request joins it. Only
 * commands that the journal delivers are dispatched here. Not here: claims, leases, retries (the bus).
 */

import { Concluded, isPassing, RetryLater, Settled } from "../bus/concluded.ts";
import type { Host } from "../host/host.ts";
import { COMMANDS_KEPT_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { equal } from "../message/equality.ts";
import { type ErrorData, errorData, Failure, failureFrom, thrownText } from "../message/error-data.ts";
import { error, reply } from "../message/lineage.ts";
import type { Settlement } from "../store/journal.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { requestRefusal } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { Capability } from "./capability.ts";
import type { CommandDelivery, CommandJournal, KeptBefore, WithdrawResult } from "./command-journal.ts";
import { copyMessage } from "./emission.ts";
import { isRefusalCode, type SentMessage } from "./inbound.ts";
import { KeptElsewhere } from "./kept-elsewhere.ts";
import type { Observations } from "./observation.ts";
import type { Kept, PendingRequest } from "./pending-request.ts";
import { isAwaited, NOBODY, type Origin } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";
import type { RequestDispatch, SentRequest } from "./request-dispatch.ts";
import type { RoutingTable } from "./routing-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

interface KeptCommandsParts {
  readonly host: Host;
  readonly table: RoutingTable;
  readonly actors: ReadonlyMap<string, SupervisedActor>;
  readonly pending: PendingTable;
  readonly observations: Observations;
  readonly answers: Answers;
  readonly dispatch: RequestDispatch;
  readonly journal: CommandJournal;
}

/** One command on its way from the journal to its outcome. */
class KeptCommand implements Kept {
  readonly message: Message;
  readonly sentBy: Origin;
  state: "kept" | "posted" = "kept";
  /** Resolves when the journal has answered `keep`; at once for a command of an earlier process. */
  arrived: Promise<unknown> = Promise.resolve();
  /** The present delivery of the journal. */
  delivery: CommandDelivery | undefined;
  /** Whether a commit of its handler has failed it in the journal. */
  isSettled = false;
  readonly #postponed: (entry: PendingRequest) => void;
  #end = deliveryEnd();

  constructor(message: Message, sentBy: Origin, postponed: (entry: PendingRequest) => void) {
    this.message = message;
    this.sentBy = sentBy;
    this.#postponed = postponed;
  }

  get attempt(): number {
    return this.delivery?.attempt ?? 1;
  }

  failing(error: string): Settlement | undefined {
    return this.delivery?.failing(error);
  }

  retryLater(entry: PendingRequest, reason: string, delayMs: number): void {
    this.state = "kept";
    this.#end.reject(new RetryLater(reason, delayMs));
    this.#end = deliveryEnd();
    this.#postponed(entry);
  }

  /** Settles when it is over, or its delivery is; for the journal. */
  get end(): Promise<void> {
    return this.#end.promise;
  }

  /** Whether a request is the same command, from any sender at any time. */
  isFor({ type, data }: Message): boolean {
    return type === this.message.type && equal(data, this.message.data);
  }

  /** Ends it as done without a call of its handler. */
  cancel(): void {
    this.#end.reject(new Concluded(CANCELLED));
  }

  ended(answer: Message | Message<ErrorData>, requester: Origin): void {
    if (answer.kind === "reply") return this.#end.resolve();
    if (this.isSettled) return this.#end.reject(new Settled());
    const data = answer.data as ErrorData;
    const failure = failureFrom(data);
    // A requester was told, and may ask again: the command must not be handled a second time without it.
    if (requester.kind === "nobody") this.#end.reject(failure);
    else if (isRefusalCode(data.code)) this.#end.reject(new Concluded({ outcome: "refused", reason: data.message }));
    else this.#end.reject(new Error(failure.message, { cause: failure.cause }));
  }
}

/** If the loop ends before the command was delivered, no code waits for its end. */
function deliveryEnd(): PromiseWithResolvers<void> {
  const end = Promise.withResolvers<void>();
  end.promise.catch(() => undefined);
  return end;
}

export class KeptCommands {
  readonly #parts: KeptCommandsParts;
  readonly #elsewhere: KeptElsewhere;

  constructor(parts: KeptCommandsParts) {
    this.#parts = parts;
    const { host, journal } = parts;
    this.#elsewhere = new KeptElsewhere({ host, journal, found: (entry, now) => this.#found(entry, now) });
  }

  /** Subscribes the actors to the journal, which delivers from now on. */
  subscribe(): void {
    const { table, journal } = this.#parts;
    for (const { kind, type, capability } of table.routes()) {
      if (kind !== "command") continue;
      journal.take(type, capability, (message, delivery) => this.#deliver(message, delivery), this.#died);
    }
  }

  /** Whether a request must be durable before its handler is called. */
  mustKeep({ message, origin }: SentMessage, { durable }: Capability): boolean {
    if (message.kind !== "command" || durable === false) return false;
    return durable !== "unawaited" || !isAwaited(message, origin);
  }

  /** Journals a command; its entry unless it is refused. */
  keep({ message, origin, sending }: SentRequest, actor: SupervisedActor): PendingRequest | undefined {
    const { pending, answers, journal } = this.#parts;
    const isWaitedFor = isAwaited(message, origin);
    // A waiting requester hears of a failure itself; otherwise the event whose handler sent the command fails.
    const lost = (reason: string) => (isWaitedFor ? undefined : `${message.type} was not journaled: ${reason}`);
    const refusal = this.#refusal(actor, isWaitedFor);
    if (refusal !== undefined) {
      sending?.done(lost(refusal), true);
      answers.refuse({ message, origin }, 503, refusal);
      return undefined;
    }
    const requester = origin.kind === "relay" || isWaitedFor ? origin : NOBODY;
    const command = new KeptCommand(message, origin, this.#postponed);
    const entry = pending.insert(message, requester, actor, command);
    command.arrived = journal.keep(message, actor.name).then(
      (before) => {
        sending?.done();
        this.#isKept(entry, before);
      },
      (thrown: unknown) => {
        sending?.done(lost(thrownText(thrown)), isPassing(thrown));
        this.#isNotKept(entry, thrown);
      },
    );
    return entry;
  }

  /** A waiting requester may repeat a command that left no row. Other commands are retried from the journal. */
  #refusal(actor: SupervisedActor, isWaitedFor: boolean): string | undefined {
    if (this.#parts.pending.kept >= COMMANDS_KEPT_MAX)
      return `${COMMANDS_KEPT_MAX} commands of the journal are under way`;
    return isWaitedFor ? actor.refusal : undefined;
  }

  stop(): void {
    this.#elsewhere.stop();
  }

  /**
   * Joins a request to the same running command, if that has no waiting requester; then the joined one gets the answer.
   */
  joins({ message, origin }: SentMessage, entry: PendingRequest): boolean {
    const { kept } = entry;
    if (!(kept instanceof KeptCommand) || entry.origin.kind !== "nobody" || !isAwaited(message, origin)) return false;
    if (!kept.isFor(message)) return false;
    this.#parts.pending.join(entry, origin);
    return true;
  }

  /** The ids of unsettled commands of a type that one request has caused, in the journal. */
  async causedBy(request: string, type: string): Promise<readonly string[]> {
    return (await this.#parts.journal.unsettledOf?.(request, type)) ?? [];
  }

  /**
   * Withdraws a message that its handler has not begun: from the mailbox, or from the journal before it is claimed.
   * SPEC: T12.
   */
  async withdraw(id: string): Promise<WithdrawResult> {
    const { pending, journal } = this.#parts;
    const entry = pending.get(id);
    const kept = entry?.kept;
    if (entry === undefined || !(kept instanceof KeptCommand)) return (await journal.withdraw?.(id)) ?? "gone";
    if (kept.state === "kept") await kept.arrived;
    if (kept.state === "posted") {
      if (pending.get(id) !== entry || !entry.actor.withdraw(id)) return "underway";
      pending.take(id);
      kept.cancel();
      await journal.settled?.(id);
      return "withdrawn";
    }
    const result = (await journal.withdraw?.(id)) ?? "underway";
    if (result === "withdrawn" && pending.get(id) === entry) pending.take(id);
    return result;
  }

  // Into the journal
  // ----------------------------------------------------------------------------------------------------

  #isKept(entry: PendingRequest, before: KeptBefore = { status: "pending" }): void {
    this.#releaseRelay(entry);
    this.#found(entry, before);
  }

  /** Handles the journal's status of a command that was not delivered here. */
  #found(entry: PendingRequest, before: KeptBefore): void {
    const { host, answers } = this.#parts;
    if (!this.#isWaiting(entry)) return;
    if (before.status === "pending" || before.status === "processing") return this.#elsewhere.watch(entry);
    if (entry.actor.capability.idempotent && entry.origin.kind !== "nobody") return this.#post(entry);
    const reason = `${entry.id} was handled, and its answer is not kept; choose another id to have it handled again`;
    const told = before.status === "done" ? errorData(410, reason) : errorData(500, before.error);
    answers.resolve(entry.id, error(host, entry, told));
  }

  #isNotKept(entry: PendingRequest, thrown: unknown): void {
    const { host, answers, pending } = this.#parts;
    const failure = thrown instanceof Failure ? thrown : new Failure(503, thrownText(thrown));
    const code = failure.code === 422 ? 422 : 503;
    const reason = `not journaled: ${failure.message}`;
    this.#tellRelay(entry, (message) => error(host, message, errorData(code, reason)));
    if (!this.#isWaiting(entry)) return;
    // The journal has it with other data, and a receipt tells whether it is the same request.
    if (code === 422 && entry.actor.capability.idempotent && entry.origin.kind !== "nobody") return this.#post(entry);
    const { message } = entry.kept as KeptCommand;
    pending.take(entry.id);
    answers.refuse({ message, origin: entry.origin }, code, reason);
  }

  #releaseRelay(entry: PendingRequest): void {
    this.#tellRelay(entry, (message) => reply(this.#parts.host, message, null));
  }

  /** The relay of a command keeps it until it is journaled here. */
  #tellRelay(entry: PendingRequest, answer: (message: Message) => Message | Message<ErrorData>): void {
    const { origin, kept } = entry;
    if (origin.kind !== "relay" || !(kept instanceof KeptCommand)) return;
    this.#parts.pending.release(entry);
    origin.actor.answer(answer(kept.message));
  }

  #isWaiting({ id, kept }: PendingRequest): boolean {
    const entry = this.#parts.pending.get(id);
    return entry !== undefined && entry.kept === kept && kept instanceof KeptCommand && kept.state === "kept";
  }

  // From the journal
  // ----------------------------------------------------------------------------------------------------

  async #deliver(message: Message, delivery: CommandDelivery): Promise<void> {
    const { deaths } = delivery;
    const pending = this.#parts.pending.get(message.metadata.id);
    const kept = pending?.kept instanceof KeptCommand && pending.kept.isFor(message) ? pending.kept : undefined;
    // Delivered again while it is being handled: the process had lost its lease for a moment.
    if (kept?.state === "posted") return kept.end;
    const actor = this.#actorOf(message);
    // First of all: any answer that postpones the delivery also resets the journal's count of deaths.
    if (deaths > 0 && !actor.capability.idempotent) return this.#interrupt(message, actor, kept && pending, delivery);
    if (pending !== undefined && kept === undefined)
      throw new Failure(503, `request id ${pending.id} is in use for another request`);
    const entry = pending ?? this.#taken(message, actor);
    // The delivery may come before `keep` resolves. The relay does not wait for the outcome.
    this.#releaseRelay(entry);
    const { refusal } = actor;
    if (refusal !== undefined) throw this.#notNow(entry, message, refusal);
    const command = entry.kept as KeptCommand;
    command.delivery = delivery;
    // Read first: a handler that fails at once may start the next delivery.
    const { end } = command;
    this.#post(entry, message);
    return end;
  }

  /** Processes died with the command, and it is not handled again. */
  readonly #died = async (message: Message, failure: HandlerFailure, delivery: CommandDelivery): Promise<void> => {
    const { problem, isSettled } = await this.#failed(message, failure, delivery);
    if (isSettled) throw new Settled();
    if (problem !== undefined) throw new Error(problem);
  };

  /** Lets the actor handle a failure before the journal has it. */
  async #failed(message: Message, failure: HandlerFailure, delivery: CommandDelivery) {
    const failing = { failing: (error: string) => delivery.failing(error), isSettled: false };
    const problem = await this.#actorOf(message).failed(message, failure, failing);
    return { problem, isSettled: failing.isSettled };
  }

  /** The requester waits on; the journal delivers the command again. */
  readonly #postponed = (entry: PendingRequest): void => {
    if (entry.origin.kind === "nobody") this.#parts.pending.take(entry.id);
    else this.#elsewhere.watch(entry);
  };

  /** Fails a command that may have been done in part, and answers its requester if there is one. */
  async #interrupt(
    message: Message,
    actor: SupervisedActor,
    entry: PendingRequest | undefined,
    delivery: CommandDelivery,
  ): Promise<void> {
    const { host, answers, observations } = this.#parts;
    const { name: capability } = actor;
    observations.tell("Sys.ActorFault", { capability, reason: INTERRUPTED, type: message.type }, message);
    const failure: HandlerFailure = { kind: "died", message: INTERRUPTED, attempts: delivery.attempt - 1 };
    const { problem, isSettled } = await this.#failed(message, failure, delivery);
    const reason = problem === undefined ? INTERRUPTED : `${INTERRUPTED}; ${problem}`;
    if (entry === undefined || entry.isOver)
      throw isSettled ? new Settled() : new Failure(500, reason, { reason: "INTERRUPTED" });
    const kept = entry.kept as KeptCommand;
    this.#releaseRelay(entry);
    kept.state = "posted";
    kept.isSettled = isSettled;
    const { end } = kept;
    answers.resolve(entry.id, error(host, entry, errorData(500, reason, { reason: "INTERRUPTED" })));
    return end;
  }

  /**
   * The actor takes no more now. The requester waits on: the command was accepted, and the journal delivers it again.
   */
  #notNow(entry: PendingRequest, message: Message, reason: string): Failure {
    const { observations } = this.#parts;
    const { kind, type } = message;
    observations.tell("Sys.Overload", { kind, type, code: 503, reason }, message);
    this.#postponed(entry);
    return new Failure(503, reason);
  }

  #actorOf({ kind, type }: Message): SupervisedActor {
    const { table, actors } = this.#parts;
    const route = table.route(kind, type);
    const actor = route && actors.get(route.capability);
    if (!actor) throw new Failure(404, `no capability handles ${kind} ${type}`);
    return actor;
  }

  /** A command that an earlier process has journaled; throws if its capability does not accept it any more. */
  #taken(message: Message, actor: SupervisedActor): PendingRequest {
    const { pending } = this.#parts;
    const inbound = { message: copyMessage(message), origin: NOBODY };
    const refusal = requestRefusal(inbound, actor);
    if (refusal) throw new Failure(refusal.code, refusal.reason, refusal.extras);
    return pending.insert(inbound.message, NOBODY, actor, new KeptCommand(inbound.message, NOBODY, this.#postponed));
  }

  /** The journal's copy is handled: the same request may have come here with other metadata. */
  #post(entry: PendingRequest, message = (entry.kept as KeptCommand).message): void {
    (entry.kept as KeptCommand).state = "posted";
    // A copy: later requests are compared with the journaled one.
    this.#parts.dispatch.post({ message: copyMessage(message), origin: entry.origin }, entry);
  }
}

const CANCELLED = { outcome: "cancelled", reason: "its timer was cancelled" } as const;

const INTERRUPTED =
  "interrupted: the process died while it was under way, and it may have been done in part; its capability is neither transactional nor idempotent";
