/**
 * Queries of transactional capabilities. Whoever reads a space sees at once what is being committed; an answer leaves the process, and must not tell
 * of what then does not happen. So it waits until what was being committed when the handler ended is confirmed; where some of it has fallen,
 * before or after that end, the handler may have read it, and runs again.
 *
 * ```
 *   run ──nothing pending──> answered
 *    ├──pending──> waits ──all confirmed──> answered
 *    │               └──some fell──> run again
 *    └──some fell while it ran──> run again
 * ```
 * Not here: what a plain capability reads, which does not say from where. SPEC: L44.
 */
import { Grace } from "../host/grace.ts";
import type { Host } from "../host/host.ts";
import { AWAITED_WINDOW_MS } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Replica } from "../store/replica.ts";
import { callHandler, type HandlerEnd, isThenable } from "../work/handler-call.ts";
import { AnswerLater, type HandlerResult } from "./mailbox-actor.ts";

export interface Question {
  readonly host: Host;
  readonly replica: Replica;
  /** Calls the handler; again, where what it has read was taken back. */
  readonly run: () => Json | undefined | Promise<Json | undefined>;
}

/** One run of the handler. */
interface Look {
  readonly end: HandlerEnd;
  /** Whether something fell while it ran. */
  readonly isShaken: boolean;
}

type Standing = ReturnType<Replica["standing"]>;

/** The actor goes on to the next message while the answer waits. */
export function answerConfirmed(question: Question): HandlerResult | Promise<HandlerResult> {
  const first = look(question);
  return isThenable(first) ? first.then((made) => answer(question, made)) : answer(question, first);
}

function answer(question: Question, first: Look): HandlerResult {
  const standing = question.replica.standing();
  if (!first.isShaken && standing === undefined) return outcomeOf(first.end);
  return new AnswerLater(confirmed(question, first, standing));
}

function look({ replica, run }: Question): Look | Promise<Look> {
  const { reverts } = replica;
  const seen = (end: HandlerEnd): Look => ({ end, isShaken: replica.reverts !== reverts });
  const end = callHandler(run, undefined, undefined);
  return isThenable(end) ? end.then(seen) : seen(end);
}

async function confirmed(question: Question, first: Look, standing: Standing): Promise<Json | undefined> {
  const { host, replica } = question;
  const grace = new Grace(host, AWAITED_WINDOW_MS);
  for (let made = first, stands = standing; ; made = await look(question), stands = replica.standing()) {
    if (stands !== undefined && !(await grace.outlasts(stands)))
      throw new Failure(503, `what it has read is not confirmed after ${AWAITED_WINDOW_MS} ms; ask again later`);
    if (!made.isShaken && (await stands) !== false) return outcomeOf(made.end);
    if (grace.leftMs === 0) throw new Failure(503, "what it has read was taken back again and again; ask again later");
  }
}

function outcomeOf(end: HandlerEnd): Json | undefined {
  if (end.kind === "returned") return end.value as Json | undefined;
  throw end.error;
}
