/**
 * A real Worker as an actor. Inside the Worker, `serve` reports each handled message, so that its mailbox is bounded
 * like any other and events end with their handlers. It marks messages of `send`, for which the worker does not wait;
 * every other request counts as waited for. SPEC: L11, L31, L41, L89, U65-U67.
 *
 * ```
 *   silent ──its first word is that it serves──> serving: a message is handled when it says so
 *      └──any other word──> bare: a request is handled when it is answered, an event when it was posted
 *
 *   the handled message of a serving worker: running ──timeout──> aborting ──no report──> the worker is ended
 *                                               └──reported──────────┴──reported──> over
 * ```
 *
 *     spawn: () => workerActor(new URL("./hash-worker.ts", import.meta.url))      // in the capability
 *
 * Web Workers, as on Deno, Bun and in browsers. Worker threads of Node have the same function in
 * `src/adapters/node-worker.ts`.
 */

import type { Host, Timer } from "../host/host.ts";
import { Waiters } from "../host/waiters.ts";
import { WORKER_ABORT_MS } from "../limits.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { errorData, thrownText } from "../message/error-data.ts";
import { error } from "../message/lineage.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { WorkBoard, WorkEntry } from "../work/work-board.ts";
import type { ActorEvent, ActorListener, CapabilityActor } from "./capability.ts";
import type { Posted } from "./pending-request.ts";
import {
  abortOf,
  answeredBy,
  causeOf,
  type Handled,
  isAnswer,
  isHandled,
  isRequest,
  isSent,
  isWorkerSettled,
  SERVES,
} from "./worker-words.ts";

/** The part of a Worker that is used here; a Web Worker has it. */
export interface WorkerLike {
  postMessage(message: unknown): void;
  addEventListener(type: "message" | "error" | "messageerror", listener: (event: WorkerEvent) => void): void;
  terminate(): unknown;
}

export interface WorkerEvent extends ActorEvent {
  preventDefault?(): void;
}

/** The message that the worker handles. */
interface Current {
  readonly posted: Posted;
  readonly entry: WorkEntry | undefined;
  /** The timeout of its handler, or the wait for its report after the abort. */
  timer: Timer | undefined;
}

export class WorkerActor implements CapabilityActor {
  readonly #worker: WorkerLike;
  readonly #listeners: ActorListener[] = [];
  /** Messages that it was given and has not handled, in order. */
  #given: Posted[] = [];
  #manner: "silent" | "serving" | "bare" = "silent";
  /** Ids of the requests that it waits for. */
  readonly #asked = new Set<string>();
  readonly #idleWaiters = new Waiters();
  readonly #errorListeners: ActorListener[] = [];
  #board: WorkBoard | undefined;
  /** The capability, as the board lists it. */
  #name = "";
  #host: Host | undefined;
  /** 0: no limit. */
  #timeoutMs = 0;
  #current: Current | undefined;
  /** Entries of handlers that have timed out and still run. */
  readonly #leftBehind: WorkEntry[] = [];

  constructor(worker: WorkerLike) {
    this.#worker = worker;
    worker.addEventListener("message", (event) => this.#message(event));
  }

  get mailboxLength(): number {
    return this.#given.length;
  }

  watch(board: WorkBoard, name: string): void {
    this.#board = board;
    this.#name = name;
  }

  limitTime(host: Host, timeoutMs: number): void {
    this.#host = host;
    this.#timeoutMs = timeoutMs;
  }

  postMessage(message: Message): void {
    this.accept({ message, request: undefined, parcel: undefined });
  }

  accept(posted: Posted): void {
    const { message, parcel } = posted;
    this.#worker.postMessage(message);
    if (isAnswer(message)) this.#asked.delete(causationOf(message) ?? "");
    else if (this.#manner !== "bare" || isRequest(message)) this.#given.push(posted);
    else parcel?.ended();
    this.#follow();
  }

  awaits(request: string): boolean {
    return this.#asked.has(request);
  }

  addEventListener(type: "message" | "error" | "messageerror", listener: ActorListener): void {
    if (type === "message") this.#listeners.push(listener);
    else {
      if (type === "error") this.#errorListeners.push(listener);
      this.#worker.addEventListener(type, (event) => {
        // The loop gets the error; without `preventDefault`, some runtimes end the process.
        event.preventDefault?.();
        listener({ type, message: crashText(event), error: event.error });
      });
    }
  }

