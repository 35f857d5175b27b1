/**
 * Transactional capabilities: each command is one unit of work on a space (`src/work/`), and its answer leaves after
 * the commit is confirmed.
 *
 * ```
 *   known id? ──receipt there──> answered from it
 *      │no
 *   attempt ──handler returned──> sealed: receipt, journal row `done` ──> committed ──> answered
 *      ^          └──threw──> its reads are committed ──> the error is answered
 *      └──documents or computed values were not ready; the commit was rejected (`work/retries.ts`)
 * ```
 * The receipt holds the answer and a digest of the request: a repeated request has the first answer, another request
 * under its id is refused with 409. SPEC: L32, U1-U28.
 */
import type { Space } from "../cells/space.ts";
import { AWAITED_WINDOW_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { Failure, fromError } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { cloneData, copyJson } from "../message/json-copy.ts";
import { problemText, within } from "../message/problem.ts";
import { admit } from "../store/admit.ts";
import type { Commit, CommitOutcome } from "../store/commit.ts";
import type { DocumentRef } from "../store/document.ts";
import { isErasedResult } from "../store/erase.ts";
import type { JournalEntry } from "../store/journal.ts";
import { isRefusal, labelOfMessage } from "../store/label.ts";
import { Receipt, requireAbsent } from "../store/receipt.ts";
import { type Invocation, receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { pullStored } from "../store/stored-value.ts";
import { Attempt, type AttemptKind } from "../work/attempt.ts";
import { callHandler, type HandlerEnd, isThenable } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { Outbox } from "../work/outbox.ts";
import type { Known, Receipts } from "../work/receipts.ts";
import { endWithRefusal } from "../work/refusal.ts";
import { type Next, Retries } from "../work/retries.ts";
import { Tx } from "../work/tx.ts";
import type { MessageSchema, SpawnContext } from "./capability.ts";
import {
  type CapabilityDefinition,
  declared,
  dispatch,
  mailboxOptions,
  type RequestHandlers,
} from "./capability-definition.ts";
import { answerConfirmed } from "./confirmed-query.ts";
import type { TypedCapability } from "./exchanges.ts";
import { isRefusalCode } from "./inbound.ts";
import {
  AnswerLater,
  type CapabilityContext,
  type FailedMessage,
  MailboxActor,
  type MessageHandler,
  type MessageHandling,
} from "./mailbox-actor.ts";
import { schemaProblem } from "./message-schema.ts";
import type { Parcel } from "./parcel.ts";
import type { PendingRequest } from "./pending-request.ts";
import { isAwaited } from "./pending-request.ts";

/** The definition of a capability whose handlers are transactions. */
export interface TransactionalDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>
  extends Omit<CapabilityDefinition<Tx>, "commands" | "queries"> {
  readonly space: Space;
  readonly commands?: RequestHandlers<CommandsSent, CommandsIn, CommandsOut, Tx>;
  /**
   * Handlers of queries, with the ordinary context; they read values with `pull`, within the clearance. Answers wait
   * until the reads are confirmed, so a query may run again.
   */
  readonly queries?: RequestHandlers<QueriesSent, QueriesIn, QueriesOut, CapabilityContext>;
}

/** A definition without the types of its handlers. */
interface Definition extends Omit<CapabilityDefinition<Tx>, "queries"> {
  readonly space: Space;
  readonly queries?: CapabilityDefinition["queries"];
}

/** Makes a capability whose handlers are transactions on a space. */
export function transactional<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>(
  definition: TransactionalDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>,
): TypedCapability<CommandsSent & QueriesSent, CommandsOut & QueriesOut> {
  const { space, queries, ...rest } = definition as Definition;
  const shown = declared({ ...rest, ...(queries ? { queries: queries as never } : {}) });
  return {
    ...shown,
    // A command that is handed over again finds its receipt.
    idempotent: true,
    work: space,
    // The handler's own commit journals the commands of waiting requesters: one flush instead of two.
    durable: rest.durable ?? "unawaited",
    spawn: (spawned) => {
      const { host } = spawned;
      const entry = new CommandEntry(spawned, space, rest, shown.outbound);
      const asked = { description: "", ...(queries ? { queries } : {}) };
      const replica = space.replica(space.name);
      const answerQuery: MessageHandler = (message, context) =>
        answerConfirmed({ host, replica, run: () => context.within(() => dispatch(asked, message, context)) });
      const handle: MessageHandler = (message, context, request) =>
        message.kind === "query" ? answerQuery(message, context) : entry.handle(message, context, request);
      const options = {
        ...mailboxOptions(rest, spawned),
        posted: (message: Message) => entry.posted(message),
        failed: (one: FailedMessage) => entry.failed(one),
        failedWork: entry.failedWork,
      };
      entry.actor = new MailboxActor(host, handle, options);
      return entry.actor;
    },
  };
}

/** Content of the receipt of a command. */
export type ReceiptValue = { readonly request: string; readonly result: Json };

/** A command that is being handled, or an event of a loop without a journal. */
interface Command {
  readonly message: Message;
  readonly context: MessageHandling;
  readonly request: PendingRequest | undefined;
  readonly invocation: Invocation;
  /** The time that ids of its messages carry, once it has sent one. */
  bornMs: number | undefined;
  /** Of a command that runs again: repeated ones get it too. */
  answer: Promise<Json> | undefined;
  /** Created by the first attempt that fails. */
  retries: Retries | undefined;
}

/** An attempt that has ended, and its commit on the way. */
interface Made {
  readonly attempt: Attempt;
  readonly end: HandlerEnd;
  readonly commit: Commit;
  readonly answered: Promise<CommitOutcome>;
}

class CommandEntry {
  readonly #spawned: SpawnContext;
  readonly #replica: Replica;
  readonly #definition: CapabilityDefinition<Tx>;
  readonly #outbox: Outbox;
  readonly #kind: AttemptKind;
  readonly #receipts: Receipts;
  /** Commands whose handlers run again, beside the mailbox. */
  readonly #rerunning = new Map<string, Command>();
  /** Asks other capabilities. */
  actor: MailboxActor | undefined;

  constructor(spawned: SpawnContext, space: Space, definition: CapabilityDefinition<Tx>, outbound: MessageSchema) {
    this.#spawned = spawned;
    this.#replica = space.replica(space.name);
    this.#definition = definition;
    const { name: source, topicOf } = spawned;
    const problemOf = (message: Message) => schemaProblem(outbound, message)?.text;
    this.#outbox = new Outbox({ source, topicOf, problemOf, space, requester: () => this.actor });
    this.#receipts = space.receipts;
    this.#kind = space.attemptsOf(`the handler of ${spawned.name}`, definition.clearance);
  }

  /** Runs the handler and applies its commit. The answer waits for the disk; the next message does not. */
  handle(
    message: Message,
    context: MessageHandling,
    request: PendingRequest | undefined,
  ): AnswerLater | undefined | Promise<AnswerLater | undefined> {
    const { id } = message.metadata;
    const delivered = context.parcel?.attempt;
    if (delivered !== undefined) return this.#deliver(message, context, delivered);
    const subscriber = this.#spawned.name;
    const invocation: Invocation =
      message.kind === "event" ? { kind: "event", id, subscriber } : { kind: "command", id };
    const command: Command = {
      message,
      context,
      request,
      invocation,
      bornMs: undefined,
      answer: undefined,
      retries: undefined,
    };
    if (message.kind === "command" && this.#receipts.isNew(id)) return this.#begin(command);
    const known = this.#receipts.look(invocation);
    return isThenable(known) ? known.then((found) => this.#known(command, found)) : this.#known(command, known);
  }

  /** A command that waits for its turn. */
  posted({ kind, metadata: { id } }: Message): void {
    if (kind === "command") this.#receipts.lookAhead({ kind, id });
  }

  /** An event that the journal delivers: the bus commits the attempt together with the delivery. */
  #deliver(message: Message, context: MessageHandling, attempt: Attempt): undefined | Promise<undefined> {
    context.attempt = attempt;
    const parcel = context.parcel as Parcel;
    const ended = (end: HandlerEnd): undefined => {
      parcel.end = end;
    };
    const end = callHandler(this.#call, message, attempt);
    return isThenable(end) ? end.then(ended) : ended(end);
  }

  /** The id may have been handled before: its receipt answers, and the handler is not called. */
  #known(command: Command, known: Known): AnswerLater | Promise<AnswerLater> {
    const { message } = command;
    if (known.kind === "too-old") throw new Failure(410, known.rejection.message, { reason: "TOO_OLD" });
    const running = this.#rerunning.get(message.metadata.id);
    if (known.kind === "new" && running !== undefined) return joined(running, command);
    return known.kind === "new"
      ? this.#begin(command)
      : new AnswerLater(Promise.resolve(message.kind === "event" ? null : answerOf(known.value, message)), true);
  }

  #begin(command: Command): AnswerLater | Promise<AnswerLater> {
    const answer = (made: Made) => {
      command.answer = this.#answer(command, made);
      return new AnswerLater(command.answer);
    };
    const made = this.#attempt(command);
    return isThenable(made) ? made.then(answer) : answer(made);
  }

  /** One attempt, without a promise if the handler needs none: most commands only read memory. */
  #attempt(command: Command): Made | Promise<Made> {
    const { message } = command;
    const { id } = message.metadata;
    const replica = this.#replica;
    // Runs again because a read has moved are the same try.
    const number = command.context.attemptNumber;
    const { bornMs } = command;
    const attempt = new Attempt(this.#kind, { replica, id, number, label: labelOfMessage(message), bornMs });
    // A copy for each attempt: the message is journaled, compared with repeated ones and handed to the next attempt as
    // it was sent.
    const own = { ...message, data: copyJson(message.data), metadata: { ...message.metadata } };
    command.context.attempt = attempt;
    const end = callHandler(this.#call, own, attempt);
    return isThenable(end)
      ? end.then((ended) => this.#conclude(command, attempt, ended))
      : this.#conclude(command, attempt, end);
  }

  readonly #call = (message: Message, attempt: Attempt): unknown => {
    const tx = new Tx(attempt, this.#outbox, message);
    return attempt.enter(() => dispatch(this.#definition, message, tx));
  };

  /** Commits the attempt, or makes another when the documents and computed values that it met are ready. */
  #conclude(command: Command, attempt: Attempt, handled: HandlerEnd): Made | Promise<Made> {
    // The handler has timed out, and its caller was told.
    attempt.requireOpen();
    command.bornMs = attempt.bornMs;
    if (!attempt.isReady) return this.#attemptLater(command, attempt);
    const end = endWithRefusal(handled, attempt.refusal);
    const receipt = receiptOf(command.invocation);
    if (end.kind === "returned") return this.#seal(command, attempt, end.value, receipt);
    const commit = attempt.commitReads("the handler threw", requireAbsent(receipt));
    return { attempt, end, commit, answered: commit.outcome };
  }

  /** Commits the attempt with the receipt, the command's own row and the labels of its reads. */
  #seal({ message }: Command, attempt: Attempt, returned: unknown, receipt: DocumentRef): Made {
    const { name, commitWith } = this.#spawned;
    let value: ReceiptValue;
    try {
      // An answer that cannot be sent must not be committed.
      const answer = cloneData(returned ?? null);
      if (answer.kind === "impure")
        throw new Failure(500, `${name} gave an invalid answer: ${problemText(within("data", answer.problem))}`);
      value = admit({ request: requestOf(message), result: answer.value }, undefined) as ReceiptValue;
      attempt.seal(new Receipt(receipt, value));
      this.#receipts.written(receipt.id);
    } catch (error) {
      attempt.abort("it cannot be committed");
      throw error;
    }
    const { entries } = attempt.transaction;
    // An event is here without a journal; the row of a command is its own.
    if (message.kind === "command")
      entries.push({ message, topic: message.type, source: name, as: { status: "done" } });
    let commit: Commit | undefined;
    const make = () => {
      commit = attempt.commit();
      return commit.outcome;
    };
    // The command's own row is done; the others are events, which the bus may claim ahead.
    const answered = entries.some(isPending) && commitWith ? commitWith(entries, make) : make();
    // The handler may change the returned object before the commit is confirmed; the receipt has a copy.
    const end: HandlerEnd = { kind: "returned", value: value.result };
    return { attempt, end, commit: commit as Commit, answered };
  }

  async #attemptLater(command: Command, attempt: Attempt): Promise<Made> {
    attempt.abort("it met documents or computed values that were not ready");
    const next = await this.#retries(command).afterLoads(attempt);
    if (next.kind === "again") return this.#attempt(command);
    const error = failureOf(next as Ended);
    const commit = attempt.replica.transaction();
    const made = commit.commitReads(requireAbsent(receiptOf(command.invocation)));
    return { attempt, end: { kind: "threw", error }, commit: made, answered: made.outcome };
  }

  #retries(command: Command): Retries {
    const { host } = this.#spawned;
    command.retries ??= new Retries({ host, replica: this.#replica, windowMs: AWAITED_WINDOW_MS });
    return command.retries;
  }

  // The answer ------------------------------------------------------------------------------------------------------

  async #answer(command: Command, first: Made): Promise<Json> {
    const outcome = await first.answered;
    if (outcome.kind === "committed") return this.#concluded(command, first);
    const { id } = command.message.metadata;
    this.#rerunning.set(id, command);
    try {
      return await this.#persist(command, first);
    } finally {
      this.#rerunning.delete(id);
    }
  }

  #concluded(command: Command, { attempt, end }: Made): Promise<Json> {
    attempt.lineage.confirm();
    return this.#ended(command, end);
  }

  /** Runs the handler until its commit stands, or cannot. */
  async #persist(command: Command, first: Made): Promise<Json> {
    for (let made = first; ; made = await this.#attempt(command)) {
      const { lineage } = made.attempt;
      const outcome = await made.answered;
      const next = outcome.kind === "committed" ? DONE : await this.#retries(command).next(outcome, made.commit);
      if (next.kind === "done") return this.#concluded(command, made);
      lineage.fail("the commit of the command was rejected");
      if (next.kind === "already") return this.#fromReceipt(command, outcome);
      if (next.kind !== "again") throw failureOf(next);
    }
  }

  /**
   * The journal has a refusal before the caller is told. A failure may be tried again; the last one is noted by
   * `failed`.
   */
  async #ended(command: Command, end: HandlerEnd): Promise<Json> {
    const { message, context } = command;
    if (end.kind === "returned") return (end.value as Json | undefined) ?? null;
    const isRefused = message.kind === "command" && isRefusedFor(command, end.error);
    if (isRefused) await this.#spawned.noteFailed?.(message, end.error, "refused");
    else context.hasFailed = true;
    throw end.error;
  }

  // Failures --------------------------------------------------------------------------------------------------------

  /**
   * A handler has failed for good. The journal gets that in one commit with the effect of `onFailed`, before the caller
   * is told.
   */
  failed(failed: FailedMessage): Promise<string | undefined> | undefined {
    const { handling, failure } = failed;
    // Another error is an answer about the commit: the command may be sent again.
    if (failure.kind === "threw" && handling?.hasFailed !== true) return undefined;
    return this.#definition.onFailed === undefined ? this.#note(failed) : this.#callOnFailed(failed);
  }

  /** An event that the journal delivers: the bus commits the attempt together with the failed status. */
  readonly failedWork = (message: Message, failure: HandlerFailure, attempt: Attempt): unknown => {
    const tx = new Tx(attempt, this.#outbox, message);
    return attempt.enter(() => this.#definition.onFailed?.(failure, tx, copyJson(message.data)));
  };

  async #note({ message, failure }: FailedMessage, problem?: string): Promise<string | undefined> {
    const error = problem === undefined ? failure.message : `${failure.message}; ${problem}`;
    const thrown = problem === undefined && failure.thrown !== undefined ? failure.thrown : new Error(error);
    if (message.kind === "command") await this.#spawned.noteFailed?.(message, thrown, "failed");
    return problem;
  }

  async #callOnFailed(failed: FailedMessage): Promise<string | undefined> {
    const { host } = this.#spawned;
    const { message, context, failure } = failed;
    const replica = this.#replica;
    const retries = new Retries({ host, replica, windowMs: AWAITED_WINDOW_MS });
    const { id } = message.metadata;
    for (;;) {
      const facts = { replica, id: `${id}/failed`, number: failure.attempts, label: labelOfMessage(message) };
      const attempt = new Attempt(this.#kind, { ...facts, bornMs: undefined });
      context.attempt = attempt;
      const tx = new Tx(attempt, this.#outbox, message);
      const { onFailed } = this.#definition;
      const problem = await context.callFailed(() =>
        attempt.enter(() => onFailed?.(failure, tx, copyJson(message.data))),
      );
      if (problem !== undefined) attempt.abort("onFailed has failed");
      if (problem !== undefined) return this.#note(failed, problem);
      const next = attempt.isReady
        ? await this.#commitFailure(failed, attempt, retries)
        : await this.#afterLoads(attempt, retries);
      if (next.kind === "done" || next.kind === "already") return undefined;
      if (next.kind !== "again") return this.#note(failed, `onFailed failed: ${next.rejection.message}`);
    }
  }

  #afterLoads(attempt: Attempt, retries: Retries): Promise<Next> {
    attempt.abort("it met documents or computed values that were not ready");
    return retries.afterLoads(attempt);
  }

  /** A journaled command is settled by the commit; of another one the commit brings the row. */
  async #commitFailure({ message, kept, failure }: FailedMessage, attempt: Attempt, retries: Retries): Promise<Next> {
    const { name, commitWith } = this.#spawned;
    const { transaction } = attempt;
    const { entries } = transaction;
    const settlement = kept?.failing(failure.message);
    attempt.seal();
    if (settlement !== undefined) transaction.settlements.push(settlement);
    else if (message.kind === "command")
      entries.push({ message, topic: message.type, source: name, as: { status: "failed", error: failure.message } });
    let commit: Commit | undefined;
    const make = () => {
      commit = attempt.commit();
      return commit.outcome;
    };
    const outcome = await (entries.some(isPending) && commitWith ? commitWith(entries, make) : make());
    const next = outcome.kind === "committed" ? DONE : await retries.next(outcome, commit as Commit);
    if (next.kind === "done") attempt.lineage.confirm();
    else attempt.lineage.fail("the commit of onFailed was rejected");
    if (next.kind === "done" && kept !== undefined && settlement !== undefined) kept.isSettled = true;
    return next;
  }

  /** The answer of the first time. The receipt may be gone by now, or be of another request. */
  async #fromReceipt({ message, invocation }: Command, outcome: CommitOutcome): Promise<Json> {
    if (invocation.kind === "event") return null;
    const { id } = message.metadata;
    const receipt = await pullStored(this.#replica, receiptOf(invocation));
    if (receipt === undefined && outcome.kind === "rejected" && outcome.reason === "document-exists")
      throw new Failure(410, `${id} was handled, and its answer is not kept any more`);
    return answerOf(receipt, message);
  }
}

