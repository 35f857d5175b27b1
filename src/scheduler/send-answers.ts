/**
 * Turns the store's answer to a handling into the one outcome of the send, and into the end of its launches. A handling
 * that is not committed cancels its launches. SPEC: I10, I11.
 *
 * | answer | effect |
 * |---|---|
 * | committed | handled; its launches are confirmed |
 * | its receipt exists | handled before, here or elsewhere; the outcome has that handling's result |
 * | its origin was not committed | dropped |
 * | stale read, earlier commit rolled back, store busy | again at its place in the queue, with pauses |
 * | unknown | the store is asked whether the commit landed |
 * | other rejections | failed for good |
 */

import type { Host } from "../host/host.ts";
import { WORK_WINDOW_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { isErasedResult } from "../store/erase.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import { pullStored } from "../store/stored-value.ts";
import type { Known } from "../work/receipts.ts";
import { type Next, Retries } from "../work/retries.ts";
import { verdictOn } from "../work/retry-table.ts";
import type { SendHandling } from "./handling.ts";
import type { Introspection } from "./introspection.ts";
import type { Background } from "./run-commits.ts";
import type { Send, SendFailure, SendOutcome, SendQueue } from "./send.ts";

export interface FailingSend {
  readonly reason: SendFailure;
  readonly message: string;
  readonly error?: unknown;
  readonly rejection?: Rejection;
}

export class SendAnswers {
  readonly #host: Host;
  readonly #introspection: Introspection;
  readonly #work: Background & { wake(): void };

  constructor(parts: { host: Host; introspection: Introspection; work: Background & { wake(): void } }) {
    this.#host = parts.host;
    this.#introspection = parts.introspection;
    this.#work = parts.work;
  }

  answered(queue: SendQueue, handling: SendHandling, result: Json, outcome: CommitOutcome): void {
    queue.inFlight--;
    if (outcome.kind === "committed") this.#handled(queue, handling, result);
    else if (verdictOn(outcome) === "ask") this.#ask(queue, handling, result, outcome);
    else {
      handling.lineage.fail(outcome.message);
      this.rejected(queue, handling.send, outcome);
    }
    this.#work.wake();
  }

  #handled(queue: SendQueue, { lineage, send }: SendHandling, result: Json): void {
    queue.lasted();
    lineage.confirm();
    if (send.isAwaited) return this.#end(queue, send, { kind: "handled", id: send.id, result });
    this.#introspection.over(send, "handled");
    this.#takeOut(queue, send);
    send.endUnheard(result);
  }

  /** The attempt's commit was rejected, or a commit that it depends on. */
  rejected(queue: SendQueue, send: Send, rejection: Rejection): void {
    if (send.origin?.state === "failed") return this.drop(queue, send, "origin-failed", send.origin.why);
    if (rejection.reason === "origin-not-committed") return this.drop(queue, send, "origin-failed", rejection.message);
    const verdict = verdictOn(rejection);
    if (verdict === "already") this.already(queue, send);
    else if (verdict === "again" || verdict === "ask") this.#again(queue, send, rejection);
    else this.fail(queue, send, { reason: "rejected", message: rejection.message, rejection });
  }

  /**
   * Commits the read set of a handler that threw. The throw counts as failure only if the reads validate, because
   * values of two moments may be inconsistent, and only if the send was not handled before, which may be the reason for
   * the throw. If the origin failed, the send is dropped.
   */
  threw(queue: SendQueue, handling: SendHandling, failed: () => void): void {
    const { send } = handling;
    queue.remove(send);
    send.state = "committing";
    queue.inFlight++;
    const { outcome } = handling.commitThrow();
    const decide = (answer: CommitOutcome) => {
      queue.inFlight--;
      if (send.origin?.state === "failed") this.drop(queue, send, "origin-failed", send.origin.why);
      else if (answer.kind === "committed") failed();
      else this.rejected(queue, send, answer);
      this.#work.wake();
    };
    this.#work.background(outcome.then(decide));
  }

  #again(queue: SendQueue, send: Send, rejection: Rejection): void {
    if (queue.closed) return this.drop(queue, send, "closed", "closed before it was handled");
    queue.requeue(send);
    const retries = this.#retriesOf(queue, send);
    // It depended on an earlier send, which is tried first anyway.
    if (rejection.reason === "fell-with" && !retries.isOver) return;
    this.#park(queue, send, retries.next(rejection, undefined), () => undefined);
  }

  /** The commit's outcome is unknown; the send keeps its place until the store has answered. */
  #ask(queue: SendQueue, handling: SendHandling, result: Json, rejection: Rejection): void {
    const { send, lineage } = handling;
    if (queue.closed) {
      lineage.fail(rejection.message);
      return this.#gaveUp(queue, send, rejection);
    }
    queue.requeue(send);
    const next = this.#retriesOf(queue, send).next(rejection, lineage.commit);
    this.#park(queue, send, next, ({ kind }) => {
      if (kind === "done") this.#handled(queue, handling, result);
      else lineage.fail(rejection.message);
    });
  }

  /** The send waits at its place until the next attempt may begin. */
  #park(queue: SendQueue, send: Send, next: Promise<Next>, tell: (next: Next) => void): void {
    queue.conflicted();
    send.wait = { kind: "retry" };
    const goOn = (how: Next) => {
      if (send.state === "over") return;
      tell(how);
      if (how.kind === "lost" || how.kind === "failed") this.#gaveUp(queue, send, how.rejection);
      if (send.wait?.kind === "retry") send.wait = undefined;
      this.#work.wake();
    };
    this.#work.background(next.then(goOn, (error: unknown) => this.failWith(queue, send, "gave-up", error)));
  }

  #gaveUp(queue: SendQueue, send: Send, rejection: Rejection): void {
    this.fail(queue, send, { reason: "gave-up", message: rejection.message, rejection });
  }

  #retriesOf({ replica }: SendQueue, send: Send): Retries {
    send.retries ??= new Retries({ host: this.#host, replica, windowMs: WORK_WINDOW_MS });
    return send.retries;
  }

  /** The receipt that was looked up before the handler is called. */
  known(queue: SendQueue, send: Send, known: Known): void {
    if (known.kind === "handled") this.#handledBefore(queue, send, known.value);
    else if (known.kind === "too-old") {
      const { rejection } = known;
      this.fail(queue, send, { reason: "rejected", message: rejection.message, rejection });
    }
  }

  // Ends
  // -----------------------------------------------------------------------------------------------------------------

  /** The send was handled before: its outcome has the result of its receipt. */
  already(queue: SendQueue, send: Send): void {
    this.#work.background(this.#readReceipt(queue, send));
  }

  async #readReceipt(queue: SendQueue, send: Send): Promise<void> {
    const { replica } = queue;
    let result: Json | undefined;
    try {
      await replica.catchUp();
      result = await pullStored(replica, receiptOf({ kind: "send", id: send.id }));
    } catch (error) {
      const message = `handled before, and the result cannot be read: ${thrownText(error)}`;
      return this.fail(queue, send, { reason: "load", message, error });
    }
    this.#handledBefore(queue, send, result);
  }

  #handledBefore(queue: SendQueue, send: Send, result: Json | undefined): void {
    // The receipt may have expired since the commit found it.
    const gone = result === undefined ? "is not stored any more" : isErasedResult(result) ? "was erased" : undefined;
    if (gone === undefined) this.#end(queue, send, { kind: "already", id: send.id, result: result ?? null });
    else this.fail(queue, send, { reason: "load", message: `handled before, and its result ${gone}` });
  }

  failWith(queue: SendQueue, send: Send, reason: SendFailure, error: unknown): void {
    this.fail(queue, send, { reason, error, message: thrownText(error) });
  }

  fail(queue: SendQueue, send: Send, failing: FailingSend): void {
    if (send.state === "over") return;
    const { reason, message, error } = failing;
    this.#introspection.mention(error ?? new Error(`send to ${send.stream} failed (${reason}): ${message}`));
    this.#end(queue, send, { kind: "failed", id: send.id, ...failing });
  }

  drop(queue: SendQueue, send: Send, reason: "origin-failed" | "no-handler" | "closed", message: string): void {
    this.#end(queue, send, { kind: "dropped", id: send.id, reason, message });
  }

  refuse(queue: SendQueue, send: Send, message: string): void {
    this.#end(queue, send, { kind: "refused", id: send.id, reason: "queue-full", message });
  }

  #end(queue: SendQueue, send: Send, outcome: SendOutcome): void {
    this.#introspection.over(send, outcome.kind);
    this.#takeOut(queue, send);
    try {
      send.end(outcome);
    } catch (error) {
      // An error of the callback must not stop the queue.
      this.#introspection.report(error, undefined);
    }
  }

  /** The send is over: the queue may go on. */
  #takeOut(queue: SendQueue, send: Send): void {
    // A committing send is in no queue, and a search would cost as much as the queue is long.
    if (send.state === "aside") send.stream.letGo(send);
    else if (send.state !== "committing") queue.remove(send);
    this.#work.wake();
  }
}