  async terminate(reason = "the actor was terminated"): Promise<void> {
    for (const { parcel } of this.#given.splice(0)) parcel?.ended(reason);
    this.#follow();
    for (const entry of this.#leftBehind.splice(0)) this.#board?.end(entry);
    this.#checkIdle();
    await this.#worker.terminate();
  }

  idle(): Promise<void> {
    if (this.#given.length === 0) return Promise.resolve();
    return this.#idleWaiters.wait();
  }

  #message(event: WorkerEvent): void {
    const said = event.data;
    if (said === SERVES) {
      this.#manner = "serving";
      if (this.#current !== undefined) this.#limit(this.#current);
      return;
    }
    if (this.#manner === "silent") this.#isBare();
    if (this.#manner === "serving" && isHandled(said)) return this.#isHandled(said.handled, said);
    if (this.#manner === "serving" && isWorkerSettled(said)) return this.#hasSettled(said.settled);
    if (isSent(said)) return this.#said(said[1]);
    if (isRequest(said)) this.#asked.add(said.metadata.id);
    this.#said(said);
    if (this.#manner === "bare") this.#isHandled(answeredBy(said));
  }

  /** Passes a message on, with the event that caused it. */
  #said(data: unknown, handled?: Posted): void {
    const cause = causeOf(data);
    const given = handled ?? (cause === undefined ? undefined : this.#given.find((one) => isOf(one, cause)));
    const parcel = given?.parcel;
    this.#tell({ type: "message", data, parcel });
  }

  /** It does not say when it has handled a message: an event is handled when it was posted. */
  #isBare(): void {
    this.#manner = "bare";
    const events = this.#given.filter(({ message }) => !isRequest(message));
    this.#given = this.#given.filter(({ message }) => isRequest(message));
    for (const { parcel } of events) parcel?.ended();
    this.#follow();
    this.#checkIdle();
  }

  /** The answer leaves when the message is off the board, so that its requester does not find it there. */
  #isHandled(id: string | undefined, { failed, isTimeout = false, answer }: Partial<Handled> = {}): void {
    const at = this.#given.findIndex((given) => isOf(given, id));
    if (at < 0) return;
    const [given] = this.#given.splice(at, 1);
    const { entry } = this.#current ?? {};
    if (isTimeout && entry !== undefined && this.#current?.posted === given) {
      this.#leftBehind.push(entry);
      this.#board?.leaveBehind(entry);
    }
    this.#follow();
    if (answer !== undefined) this.#said(answer, given);
    if (given?.parcel !== undefined) given.parcel.isTimeout = isTimeout;
    given?.parcel?.ended(failed);
    this.#checkIdle();
  }

  /** A handler that was left behind has ended. */
  #hasSettled(id: string): void {
    const at = this.#leftBehind.findIndex((entry) => entry.id === id);
    for (const entry of at < 0 ? [] : this.#leftBehind.splice(at, 1)) this.#board?.end(entry);
  }

  // The handled message ---------------------------------------------------------------------------------------------

  /** A worker handles its messages in their order: the first one is the one that it handles. */
  #follow(): void {
    const [posted] = this.#given;
    const before = this.#current;
    if (posted === before?.posted) return;
    before?.timer?.cancel();
    if (before?.entry !== undefined && !before.entry.isLeftBehind) this.#board?.end(before.entry);
    this.#current = undefined;
    if (posted === undefined) return;
    const { kind, type, metadata } = posted.message;
    const entryPoint = kind === "command" || kind === "query" ? kind : "event";
    const facts = { entryPoint, handler: this.#name, timeoutMs: this.#timeoutMs } as const;
    const entry = this.#board?.begin(facts, metadata.id, type);
    this.#current = { posted, entry, timer: undefined };
    if (this.#manner === "serving") this.#limit(this.#current);
  }

  /** The worker decides whether its handler was in time, because its report may be on its way. */
  #limit(current: Current): void {
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs === 0) return;
    const { id } = current.posted.message.metadata;
    this.#after(current, timeoutMs, () => {
      this.#worker.postMessage(abortOf(id, timeoutMs));
      // Two waits: if this thread was blocked during the first one, a report of the worker is read before the second.
      const half = WORKER_ABORT_MS / 2;
      this.#after(current, half, () => this.#after(current, half, () => this.#blocked(current)));
    });
  }

  #after(current: Current, delayMs: number, run: () => void): void {
    current.timer = this.#host?.timer(delayMs, run, { keepAlive: false });
  }

  /** A handler that blocks its thread cannot be aborted: the actor counts as crashed. */
  #blocked({ posted: { message } }: Current): void {
    const host = this.#host as Host;
    const failed = `the handler timed out after ${this.#timeoutMs} ms`;
    const answer = error(host, message, errorData(504, failed));
    this.#isHandled(message.metadata.id, { failed, isTimeout: true, answer });
    const reason = `the handler of ${message.type} blocks its thread: no reaction to the abort in ${WORKER_ABORT_MS} ms`;
    // The answer of a crash must not be before the one above, which goes through a lane.
    host.task(() => {
      for (const listener of this.#errorListeners) listener({ type: "error", message: reason });
    });
  }

  #tell(event: ActorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #checkIdle(): void {
    if (this.#given.length === 0) this.#idleWaiters.release();
  }
}

/** This runtime has no Web Workers. */
export class WorkerError extends MillraceError<"NO_WORKERS"> {
  override readonly name = "WorkerError";

  constructor(message: string, options?: ErrorOptions) {
    super("NO_WORKERS", message, options);
  }
}

/** Starts a Web Worker, a module, as an actor. */
export function workerActor(url: URL | string): WorkerActor {
  const { Worker } = globalThis as { Worker?: new (url: URL | string, options: { type: "module" }) => WorkerLike };
  if (!Worker) throw new WorkerError("this runtime has no Web Workers; on Node use nodeWorkerActor()");
  return new WorkerActor(new Worker(url, { type: "module" }));
}

/** The reason of a worker's crash, which some runtimes and errors do not give. */
function crashText({ message, error }: WorkerEvent): string {
  const text = error === undefined || error === null ? thrownText(message ?? "") : thrownText(error);
  return text.replace(/^(?:error: |Uncaught )/, "") || "it did not say why";
}

function isOf({ message }: Posted, id: string | undefined): boolean {
  return message.metadata.id === id;
}