/** The answer of a command that runs again, for a repeated one. */
function joined({ message, answer }: Command, { message: repeated }: Command): AnswerLater {
  if (answer === undefined || requestOf(message) !== requestOf(repeated)) throw idReused(repeated);
  return new AnswerLater(answer, true);
}

function isPending({ as }: JournalEntry): boolean {
  return as.status === "pending";
}

/** A 4xx to a waiting requester is an answer, not a failure that an operator has to look at. SPEC: L51. */
function isRefusedFor({ message, request }: Command, error: unknown): boolean {
  const isRefused = isRefusalCode(fromError(error).code) || isRefusal(error);
  return isRefused && request !== undefined && isAwaited(message, request.origin);
}

type Ended = Extract<Next, { readonly rejection: Rejection }>;

const DONE: Next = { kind: "done" };

function failureOf({ kind, rejection }: Ended): Failure {
  if (rejection.reason === "too-old") return new Failure(410, rejection.message, { reason: "TOO_OLD" });
  const isUnknown = rejection.class === "unknown";
  const became = isUnknown ? "not known whether it was committed; repeat it under its id" : "not committed";
  return new Failure(kind === "failed" ? codeOf(rejection) : 503, `${became}: ${rejection.message}`);
}

/** The code of the answer to a command after its commit was rejected. */
function codeOf({ class: rejectionClass, reason }: Rejection): number {
  if (reason === "too-large") return 413;
  return rejectionClass === "refused" ? 422 : 503;
}

/** The answer of the first time; 409 if the id was used for another request. */
export function answerOf(receipt: Json | undefined, message: Message): Json {
  if (isErasedResult(receipt))
    throw new Failure(410, `${message.metadata.id} was handled, and its answer was erased; choose another id`, {
      reason: "ERASED",
    });
  const { request, result } = (receipt ?? {}) as Partial<ReceiptValue>;
  if (request === requestOf(message)) return result ?? null;
  throw idReused(message);
}

/** `data` tells what the id stands for. */
export function idReused({ metadata }: Message, data?: Json): Failure {
  return new Failure(409, `the id ${metadata.id} was used before, for another request; choose another`, {
    reason: "ID_REUSED",
    data,
  });
}

/** Identity of a request: its type and data, without its sender and time. */
export function requestOf({ type, data }: Message): string {
  return contentId([type, data]);
}
