/**
 * The end of a stream's handler that threw or timed out: another attempt after a pause, or the failed outcome.
 *
 * ```
 *   failed ──another attempt──> rests outside of the queue ──its time has come──> queued, at its old place
 *     └──the last one──> `onFailed` in a transaction of its own ──committed──> the outcome is `failed`
 * ```
 * Sends live in memory, so the pauses do too. SPEC: I47, U101-U109.
 */
import type { Host } from "../host/host.ts";
import { HANDLER_TIMEOUT_MS, WORK_WINDOW_MS } from "../limits.ts";
import { errorText, thrownText } from "../message/error-data.ts";
import { requireAbsent } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import { Attempt, type AttemptKind } from "../work/attempt.ts";
import { callHandler } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { type Next, Retries } from "../work/retries.ts";
import { retryDelayMs, retryPolicyOf, worthRetrying } from "../work/retry-policy.ts";
import type { WorkBoard } from "../work/work-board.ts";
import type { Waker } from "./agenda.ts";
import type { SendHandling } from "./handling.ts";
import type { Background } from "./run-commits.ts";
import type { Send, SendQueue } from "./send.ts";
import type { SendAnswers } from "./send-answers.ts";

interface FailureParts {
  readonly host: Host;
  readonly answers: SendAnswers;
  readonly passes: Waker;
  readonly background: Background;
  /** The kind of the attempts of `onFailed`. */
  readonly kindOf: (send: Send) => AttemptKind;
  readonly board: () => WorkBoard | undefined;
}

/** `problem`: why `onFailed` took no effect. */
type Concluded = { readonly problem?: string } | "already" | Rejection;

export class SendFailures {
  readonly #parts: FailureParts;

  constructor(parts: FailureParts) {
    this.#parts = parts;
  }

  /** The send is in no queue. */
  failed(queue: SendQueue, handling: SendHandling, reason: "threw" | "timeout", error: unknown): void {
    const { host, passes, background, answers } = this.#parts;
    const { send, handler, number: attempts } = handling;
    const thrown = reason === "threw" ? error : undefined;
    send.failures = attempts;
    const again = queue.closed ? undefined : this.#retryIn(handling, thrown);
    if (typeof again === "number") return queue.rest(send, again, host, () => passes.wake());
    const message = again === undefined ? thrownText(error) : `${thrownText(error)}; ${again.problem}`;
    if (handler.onFailed === undefined) return answers.fail(queue, send, { reason, message, error });
    const failure = { kind: reason, message, attempts, ...(reason === "threw" ? { thrown } : {}) };
    const end = (concluded: Concluded) => {
      if (concluded === "already") answers.already(queue, send);
      else if ("kind" in concluded) answers.rejected(queue, send, concluded);
      else {
        const { problem } = concluded;
        answers.fail(queue, send, {
          reason,
          error,
          message: problem === undefined ? message : `${message}; ${problem}`,
        });
      }
      passes.wake();
    };
    const mistaken = (mistake: unknown) => end({ problem: `onFailed failed: ${errorText(mistake)}` });
    background.background(this.#callOnFailed(handling, failure).then(end, mistaken));
  }

  #retryIn({ handler, number }: SendHandling, thrown: unknown): number | { readonly problem: string } | undefined {
    const { host } = this.#parts;
    const policy = retryPolicyOf(handler.retry);
    if (number >= policy.attempts) return undefined;
    const worth = worthRetrying(policy, thrown);
    if (worth === "no") return undefined;
    if (worth !== "yes") return { problem: `retry.when threw: ${errorText(worth.thrown)}` };
    return retryDelayMs(policy, number, host);
  }

  /** Calls `onFailed` until its commit stands, or cannot. */
  async #callOnFailed(handling: SendHandling, failure: HandlerFailure): Promise<Concluded> {
    const { host, board, kindOf } = this.#parts;
    const { send, handler, replica } = handling;
    const { timeoutMs = HANDLER_TIMEOUT_MS, onFailed } = handler;
    const retries = new Retries({ host, replica, windowMs: WORK_WINDOW_MS });
    const call = (failed: HandlerFailure, attempt: Attempt) =>
      attempt.enter(() => onFailed?.(failed, attempt, send.value));
    const message = { type: "send", metadata: { id: send.id } };
    const facts = { entryPoint: "stream", handler: String(send.stream), timeoutMs, message } as const;
    for (;;) {
      const { label } = send;
      const attempt = new Attempt(kindOf(send), { replica, id: `${send.id}/failed`, number: failure.attempts, label });
      // `idle` waits for the outcome of the send.
      attempt.holdsRest = true;
      const wait = { ...facts, host, cancellable: attempt, board: board(), keepAlive: false };
      const end = await callHandler(call, failure, attempt, wait);
      if (end.kind !== "returned") {
        attempt.abort("onFailed has failed");
        return { problem: `onFailed failed: ${errorText(end.error)}` };
      }
      const next = await this.#conclude(handling, attempt, retries);
      if (next.kind === "done") return {};
      if (next.kind === "already") return "already";
      if (next.kind === "again") continue;
      const { rejection } = next;
      const isDropped = send.origin?.state === "failed" || rejection.reason === "origin-not-committed";
      return isDropped ? rejection : { problem: `onFailed failed: ${rejection.message}` };
    }
  }

  /** Commits the effect of `onFailed`, on the condition that the send was not handled elsewhere. */
  async #conclude({ send, originCondition }: SendHandling, attempt: Attempt, retries: Retries): Promise<Next> {
    if (!attempt.isReady) {
      attempt.abort("it met documents or computed values that were not ready");
      return retries.afterLoads(attempt);
    }
    try {
      attempt.seal();
    } catch (error) {
      attempt.abort("it cannot be committed");
      throw error;
    }
    const { preconditions } = attempt.transaction;
    preconditions.push(requireAbsent(receiptOf({ kind: "send", id: send.id })));
    if (originCondition !== undefined) preconditions.push(originCondition);
    const commit = attempt.commit();
    const outcome = await commit.outcome;
    const next: Next = outcome.kind === "committed" ? { kind: "done" } : await retries.next(outcome, commit);
    if (next.kind === "done") attempt.lineage.confirm();
    else attempt.lineage.fail("the commit of onFailed was rejected");
    return next;
  }
}
