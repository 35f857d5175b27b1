/**
 * Commits the result of a handler. The result becomes the receipt, which must not exist yet (I11). Writes to other
 * spaces are committed first, each with a receipt of its own. A send with an unconfirmed origin commits only if the
 * origin does (I10).
 */
import type { Json } from "../message/json.ts";
import { admit } from "../store/admit.ts";
import { whenOver } from "../store/pending-commit.ts";
import { NO_RESULT, Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Waker } from "./agenda.ts";
import type { SendHandling } from "./handling.ts";
import type { SendQueue } from "./send.ts";
import type { SendAnswers } from "./send-answers.ts";

export class SendCommit {
  readonly #answers: SendAnswers;
  readonly #passes: Waker;

  constructor(answers: SendAnswers, passes: Waker) {
    this.#answers = answers;
    this.#passes = passes;
  }

  seal(queue: SendQueue, handling: SendHandling, value: unknown): void {
    const { send } = handling;
    let result: Json;
    try {
      result = value === undefined ? NO_RESULT : admit(value, undefined);
    } catch (error) {
      handling.abort("the handler's result cannot be stored");
      return this.#answers.failWith(queue, send, "result", error);
    }
    try {
      handling.requireWritable();
    } catch (error) {
      handling.abort("a reader without the clearance could read its writes");
      return this.#answers.failWith(queue, send, "threw", error);
    }
    const { children } = handling;
    if (children.length === 0) return this.#commit(queue, handling, result);
    queue.running = send;
    void this.#commitAfterOthers(queue, handling, children, result);
  }

  /** Writes to other spaces must be durable first; if one of these commits is rejected, this space gets none. */
  async #commitAfterOthers(
    queue: SendQueue,
    handling: SendHandling,
    children: SendHandling["children"],
    result: Json,
  ): Promise<void> {
    const { send } = handling;
    let refusal: Rejection | undefined;
    for (const [replica, transaction] of children) {
      const receipt = receiptOf({ kind: "send", id: send.id, home: queue.replica.space });
      handling.leave(new Receipt(receipt, NO_RESULT), transaction);
      const outcome = await transaction.commit().outcome;
      // `document-exists`: an earlier attempt committed its writes in that space.
      if (outcome.kind === "committed" || outcome.reason === "document-exists") continue;
      refusal = { ...outcome, message: `in space "${replica.space}": ${outcome.message}` };
      break;
    }
    queue.running = undefined;
    if (send.state === "over" || refusal !== undefined) {
      handling.abort(refusal?.message ?? "the send was dropped");
      queue.remove(send);
      if (refusal !== undefined && send.state !== "over") this.#answers.rejected(queue, send, refusal);
    } else if (queue.head !== send) {
      // An earlier send came back: that one goes first.
      handling.abandon();
    } else {
      this.#commit(queue, handling, result);
    }
    this.#passes.wake();
  }

  #commit(queue: SendQueue, handling: SendHandling, result: Json): void {
    const { send } = handling;
    const origin = handling.originCondition;
    if (origin !== undefined) handling.transaction.preconditions.push(origin);
    handling.seal(send.receipt(result));
    queue.remove(send);
    send.state = "committing";
    send.closure?.release();
    send.closure = undefined;
    queue.inFlight++;
    const commit = handling.commit();
    if (commit.rejection !== undefined) return this.#answers.answered(queue, handling, result, commit.rejection);
    whenOver(commit, (outcome) => this.#answers.answered(queue, handling, result, outcome));
  }
}
