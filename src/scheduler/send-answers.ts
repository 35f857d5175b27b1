/**
 * What becomes of a handling when the store has answered: the one outcome of the send, and what happens to what it launched.
 *
 * | answer | what happens |
 * |---|---|
 * | committed | handled; what it launched is confirmed |
 * | its receipt is there | handled before, here or elsewhere: never again; the outcome carries that handling's result |
 * | its origin was not committed | dropped |
 * | a read has moved, the commit beneath fell, the store was busy | again, at its old place in the queue, within a time window with jittered pauses |
 * | nobody knows | the store is asked whether the commit is there |
 * | anything else | failed for good |
 *
 * Whatever is not committed cancels what that attempt launched. SPEC: I10, I11.
 */

import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { SEND_WINDOW_MS, STALE_BACKOFF_MAX_MS, STALE_BACKOFF_START_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { receiptOf } from "../store/receipt-name.ts";
import { type Rejection, retryRule } from "../store/rejection.ts";
import { pullStored } from "../store/stored-value.ts";
import type { Handling } from "./handling.ts";
import type { Introspection } from "./introspection.ts";
import { isCommitted } from "./lineage.ts";
import type { Background } from "./run-commits.ts";
import type { Send, SendFailure, SendOutcome } from "./send.ts";
import type { SendQueue } from "./send-queue.ts";

export interface Failing {
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

  answered(queue: SendQueue, handling: Handling, result: Json, outcome: CommitOutcome): void {
    queue.inFlight--;
    if (outcome.kind === "rejected" && outcome.class === "unknown") {
      this.#work.background(this.#findOut(queue, handling, result, outcome));
    } else if (outcome.kind === "rejected") {
      handling.lineage.fail(outcome.message);
      this.rejected(queue, handling.send, outcome);
    } else {
      this.#handled(queue, handling, result);
    }
    this.#work.wake();
  }

  #handled(queue: SendQueue, { lineage, send }: Handling, result: Json): void {
    queue.lasted();
    lineage.confirm();
    if (send.isAwaited) return this.#end(queue, send, { kind: "handled", id: send.id, result });
    this.#introspection.over(send, "handled");
    this.#takeOut(queue, send);
    send.endUnheard(result);
  }

  /** The attempt's commit was rejected, or one that it needed before it. */
  rejected(queue: SendQueue, send: Send, rejection: Rejection): void {
    if (send.origin?.state === "failed") return this.drop(queue, send, "origin-failed", send.origin.why);
    if (rejection.reason === "document-exists") return this.#already(queue, send);
    if (rejection.reason === "origin-not-committed") return this.drop(queue, send, "origin-failed", rejection.message);
    const isFinal = retryRule(rejection) === "never" || rejection.reason === "store-stopped";
    if (isFinal) this.fail(queue, send, { reason: "rejected", message: rejection.message, rejection });
    else this.#again(queue, send, rejection);
  }

  /**
   * A handler that threw has failed only if what it had read stands: values of two moments may not fit together, and a commit that it
   * stood on may fall. And only if the send was not handled before: then it may have thrown because of that. What fell with its origin was never sent.
   */
  threw(queue: SendQueue, handling: Handling, error: unknown): void {
    const { send } = handling;
    queue.remove(send);
    send.state = "committing";
    queue.inFlight++;
    const { outcome } = handling.commitReads("the handler threw");
    const decide = (answer: CommitOutcome) => {
      queue.inFlight--;
      if (send.origin?.state === "failed") this.drop(queue, send, "origin-failed", send.origin.why);
      else if (answer.kind === "committed") this.failWith(queue, send, "threw", error);
      else if (answer.class === "unknown") this.#again(queue, send, answer);
      else this.rejected(queue, send, answer);
      this.#work.wake();
    };
    this.#work.background(outcome.then(decide));
  }

  #again(queue: SendQueue, send: Send, rejection: Rejection): void {
    if (queue.closed) return this.drop(queue, send, "closed", "closed before it was handled");
    if (!this.#hasTime(queue, send, rejection)) return;
    queue.requeue(send);
    // It stood on another that comes before it: there is nothing to wait for but that one.
    if (rejection.reason === "fell-with") return;
    queue.conflicted();
    send.wait = { kind: "retry" };
    this.#work.background(this.#catchUp(queue, send).then(() => this.#resume(send)));
  }

  /** Whether it may be tried again; if not, that was its end. */
  #hasTime(queue: SendQueue, send: Send, rejection: Rejection): boolean {
    if (queue.closed) {
      this.fail(queue, send, { reason: "gave-up", message: rejection.message, rejection });
      return false;
    }
    const now = this.#host.monotonic();
    send.triesUntil ??= now + SEND_WINDOW_MS;
    if (now < send.triesUntil) return true;
    const message = `not committed after ${send.attempts} attempts in ${SEND_WINDOW_MS} ms: ${rejection.message}`;
    this.fail(queue, send, { reason: "gave-up", message, rejection });
    return false;
  }

  #resume(send: Send): void {
    if (send.wait?.kind === "retry") send.wait = undefined;
    this.#work.wake();
  }

  async #catchUp({ replica }: SendQueue, send: Send): Promise<void> {
    await this.#caughtUp(replica.catchUp());
    await replica.loadsSettled();
    const boundMs = Math.min(STALE_BACKOFF_START_MS * 2 ** (send.attempts - 1), STALE_BACKOFF_MAX_MS);
    await pause(this.#host, this.#host.random() * boundMs);
  }

  /** A feed that cannot be read now is no reason to stop: the next rejection says so again. */
  async #caughtUp(feed: Promise<void>): Promise<void> {
    await feed.catch((error: unknown) => this.#introspection.say(`the feed could not be read: ${thrownText(error)}`));
  }

  // No answer ------------------------------------------------------------------------------------------------------------

  /** Asks the store whether a commit is there that it gave no answer to; until then the send keeps its place. */
  async #findOut(queue: SendQueue, handling: Handling, result: Json, rejection: Rejection): Promise<void> {
    const { send, lineage } = handling;
    queue.conflicted();
    queue.requeue(send);
    send.wait = { kind: "retry" };
    while (this.#hasTime(queue, send, rejection)) {
      await this.#catchUp(queue, send);
      const isThere = lineage.commit !== undefined && (await isCommitted(handling.replica, lineage.commit));
      if (send.state === "over") return;
      if (isThere) return this.#handled(queue, handling, result);
      if (isThere === false) {
        lineage.fail(rejection.message);
        return this.#resume(send);
      }
      send.attempts++;
    }
    lineage.fail(rejection.message);
  }

  // Ends -----------------------------------------------------------------------------------------------------------------

  #already(queue: SendQueue, send: Send): void {
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
    // Its end may have come since the commit met it.
    const message = "handled before, and what that returned is not kept any more";
    if (result === undefined) return this.fail(queue, send, { reason: "load", message });
    this.#end(queue, send, { kind: "already", id: send.id, result });
  }

  failWith(queue: SendQueue, send: Send, reason: SendFailure, error: unknown): void {
    this.fail(queue, send, { reason, error, message: thrownText(error) });
  }

  fail(queue: SendQueue, send: Send, failing: Failing): void {
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
      // The callback's own affair; the queue goes on.
      this.#introspection.report(error, undefined);
    }
  }

  /** It is over: what stands behind it may go on. */
  #takeOut(queue: SendQueue, send: Send): void {
    // One on its way to the store stands in no queue, and looking for it costs as much as the queue is long.
    if (send.state === "aside") send.stream.letGo(send);
    else if (send.state !== "committing") queue.remove(send);
    this.#work.wake();
  }
}
