/**
 * Queries of transactional capabilities. A handler sees commits that are not confirmed yet, but an answer that leaves
 * the process must not contain writes that are rolled back later. So the answer waits until the commits that were
 * pending at the end of the handler are confirmed. If one was rolled back during or after the run, the handler runs
 * again, by the rules of all retries (`work/retries.ts`).
 *
 * ```
 *   run ──none pending──> answered
 *    ├──pending──> waits ──all confirmed──> answered
 *    │               └──a rollback──> run again
 *    └──a rollback during the run──> run again
 * ```
 * Not here: plain capabilities, whose reads are not tracked. SPEC: L44.
 */
import { Grace } from "../host/grace.ts";
import type { Host } from "../host/host.ts";
import { AWAITED_WINDOW_MS } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { rejected } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { callHandler, type HandlerEnd, isThenable } from "../work/handler-call.ts";
import { Retries } from "../work/retries.ts";
import { AnswerLater, type HandlerResult } from "./mailbox-actor.ts";

export interface ConfirmedQuestion {
  readonly host: Host;
  readonly replica: Replica;
  /** Calls the handler; repeated if its reads were rolled back. */
  readonly run: () => Json | undefined | Promise<Json | undefined>;
}

/** One run of the handler. */
interface Look {
  readonly end: HandlerEnd;
  /** Whether a commit was rolled back during the run. */
  readonly isShaken: boolean;
}

/** The rejection of a run whose reads were rolled back, as that of a commit that rested on them. */
const ROLLED_BACK = rejected("stale", "fell-with", "a commit that it had read was rolled back");

type Standing = ReturnType<Replica["standing"]>;

/** The actor continues with the next message while the answer waits. */
export function answerConfirmed(question: ConfirmedQuestion): HandlerResult | Promise<HandlerResult> {
  const first = look(question);
  return isThenable(first) ? first.then((made) => answer(question, made)) : answer(question, first);
}

function answer(question: ConfirmedQuestion, first: Look): HandlerResult {
  const standing = question.replica.standing();
  if (!first.isShaken && standing === undefined) return outcomeOf(first.end);
  return new AnswerLater(confirmed(question, first, standing));
}

function look({ replica, run }: ConfirmedQuestion): Look | Promise<Look> {
  const { reverts } = replica;
  const seen = (end: HandlerEnd): Look => ({ end, isShaken: replica.reverts !== reverts });
  const end = callHandler(run, undefined, undefined);
  return isThenable(end) ? end.then(seen) : seen(end);
}

async function confirmed(question: ConfirmedQuestion, first: Look, standing: Standing): Promise<Json | undefined> {
  const { host, replica } = question;
  const grace = new Grace(host, AWAITED_WINDOW_MS);
  let retries: Retries | undefined;
  for (let made = first, stands = standing; ; made = await look(question), stands = replica.standing()) {
    if (stands !== undefined && !(await grace.outlasts(stands)))
      throw new Failure(503, `its reads are not confirmed after ${AWAITED_WINDOW_MS} ms; ask again later`);
    if (!made.isShaken && (await stands) !== false) return outcomeOf(made.end);
    retries ??= new Retries({ host, replica, windowMs: AWAITED_WINDOW_MS });
    const next = await retries.next(ROLLED_BACK, undefined);
    if (next.kind !== "again") throw new Failure(503, "its reads were rolled back again and again; ask again later");
  }
}

function outcomeOf(end: HandlerEnd): Json | undefined {
  if (end.kind === "returned") return end.value as Json | undefined;
  throw end.error;
}
