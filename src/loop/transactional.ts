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
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { causedBy, event } from "../message/lineage.ts";
import { admit } from "../store/admit.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { labelOfMessage } from "../store/label.ts";
import { labelEvents } from "../store/label-checks.ts";
import { Receipt } from "../store/receipt.ts";
import { retryRule } from "../store/rejection.ts";
import type { Capability, MessageSchema, SpawnContext } from "./capability.ts";
import { type CapabilityDefinition, declared, dispatch, type RequestHandlers } from "./define-capability.ts";
import { AnswerLater, type HandlerContext, MailboxActor } from "./mailbox-actor.ts";
import { schemaProblem } from "./message-schema.ts";

/** What a transactional handler may do: everything it does happens with its commit, or not at all. */
export interface TransactionalContext {
  get<T>(cell: Cell<T>): T | undefined;
  set<T>(cell: Cell<T>, value: T): void;
  delete(cell: Cell<unknown>): void;
  emit(type: string, data: Json): void;
}

export interface TransactionalDefinition<CommandsIn, CommandsOut, QueriesIn, QueriesOut>
  extends Omit<CapabilityDefinition<TransactionalContext>, "commands" | "queries" | "on"> {
  readonly space: Space;
  readonly commands?: RequestHandlers<CommandsIn, CommandsOut, TransactionalContext>;
  /** Queries read; they get the ordinary context, and pull what they need. */
  readonly queries?: RequestHandlers<QueriesIn, QueriesOut, HandlerContext>;
}

/** A definition as it is used, whatever the types of its handlers. */
interface Definition extends Omit<CapabilityDefinition<TransactionalContext>, "queries"> {
  readonly space: Space;
  readonly queries?: CapabilityDefinition["queries"];
}

export function transactional<CommandsIn, CommandsOut, QueriesIn, QueriesOut>(
  definition: TransactionalDefinition<CommandsIn, CommandsOut, QueriesIn, QueriesOut>,
): Capability {
  const { space, queries, ...rest } = definition as Definition;
  const shown = declared({ ...rest, ...(queries ? { queries: queries as never } : {}) });
  return {
    ...shown,
    // A command that is handed over again finds its receipt.
    idempotent: true,
    spawn: (spawned) =>
      new MailboxActor(spawned.host, (message, context) => {
        if (message.kind === "command")
          return handleOnce({ ...spawned, space, definition: rest, outbound: shown.outbound, message });
        return dispatch({ description: "", ...(queries ? { queries } : {}) }, message, context);
      }),
  };
}

/** Runs the handler and applies its commit; the answer waits for the disk, the next message does not. */
async function handleOnce(handling: Handling): Promise<AnswerLater> {
  const { committed, result } = await attempt(handling);
  return new AnswerLater(confirm(handling, committed, result));
}

interface Handling extends SpawnContext {
  readonly space: Space;
  readonly definition: CapabilityDefinition<TransactionalContext>;
  readonly outbound: MessageSchema;
  readonly message: Message;
}

interface Attempt {
  readonly committed: Promise<CommitOutcome>;
  readonly result: Json;
}

/** One run of the handler, repeated while it looked at documents that were not here yet: what it saw proves nothing. */
async function attempt(handling: Handling): Promise<Attempt> {
  const { name, space, definition, message } = handling;
  const replica = space.replica(space.name);
  for (;;) {
    using tx = space.begin(begun(definition, message));
    const { transaction } = tx;
    const ended = await endOf(() => dispatch(definition, message, contextOf(handling, tx)));
    if (transaction.parts.some(({ document }) => document.state === "loading")) {
      await replica.loadsSettled();
      continue;
    }
    if (ended.threw) throw ended.error;
    const result = ended.value ?? null;
    const receipt = receiptOf(message);
    transaction.leave(new Receipt(receipt, admit({ request: requestOf(message), result }, undefined)));
    // What a handler answers is what it has read.
    if (tx.label.length > 0) {
      transaction.labels.push({ ...receipt, path: [], labels: [...tx.label] });
      labelEvents(tx.label, transaction.entries);
    }
    transaction.entries.push({ message, topic: message.type, source: name, as: { status: "done" } });
    const { entries } = transaction;
    // The command's own row is done; the others are events.
    const handOver = entries.length > 1 ? handling.commitWith : undefined;
    return { committed: handOver ? handOver(entries, () => tx.commit()) : tx.commit(), result };
  }
}

type End =
  | { readonly threw: false; readonly value: Json | undefined }
  | { readonly threw: true; readonly error: unknown };

/** What it came to: a handler that throws may have done so because of what was not here. */
async function endOf(run: () => ReturnType<typeof dispatch>): Promise<End> {
  try {
    return { threw: false, value: await run() };
  } catch (error) {
    return { threw: true, error };
  }
}

function begun({ clearance }: CapabilityDefinition<TransactionalContext>, message: Message): BeginOptions {
  const label = labelOfMessage(message);
  return clearance === undefined ? { label } : { clearance, label };
}

/** Waits for the commit; a stale one is run again, one that finds a receipt answers with it. */
async function confirm(handling: Handling, first: Promise<CommitOutcome>, firstResult: Json): Promise<Json> {
  const { host, space, message } = handling;
  const replica = space.replica(space.name);
  const until = host.monotonic() + TRANSACT_WINDOW_MS;
  let committed = first;
  let result = firstResult;
  for (let tries = 1; ; tries++) {
    const outcome = await committed;
    if (outcome.kind === "committed") return result;
    if (outcome.reason === "document-exists" || outcome.reason === "message-exists") {
      return answerOf(await replica.pull(receiptOf(message)), message);
    }
    if (retryRule(outcome) !== "run-again" || host.monotonic() >= until) {
      const became =
        outcome.class === "unknown" ? "not known whether it was committed; repeat it under its id" : "not committed";
      throw new Failure(outcome.class === "refused" ? 422 : 503, `${became}: ${outcome.message}`);
    }
    await replica.catchUp();
    await pause(host, TRANSACT_PAUSE_MS * Math.min(tries, 10) * host.random());
    ({ committed, result } = await attempt(handling));
  }
}

/** What was asked, whoever asks it and whenever. */
function requestOf({ type, data }: Message): string {
  return contentId([type, data]);
}

/** The answer of the first time. An id that stands for something else must not be answered as if that were this. */
function answerOf(receipt: Json | undefined, message: Message): Json {
  const { request, result } = (receipt ?? {}) as { request?: string; result?: Json };
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
      const emitted = event(host, type, data, causedBy(message));
      const problem = schemaProblem(outbound, emitted);
      if (problem) throw new Failure(500, `${name} does not emit this: ${problem}`);
      const topic = topicOf?.(type) ?? type;
      tx.transaction.entries.push({ message: emitted, topic, source: name, as: { status: "pending" } });
    },
  };
}
