/**
 * Runs the handler of the send at the head of a queue (Scheduler v2 §7.5):
 *
 * ```
 *   head ─> origin confirmed? ─> handler there? ─> preflight ─> presync ─> attempt ─> other spaces ─> commit ─> answers
 *             └────────────────────────┴───────────────┴────────────┴─ abandoned ┘
 *                              waits at the head; no send overtakes it
 * ```
 * A send that waited starts again with the first step, which costs little.
 */
import type { Host } from "../host/host.ts";
import { HANDLER_TIMEOUT_MS, SENDS_ASIDE_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { isWithin, labelOf } from "../store/label.ts";
import { refusal } from "../store/label-checks.ts";
import type { Replica } from "../store/replica.ts";
import type { AttemptKind, Home, Unready, Views } from "../work/attempt.ts";
import { endOf, isThenable } from "../work/handler-call.ts";
import { Receipts } from "../work/receipts.ts";
import { refusalOf } from "../work/refusal.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { Closure, type ClosureParts } from "./closure.ts";
import { type End, SendHandling } from "./handling.ts";
import type { Introspection } from "./introspection.ts";
import type { Background } from "./run-commits.ts";
import type { Send, SendQueue, Wait } from "./send.ts";
import type { SendAnswers } from "./send-answers.ts";
import { SendCommit } from "./send-commit.ts";
import { SendFailures } from "./send-failures.ts";
import type { RegisteredHandler } from "./stream-handler.ts";

/** Loads the piece that registers a stream's handler. Undefined if there is no piece to load. */
export type HandlerLoader = (stream: string) => Promise<unknown> | undefined;

/** Begins a pass with a new run budget for every node: each send is a change from outside. */
export interface Passes {
  fresh(replica: Replica): void;
  wake(): void;
}

interface DispatchParts extends ClosureParts {
  readonly host: Host;
  readonly views: Views;
}

export class Dispatch {
  handlerLoader: HandlerLoader | undefined;
  /** Lists the running handlers, if a kernel has a list. */
  board: WorkBoard | undefined;
  readonly #failures: SendFailures;
  readonly #parts: DispatchParts;
  readonly #introspection: Introspection;
  readonly #answers: SendAnswers;
  readonly #commit: SendCommit;
  readonly #passes: Passes;

  constructor(
    parts: DispatchParts & {
      introspection: Introspection;
      answers: SendAnswers;
      passes: Passes;
      background: Background;
    },
  ) {
    this.#parts = parts;
    this.#introspection = parts.introspection;
    this.#answers = parts.answers;
    this.#commit = new SendCommit(parts.answers, parts.passes);
    this.#passes = parts.passes;
    const { host, answers, passes, background } = parts;
    const kindOf = (send: Send): AttemptKind => ({ ...this.#kindOf(send, "abandon"), otherSpaces: "read" });
    this.#failures = new SendFailures({ host, answers, passes, background, kindOf, board: () => this.board });
  }

  /** Advances the head as far as possible; true if the queue moved on. */
  advance(queue: SendQueue): boolean {
    if (queue.running !== undefined || queue.isAhead || queue.hasRollback) return false;
    queue.returnDue();
    const send = queue.head;
    if (send === undefined) return false;
    // Every other wait is cleared by the component that set it.
    if (send.wait !== undefined && send.wait.kind !== "nodes") return false;
    if (send.origin?.state === "failed") {
      this.#answers.drop(queue, send, "origin-failed", send.origin.why);
      return true;
    }
    send.wait = this.#originOf(send);
    if (send.wait !== undefined) return false;
    if (send.mayBeKnown) return this.#look(queue, send);
    const { handler } = send.stream;
    if (handler === undefined) return this.#findHandler(queue, send);
    if (handler.clearance !== undefined && !isWithin(send.label, handler.clearance)) {
      this.#answers.failWith(queue, send, "threw", refusal(handler.name, "the sent value"));
      return true;
    }
    if (handler.preflight !== undefined && !this.#preflight(queue, send, handler, handler.preflight))
      return send.state === "over";
    if (handler.presync !== undefined && !send.synced) return this.#presync(send, handler.presync);
    return this.#attempt(queue, send, handler);
  }

  /** If the caller gave the send's id, a receipt may exist. Then it is the outcome, and no handler is called. */
  #look(queue: SendQueue, send: Send): boolean {
    send.wait = { kind: "receipt" };
    const looked = Receipts.of(queue.replica, this.#parts.host).look({ kind: "send", id: send.id });
    Promise.resolve(looked).then(
      (known) => {
        if (send.state !== "queued") return;
        send.mayBeKnown = false;
        this.#answers.known(queue, send, known);
        this.#resume(send, "receipt");
      },
      (error: unknown) => this.#fail(queue, send, "load", error),
    );
    return false;
  }

  #originOf({ origin, stream }: Send): Wait | undefined {
    if (origin === undefined || origin.state === "confirmed") return undefined;
    // Within one space, the store commits them in order.
    return origin.state === "applied" && origin.replica === stream.queue.replica ? undefined : { kind: "origin" };
  }

  #findHandler(queue: SendQueue, send: Send): boolean {
    const { closed, link } = send.stream;
    if (closed !== undefined) {
      this.#answers.drop(queue, send, "closed", closed);
      return true;
    }
    const loading = this.handlerLoader?.(link);
    if (loading === undefined) {
      this.#setAside(queue, send);
      return true;
    }
    send.wait = { kind: "handler-load" };
    loading.then(
      () => {
        if (send.stream.handler === undefined && send.state === "queued") {
          this.#answers.drop(queue, send, "no-handler", `${send.stream} has no handler`);
        }
        this.#resume(send, "handler-load");
      },
      (error: unknown) => this.#fail(queue, send, "load", error),
    );
    return false;
  }

  /** A handler may be registered later or never: the send waits outside of the queue and does not block it. */
  #setAside(queue: SendQueue, send: Send): void {
    const { stream } = send;
    if (queue.aside >= SENDS_ASIDE_MAX) {
      const message = `${stream} has no handler, and ${SENDS_ASIDE_MAX} sends of its space wait for handlers already`;
      return this.#answers.refuse(queue, send, message);
    }
    if (stream.asideCount === 0) this.#introspection.say(`${stream} has no handler; its sends wait`);
    queue.remove(send);
    stream.setAside(send);
  }

  // Before the handler
  // -------------------------------------------------------------------------------------------------

  /** Brings up to date the inputs that the handler will read; false if the send waits or has failed. */
  #preflight(queue: SendQueue, send: Send, handler: RegisteredHandler, read: (value: Json) => unknown): boolean {
    const look = new SendHandling(this.#kindOf(send, "go-on"), send, handler, true);
    const end = look.call(read);
    look.abort("a preflight only looks");
    if (look.unready !== undefined) this.#park(queue, send, look.unready);
    else if (end.threw) this.#fail(queue, send, "preflight", end.error);
    else if (look.missing.size > 0) this.#park(queue, send, { kind: "load", missing: look.missing });
    else return true;
    return false;
  }

  #presync(send: Send, sync: (value: Json) => Promise<unknown>): boolean {
    send.wait = { kind: "presync" };
    const done = () => {
      send.synced = true;
      this.#resume(send, "presync");
    };
    const failed = (error: unknown) => {
      this.#introspection.report(error, undefined);
      done();
    };
    new Promise((resolve) => resolve(sync(send.value))).then(done, failed);
    return false;
  }

  #park(queue: SendQueue, send: Send, unready: Unready): void {
    send.wait = unready;
    if (unready.kind !== "load") return;
    const missing = [...unready.missing];
    send.needs(missing);
    void this.#awaitLoads(queue, send, missing);
  }

  async #awaitLoads(queue: SendQueue, send: Send, missing: readonly Home[]): Promise<void> {
    await Promise.all(missing.map(({ replica }) => replica.loadsSettled()));
    const failed = missing.find(({ document }) => document.state !== "loaded" && document.loadError !== undefined);
    if (failed) this.#fail(queue, send, "load", failed.document.loadError);
    else this.#resume(send, "load");
  }

  #resume(send: Send, from: Wait["kind"]): void {
    if (send.wait?.kind === from) send.wait = undefined;
    this.#passes.wake();
  }

  // The handler
  // ----------------------------------------------------------------------------------------------------------

  /** The kind of a handler's attempts; a preflight continues if a document is missing. */
  #kindOf({ stream }: Send, onMissing: AttemptKind["onMissing"]): AttemptKind {
    const { name = "a handler", clearance } = stream.handler ?? {};
    const { views, host } = this.#parts;
    const demand = () => new Closure(this.#parts, stream);
    const of = clearance === undefined ? {} : { clearance: labelOf(clearance) };
    return { views, host, name, ...of, demand, onMissing, onBehind: "abandon", otherSpaces: "write" };
  }

  #attempt(queue: SendQueue, send: Send, handler: RegisteredHandler): boolean {
    send.runs++;
    send.state = "running";
    this.#passes.fresh(queue.replica);
    handler.kind ??= this.#kindOf(send, "abandon");
    const handling = new SendHandling(handler.kind, send, handler);
    const end = handling.call(handler.run);
    if (end.threw || !isThenable(end.value)) return this.#ended(queue, handling, end);
    queue.running = send;
    this.#parts.runner.selfWaits.refuse(handling, String(send.stream));
    void this.#endsLater(queue, handling, end.value, handler.timeoutMs ?? HANDLER_TIMEOUT_MS);
    return true;
  }

  async #endsLater(
    queue: SendQueue,
    handling: SendHandling,
    promise: PromiseLike<unknown>,
    timeoutMs: number,
  ): Promise<void> {
    const { send } = handling;
    const { host } = this.#parts;
    const message = { type: "send", metadata: { id: send.id } };
    const facts = { entryPoint: "stream", handler: String(send.stream), timeoutMs, message } as const;
    // A stream's handler does not keep the process alive, so its timeout does not either.
    const end = await endOf(promise, { ...facts, host, cancellable: handling, board: this.board, keepAlive: false });
    queue.running = undefined;
    if (end.kind === "timeout") this.#timedOut(queue, handling, end.error);
    else if (end.kind === "threw") this.#ended(queue, handling, { threw: true, error: end.error });
    else this.#ended(queue, handling, { threw: false, value: end.value });
    this.#passes.wake();
  }

  #timedOut(queue: SendQueue, handling: SendHandling, error: Error): void {
    const { send } = handling;
    if (send.state === "over") return;
    queue.remove(send);
    send.state = "committing";
    this.#failures.failed(queue, handling, "timeout", error);
  }

  /** True if the queue moved on. */
  #ended(queue: SendQueue, handling: SendHandling, end: End): boolean {
    const { send, unready } = handling;
    handling.end();
    send.bornMs = handling.bornMs;
    const refused = end.threw ? undefined : refusalOf(end.value, handling.refusal);
    if (send.state === "over") {
      handling.abort("the send was dropped while its handler ran");
    } else if (unready !== undefined) {
      handling.abandon();
      this.#park(queue, send, unready);
      return false;
    } else if (queue.head !== send) {
      // An earlier send came back while this handler ran: that send goes first (I4).
      handling.abandon();
    } else if (end.threw || refused !== undefined) {
      const error = end.threw ? end.error : refused;
      this.#answers.threw(queue, handling, () => this.#failures.failed(queue, handling, "threw", error));
    } else {
      this.#commit.seal(queue, handling, end.value);
    }
    return true;
  }

  #fail(queue: SendQueue, send: Send, reason: "threw" | "preflight" | "load", error: unknown): void {
    this.#answers.failWith(queue, send, reason, error);
    this.#passes.wake();
  }
}
