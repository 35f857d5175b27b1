/**
 * Transactional capabilities: a handler gets a transaction on a space, and its answer leaves only after the commit is confirmed.
 * Its writes, the events it emits, the command's journal row and its receipt are one commit. The receipt is the answer: a request
 * that comes again, anywhere, gets it again and does nothing. Another request under the same id is refused. SPEC: L32.
 */

import type { Cell } from "../cells/cell.ts";
import type { BeginOptions, CellTransaction } from "../cells/cell-transaction.ts";
import type { Space } from "../cells/space.ts";
import { pause } from "../host/pause.ts";
import { TRANSACT_PAUSE_MS, TRANSACT_WINDOW_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { Failure, thrownText } from "../message/error-data.ts";
import { DATA_LIMITS, type Json } from "../message/json.ts";
import { cloneJson, copyJson } from "../message/json-copy.ts";
import { causedBy, event } from "../message/lineage.ts";
import { problemText, within } from "../message/problem.ts";
import { admit } from "../store/admit.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { labelOfMessage } from "../store/label.ts";
import { labelEvents } from "../store/label-checks.ts";
import { Receipt, requireAbsent } from "../store/receipt.ts";
import { type Rejection, retryRule } from "../store/rejection.ts";
import { pullStored } from "../store/stored-value.ts";
import { isThenable } from "../work/handler-call.ts";
import type { MessageSchema, SpawnContext } from "./capability.ts";
import { answerConfirmed } from "./confirmed-query.ts";
import { type CapabilityDefinition, declared, dispatch, type RequestHandlers } from "./define-capability.ts";
import type { TypedCapability } from "./exchanges.ts";
import { type End, endOf, outcomeOf } from "./handler-end.ts";
import { AnswerLater, type HandlerContext, MailboxActor, type MessageHandler } from "./mailbox-actor.ts";
import { schemaProblem } from "./message-schema.ts";

/** What a transactional handler may do: everything it does happens with its commit, or not at all. */
export interface TransactionalContext {
  get<T>(cell: Cell<T>): T | undefined;
  set<T>(cell: Cell<T>, value: T): void;
  delete(cell: Cell<unknown>): void;
  emit(type: string, data: Json): void;
}

export interface TransactionalDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>
  extends Omit<CapabilityDefinition<TransactionalContext>, "commands" | "queries" | "on"> {
  readonly space: Space;
  readonly commands?: RequestHandlers<CommandsSent, CommandsIn, CommandsOut, TransactionalContext>;
  /** Queries read; they get the ordinary context, and pull what they need, within the clearance if there is one. What they answer is confirmed: one may run again. */
  readonly queries?: RequestHandlers<QueriesSent, QueriesIn, QueriesOut, HandlerContext>;
}

/** A definition as it is used, whatever the types of its handlers. */
interface Definition extends Omit<CapabilityDefinition<TransactionalContext>, "queries"> {
  readonly space: Space;
  readonly queries?: CapabilityDefinition["queries"];
}

export function transactional<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>(
  definition: TransactionalDefinition<CommandsSent, CommandsIn, CommandsOut, QueriesSent, QueriesIn, QueriesOut>,
): TypedCapability<CommandsSent & QueriesSent, CommandsOut & QueriesOut> {
  const { space, queries, ...rest } = definition as Definition;
  const shown = declared({ ...rest, ...(queries ? { queries: queries as never } : {}) });
  return {
    ...shown,
    // A command that is handed over again finds its receipt.
    idempotent: true,
    spawn: (spawned) => {
      const { host } = spawned;
      const given = { ...spawned, space, definition: rest, outbound: shown.outbound };
      const asked = { description: "", ...(queries ? { queries } : {}) };
      const replica = space.replica(space.name);
      const answerQuery: MessageHandler = (message, context) =>
        answerConfirmed({ host, replica, run: () => context.within(() => dispatch(asked, message, context)) });
      const handle: MessageHandler = (message, context) =>
        message.kind === "command" ? handleOnce({ ...given, message }) : answerQuery(message, context);
      return new MailboxActor(host, handle, rest.clearance);
    },
  };
}

/** Runs the handler and applies its commit; the answer waits for the disk, the next message does not. */
function handleOnce(handling: Handling): AnswerLater | Promise<AnswerLater> {
  const answer = (made: Attempt) => new AnswerLater(confirm(handling, made));
  const tried = attempt(handling);
  return isThenable(tried) ? tried.then(answer) : answer(tried);
}

interface Handling extends SpawnContext {
  readonly space: Space;
  readonly definition: CapabilityDefinition<TransactionalContext>;
  readonly outbound: MessageSchema;
  readonly message: Message;
}

/** What a run of the handler comes to once its commit stands. One that threw ends in a commit of what it had read. */
interface Attempt {
  readonly committed: Promise<CommitOutcome>;
  readonly end: End;
}

/** One run of the handler, without a promise where it needs none: most commands only look at what is here. */
function attempt(handling: Handling): Attempt | Promise<Attempt> {
  const { space, definition, message } = handling;
  const tx = space.begin(begun(definition, message));
  // A copy for each run: what is journaled, compared when the request is repeated, and handed to the next run is what was sent.
  const own = { ...message, data: copyJson(message.data), metadata: { ...message.metadata } };
  const ended = endOf(() => dispatch(definition, own, contextOf(handling, tx)));
  return isThenable(ended) ? ended.then((end) => conclude(handling, tx, end)) : conclude(handling, tx, ended);
}

/** Commits what the handler did; runs it again if it looked at documents that were not here yet: what it saw proves nothing. */
function conclude(handling: Handling, open: CellTransaction, end: End): Attempt | Promise<Attempt> {
  if (open.isBehind) return attemptLater(handling, open);
  using tx = open;
  const { name, space, message } = handling;
  const { transaction } = tx;
  if (transaction.parts.some(({ document }) => document.state === "loading")) {
    const settled = space.replica(space.name).loadsSettled();
    return settled.then(() => attempt(handling));
  }
  const receipt = receiptOf(message);
  if (end.threw) return { committed: transaction.commitReads(requireAbsent(receipt)).outcome, end };
  const kept = admit({ request: requestOf(message), result: end.value ?? null }, undefined) as ReceiptValue;
  transaction.leave(new Receipt(receipt, kept));
  // What a handler answers is what it has read.
  if (tx.label.length > 0) {
    transaction.labels.push({ ...receipt, path: [], labels: [...tx.label] });
    labelEvents(tx.label, transaction.entries);
  }
  transaction.entries.push({ message, topic: message.type, source: name, as: { status: "done" } });
  const { entries } = transaction;
  // The command's own row is done; the others are events.
  const handOver = entries.length > 1 ? handling.commitWith : undefined;
  // The answer is what the receipt says: the handler may change what it has returned before the commit is confirmed.
  const committed = handOver ? handOver(entries, () => tx.commit()) : tx.commit();
  return { committed, end: { threw: false, value: kept.result } };
}

/** What it wanted to read is computed, and has yet to be. */
async function attemptLater(handling: Handling, open: CellTransaction): Promise<Attempt> {
  using tx = open;
  try {
    await tx.upToDate(handling.host);
  } catch (error) {
    const end = { threw: true, error: new Failure(503, thrownText(error)) } as const;
    return { committed: tx.transaction.commitReads(requireAbsent(receiptOf(handling.message))).outcome, end };
  }
  return attempt(handling);
}

/** The journal tells of a failure before whoever asked is told. */
async function ended({ message, noteFailed }: Handling, end: End): Promise<Json> {
  if (end.threw) await noteFailed?.(message, end.error);
  return outcomeOf(end) ?? null;
}

function begun({ clearance }: CapabilityDefinition<TransactionalContext>, message: Message): BeginOptions {
  const label = labelOfMessage(message);
  return clearance === undefined ? { label } : { clearance, label };
}

/** Waits for the commit; a stale one is run again, one that finds a receipt answers with it. */
async function confirm(handling: Handling, { committed, end }: Attempt): Promise<Json> {
  const outcome = await committed;
  return outcome.kind === "committed" ? ended(handling, end) : otherwise(handling, outcome);
}

async function otherwise(handling: Handling, rejection: Rejection): Promise<Json> {
  const { host, space, message } = handling;
  const replica = space.replica(space.name);
  const until = host.monotonic() + TRANSACT_WINDOW_MS;
  let outcome: CommitOutcome = rejection;
  for (let tries = 1; ; tries++) {
    if (outcome.reason === "document-exists" || outcome.reason === "message-exists") {
      // Not what a handling of the same request leaves that runs beside this one: that falls too.
      const receipt = await pullStored(replica, receiptOf(message));
      if (receipt === undefined && outcome.reason === "document-exists")
        throw new Failure(410, `${message.metadata.id} was handled, and its answer is not kept any more`);
      return answerOf(receipt, message);
    }
    if (outcome.reason === "too-old") throw new Failure(410, outcome.message);
    if (retryRule(outcome) !== "run-again" || host.monotonic() >= until) {
      const became =
        outcome.class === "unknown" ? "not known whether it was committed; repeat it under its id" : "not committed";
      throw new Failure(codeOf(outcome), `${became}: ${outcome.message}`);
    }
    await replica.catchUp();
    await pause(host, TRANSACT_PAUSE_MS * Math.min(tries, 10) * host.random());
    const { committed, end } = await attempt(handling);
    outcome = await committed;
    if (outcome.kind === "committed") return ended(handling, end);
  }
}

/** The code of the answer to a command after its commit was rejected. */
function codeOf({ class: rejectionClass, reason }: Rejection): number {
  if (reason === "too-large") return 413;
  return rejectionClass === "refused" ? 422 : 503;
}

/** What was asked, whoever asks it and whenever. */
function requestOf({ type, data }: Message): string {
  return contentId([type, data]);
}

/** What a receipt says of a command. */
type ReceiptValue = { readonly request: string; readonly result: Json };

/** The answer of the first time. An id that stands for something else must not be answered as if that were this. */
function answerOf(receipt: Json | undefined, message: Message): Json {
  const { request, result } = (receipt ?? {}) as Partial<ReceiptValue>;
  if (request === requestOf(message)) return result ?? null;
  throw new Failure(409, `the id ${message.metadata.id} was used before, for something else; choose another`);
}

/** Where the receipt of a command is: the commit that wrote it is the one in which the command was handled. */
export function receiptOf(message: Pick<Message, "metadata">): DocumentRef {
  return { scope: SHARED_SCOPE, id: `receipt/${message.metadata.id}` };
}

function contextOf({ host, name, topicOf, outbound, message }: Handling, tx: CellTransaction): TransactionalContext {
  return {
    get: (cell) => tx.get(cell),
    set: (cell, value) => tx.set(cell, value),
    delete: (cell) => tx.delete(cell),
    emit: (type, data) => {
      const copy = cloneJson(data, DATA_LIMITS);
      if (copy.kind === "impure")
        throw new Failure(500, `${name} does not emit this: ${problemText(within("data", copy.problem))}`);
      const emitted = event(host, type, copy.value, causedBy(message));
      const problem = schemaProblem(outbound, emitted);
      if (problem) throw new Failure(500, `${name} does not emit this: ${problem}`);
      const topic = topicOf?.(type) ?? type;
      tx.transaction.entries.push({ message: emitted, topic, source: name, as: { status: "pending" } });
    },
  };
}
