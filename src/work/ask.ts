/**
 * Requests of a handler to other handlers. They are not part of its commit: an answer comes before it. The id of a
 * request follows from the invocation, so a handler that runs again asks under the same id, and a transactional callee
 * answers from its receipt. SPEC: U78.
 */
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { causedBy, commandMessage, queryMessage } from "../message/lineage.ts";
import { show } from "../message/problem.ts";
import type { Attempt } from "./attempt.ts";
import type { Outbox } from "./outbox.ts";
import { WorkError } from "./work-error.ts";

/** Options of `tx.ask`. */
export interface AskOptions {
  /** Names the request within its invocation; by counting unless given. */
  readonly key?: string;
  /** After this long the request fails with 504; its callee may go on. As long as the kernel waits unless given. */
  readonly timeoutMs?: number;
}

export interface Question {
  readonly kind: "command" | "query";
  readonly type: string;
  readonly data: Json;
}

export async function ask(
  attempt: Attempt,
  outbox: Outbox,
  cause: Message | undefined,
  { kind, type, data }: Question,
  { key, timeoutMs }: AskOptions = {},
): Promise<Json> {
  attempt.requireOpen();
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= TIMER_DELAY_MS_MAX))
    throw new WorkError("WORK_MISUSE", `timeoutMs: must be more than 0 and at most 100 years, got ${show(timeoutMs)}`);
  const { host, id: causation } = attempt;
  const mint = { id: () => attempt.newId(key), now: () => host.now() };
  const lineage = cause === undefined ? (causation === undefined ? {} : { causation }) : causedBy(cause);
  const request = (kind === "command" ? commandMessage : queryMessage)(mint, type, data, lineage);
  const answer = outbox.requester.ask(request);
  if (timeoutMs === undefined) return answer;
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = host.timer(timeoutMs, () => reject(new Failure(504, `${type} was not answered in ${timeoutMs} ms`)));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
