/**
 * `on` with `run`: one delivery of the bus, whose handler calls the outside world and then sends the app a command of
 * its own.
 *
 * ```
 *   delivery ──> run ──result──> commit, a command under an id of event and subscriber ──> done
 *     ^           └──threw, timed out──> retried ──failed for good──> failed, likewise a command ──> dead letter
 *     └──the process ended: run again, commit answers from its receipt
 * ```
 * The command names the delivery; the result waits for it here, in memory, because a second `run` may return another
 * one. SPEC: A16-A19.
 */
import type { Event } from "../bus/event.ts";
import type { HandlerContext } from "../bus/handler.ts";
import type { Host } from "../host/host.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom, fromError } from "../message/error-data.ts";
import { causedBy } from "../message/lineage.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { Receipts } from "../work/receipts.ts";
import type { AnyEvent } from "./event-definition.ts";
import type { Steps } from "./on.ts";
import type { AppTx } from "./request.ts";

/** One of the two ends of a delivery: the command that it sends, and its handler. */
export interface StepCommand {
  readonly type: string;
  handle(data: unknown, tx: AppTx): unknown;
}

export interface StepParts {
  readonly host: Host;
  readonly receipts: Receipts;
  readonly subscriberId: string;
  readonly event: AnyEvent;
  readonly steps: Steps<never, unknown>;
  readonly timeoutMs: number;
  /** Types of the two commands. */
  readonly types: { readonly commit: string; readonly failed: string };
}

/** Sends a whole message to the loop. */
export type Request = (message: Message) => Promise<Message>;

/** A delivery that waits for its command. */
interface Waiting {
  readonly data: never;
  readonly outcome: unknown;
}

export class StepRuns {
  readonly #parts: StepParts;
  /** By the id of the command. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  get commands(): readonly StepCommand[] {
    const { steps, types } = this.#parts;
    const { commit, failed } = steps;
    return [
      ...(commit ? [this.#command(types.commit, ({ outcome, data }, tx) => commit(outcome, tx, data))] : []),
      ...(failed ? [this.#command(types.failed, ({ outcome, data }, tx) => failed(outcome as Failure, tx, data))] : []),
    ];
  }

  #command(type: string, end: (waiting: Waiting, tx: AppTx) => unknown): StepCommand {
    return {
      type,
      handle: (data, tx) => {
        const waiting = this.#waiting.get((data as { id?: string } | null)?.id ?? "");
        if (waiting === undefined) throw new Failure(409, `${type} is sent by the kernel after run; do not send it`);
        return end(waiting, tx);
      },
    };
  }

  /** Handles one delivery; its rejection is the delivery's failure. */
  async handle(event: Event, context: HandlerContext, request: Request): Promise<void> {
    const { steps, types } = this.#parts;
    const data = this.#parts.event.read(event.payload) as never;
    const isFirst = context.attempt === 1 && context.deaths === 0;
    if (!isFirst && (await this.#isCommitted(event))) return;
    const outcome = await this.#run(event, data, context);
    if (steps.commit) await this.#send(types.commit, event, { data, outcome }, request);
  }

  /** Ends a delivery that has failed for good. */
  async fail(event: Event, failure: HandlerFailure, request: Request): Promise<void> {
    const { steps, types } = this.#parts;
    if (!steps.failed || !this.#parts.event.fits(event.payload)) return;
    if (await this.#isCommitted(event)) return;
    const data = this.#parts.event.read(event.payload) as never;
    await this.#send(types.failed, event, { data, outcome: stepFailure(failure) }, request);
  }

  /** Whether `commit` has taken effect in an earlier delivery, whose process ended or whose answer was lost. */
  async #isCommitted(event: Event): Promise<boolean> {
    const { receipts, steps, types } = this.#parts;
    if (!steps.commit) return false;
    const known = await receipts.look({ kind: "command", id: this.#idOf(types.commit, event) });
    return known.kind === "handled";
  }

  #idOf(type: string, event: Event): string {
    return contentId([type, this.#parts.subscriberId, event.message.metadata.id]);
  }

  async #run(event: Event, data: never, { signal, attempt }: HandlerContext): Promise<unknown> {
    const { host, steps, timeoutMs, subscriberId } = this.#parts;
    const time = new AbortController();
    const { promise: tooLate, reject } = Promise.withResolvers<never>();
    const stop = () => reject(signal.reason);
    const timer = host.timer(timeoutMs, () => {
      const failure = new Failure(504, `${subscriberId}: run took longer than ${timeoutMs} ms`);
      reject(failure);
      time.abort(failure);
    });
    signal.addEventListener("abort", stop, { once: true });
    try {
      const idempotencyKey = contentId(["run", subscriberId, event.message.metadata.id]);
      const { type, metadata } = event.message;
      const publishedAtMs = metadata.timestamp;
      const both = AbortSignal.any([signal, time.signal]);
      return await Promise.race([
        steps.run(data, { idempotencyKey, signal: both, attempt, type, publishedAtMs }),
        tooLate,
      ]);
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  /** The id follows from event and subscriber: a delivery that comes again finds the receipt. */
  async #send(type: string, event: Event, waiting: Waiting, request: Request): Promise<void> {
    const { host } = this.#parts;
    const id = this.#idOf(type, event);
    this.#waiting.set(id, waiting);
    try {
      const metadata = { ...causedBy(event.message), id, timestamp: host.now() };
      const answer = await request({ kind: "command", type, data: { id }, metadata });
      if (answer.kind === "error") throw failureFrom(answer.data as ErrorData);
    } finally {
      this.#waiting.delete(id);
    }
  }
}

/** For the `failed` of a subscription: why its handler has failed for good. */
export function stepFailure({ kind, message, thrown }: HandlerFailure): Failure {
  if (kind === "died") return new Failure(500, message, { reason: "INTERRUPTED" });
  if (kind === "timeout") return new Failure(504, message);
  if (thrown === undefined) return new Failure(500, message);
  return thrown instanceof Failure ? thrown : failureFrom(fromError(thrown));
}
