/**
 * One attempt to handle a send. Writes to other spaces are transactions of their own, confirmed before the commit of
 * the handling (Scheduler v2, decision 11). The demand for the handler's inputs lasts while the send is at the head of
 * its queue. SPEC: I4, I10, I11.
 */
import { asyncContext } from "../host/async-context.ts";
import type { Json } from "../message/json.ts";
import type { Commit, Precondition } from "../store/commit.ts";
import { requireAbsent } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import { Attempt, type AttemptKind, type Demand } from "../work/attempt.ts";
import type { Send } from "./send.ts";
import type { RegisteredHandler } from "./stream-handler.ts";

export type End =
  | { readonly threw: false; readonly value: unknown }
  | { readonly threw: true; readonly error: unknown };

export class SendHandling extends Attempt {
  readonly send: Send;
  readonly handler: RegisteredHandler;
  readonly #session: string;
  readonly #run: number;
  /** Finds out which inputs the handler will read; its writes are dropped. */
  readonly isPreflight: boolean;

  constructor(kind: AttemptKind, send: Send, handler: RegisteredHandler, isPreflight = false) {
    const { label, failures, closure: demand, bornMs } = send;
    const { replica } = send.stream.queue;
    super(kind, { replica, number: failures + 1, label, demand, bornMs });
    this.send = send;
    this.handler = handler;
    this.#session = replica.session;
    this.#run = send.runs;
    this.isPreflight = isPreflight;
    this.holdsRest = true;
  }

  /** Computed on demand: most handlers need no id. */
  override get id(): string {
    return this.send.id;
  }

  /** Ids of its sends follow from it. A rerun after a conflict is the same attempt, and sends under other ids. */
  override get name(): string {
    return `${this.id} ${this.#session} ${this.#run}`;
  }

  /** Calls the handler, or its preflight, with the sent value. The pass has sealed the turn of plain code. */
  call(code: (value: Json, handling: SendHandling) => unknown): End {
    const { views } = this.kind;
    const outer = views.attempt;
    views.attempt = this;
    try {
      const value = asyncContext.run(this, () => code(this.send.value, this));
      this.mayEscape(value);
      return { threw: false, value };
    } catch (error) {
      return { threw: true, error };
    } finally {
      views.attempt = outer;
    }
  }

  protected override makeDemand(): Demand {
    this.send.closure ??= super.makeDemand();
    return this.send.closure;
  }

  /** The demand belongs to the send. */
  protected override releaseDemand(): void {}

  /** Whether its handler continues after an await. */
  override get isAwaited(): boolean {
    return this.send.stream.queue.running === this.send;
  }

  /** Undoes the attempt, as if the send had not been tried. */
  abandon(): void {
    this.abort("the attempt was abandoned");
    this.send.state = "queued";
    this.send.runs--;
  }

  /**
   * Commits only the read set of a handler that threw. The outcome tells whether the reads validate, and whether the
   * send was handled before.
   */
  commitThrow(): Commit {
    const origin = this.originCondition;
    const absent = requireAbsent(receiptOf({ kind: "send", id: this.send.id }));
    return this.commitReads("the handler threw", ...(origin === undefined ? [absent] : [absent, origin]));
  }

  /** The commit must follow that of the sender until that one is confirmed. */
  get originCondition(): Precondition | undefined {
    const { origin } = this.send;
    return origin?.state === "applied" && origin.commit ? { kind: "originCommitted", ...origin.commit } : undefined;
  }
}
