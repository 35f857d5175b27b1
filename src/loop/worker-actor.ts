/**
 * A real Worker as an actor, and the worker's side of it. `serve` answers `{ handled: id, failed? }` for each message,
 * so that the mailbox is bounded like any other and events end with their handlers. It marks messages of `send`, for
 * which the worker does not wait; every other request counts as waited for. A value that cannot be cloned does not
 * leave a worker, and is refused there as the loop would refuse it here. SPEC: L11, L31, L41, L89.
 *
 * ```
 *   silent ──its first word is that it serves──> serving: a message is handled when it says so
 *      └──any other word──> bare: a request is handled when it is answered, an event when it was posted
 * ```
 *
 *     spawn: () => workerActor(new URL("./hash-worker.ts", import.meta.url))      // in the capability
 *     serve({ queries: { "Hash.Of": { handle: (data) => hash(data) } } })         // in hash-worker.ts
 *
 * Web Workers, as on Deno, Bun and in browsers. Worker threads of Node have the same two functions in
 * `src/adapters/node-worker.ts`.
 */

import { systemHost } from "../host/system-host.ts";
import { causationOf, checkMessage, isId, type Message, type Metadata } from "../message/envelope.ts";
import { errorData, Failure, thrownText } from "../message/error-data.ts";
import { cloneJson } from "../message/json-copy.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { WorkBoard, WorkEntry } from "../work/work-board.ts";
import type { ActorEvent, ActorListener, CapabilityActor, Posted } from "./capability.ts";
import { type CapabilityDefinition, dispatch, requireHandlers } from "./capability-definition.ts";
import { MadeMessageEvent, MailboxActor } from "./mailbox-actor.ts";
import { Parcel, type ParcelFailure } from "./parcel.ts";

/** The part of a Worker that is used here; a Web Worker has it. */
export interface WorkerLike {
  postMessage(message: unknown): void;
  addEventListener(type: "message" | "error" | "messageerror", listener: (event: WorkerEvent) => void): void;
  terminate(): unknown;
}

export interface WorkerEvent extends ActorEvent {
  preventDefault?(): void;
}

/** The other end, inside the worker. */
export interface WorkerPort {
  postMessage(message: unknown): void;
  onMessage(listener: (data: unknown) => void): void;
}

/** The first message of `serve`. */
const SERVES = "millrace:serves";
/** Marks a message that a handler gave to `send`. */
const SENT = "millrace:sent";

/** The message of `serve` after each handled message. */
interface Handled {
  readonly handled: string;
  /** Why the handler of an event failed. */
  readonly failed?: string;
}

export class WorkerActor implements CapabilityActor {
  readonly #worker: WorkerLike;
  readonly #listeners: ActorListener[] = [];
  /** Messages that it was given and has not handled, in order. */
  #given: Posted[] = [];
  #manner: "silent" | "serving" | "bare" = "silent";
  /** Ids of the requests that it waits for. */
  readonly #asked = new Set<string>();
  #idleWaiters: (() => void)[] = [];
  #board: WorkBoard | undefined;
  /** The capability, as the board lists it. */
  #name = "";
  /** The message that the worker handles, and its entry on the board. */
  #listed: { readonly posted: Posted; readonly entry: WorkEntry } | undefined;

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

  postMessage(message: Message): void {
    this.accept({ message, request: undefined, parcel: undefined });
  }

  accept(posted: Posted): void {
    const { message, parcel } = posted;
    this.#worker.postMessage(message);
    if (isAnswer(message)) this.#asked.delete(causationOf(message) ?? "");
    else if (this.#manner !== "bare" || isRequest(message)) this.#given.push(posted);
    else parcel?.ended();
    this.#list();
  }

  awaits(request: string): boolean {
    return this.#asked.has(request);
  }

  addEventListener(type: "message" | "error" | "messageerror", listener: ActorListener): void {
    if (type === "message") this.#listeners.push(listener);
    else {
      this.#worker.addEventListener(type, (event) => {
        // The loop gets the error; without `preventDefault`, some runtimes end the process.
        event.preventDefault?.();
        listener({ type, message: crashText(event), error: event.error });
      });
    }
  }

  async terminate(reason = "the actor was terminated"): Promise<void> {
    for (const { parcel } of this.#given.splice(0)) parcel?.ended(reason);
    this.#list();
    this.#checkIdle();
    await this.#worker.terminate();
  }

  idle(): Promise<void> {
    if (this.#given.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  #message(event: WorkerEvent): void {
    const said = event.data;
    if (said === SERVES) {
      this.#manner = "serving";
      return;
    }
    if (this.#manner === "silent") this.#isBare();
    if (this.#manner === "serving" && isHandledWord(said)) return this.#isHandled(said.handled, said.failed);
    if (isSent(said)) return this.#said(said[1]);
    if (isRequest(said)) this.#asked.add(said.metadata.id);
    this.#said(said);
    if (this.#manner === "bare") this.#isHandled(answeredBy(said));
  }

  /** Passes a message on, with the event that caused it. */
  #said(data: unknown): void {
    const cause = causeOf(data);
    const parcel = cause === undefined ? undefined : this.#given.find((given) => isOf(given, cause))?.parcel;
    this.#tell({ type: "message", data, parcel });
  }

  /** It does not say when it has handled a message: an event is handled when it was posted. */
  #isBare(): void {
    this.#manner = "bare";
    const events = this.#given.filter(({ message }) => !isRequest(message));
    this.#given = this.#given.filter(({ message }) => isRequest(message));
    for (const { parcel } of events) parcel?.ended();
    this.#list();
    this.#checkIdle();
  }

  #isHandled(id: string | undefined, failure?: string): void {
    const at = this.#given.findIndex((given) => isOf(given, id));
    if (at < 0) return;
    const [given] = this.#given.splice(at, 1);
    given?.parcel?.ended(failure);
    this.#list();
    this.#checkIdle();
  }

  /** A worker handles its messages in their order: the first one is the one that it handles. */
  #list(): void {
    const board = this.#board;
    const [posted] = this.#given;
    if (board === undefined || posted === this.#listed?.posted) return;
    if (this.#listed !== undefined) board.end(this.#listed.entry);
    this.#listed = undefined;
    if (posted === undefined) return;
    const { kind, type, metadata } = posted.message;
    const entryPoint = kind === "command" || kind === "query" ? kind : "event";
    const entry = board.begin({ entryPoint, handler: this.#name, timeoutMs: 0 }, metadata.id, type);
    this.#listed = { posted, entry };
  }

  #tell(event: ActorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #checkIdle(): void {
    if (this.#given.length === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
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

/** The handlers that `serve` runs in a worker. */
export type WorkerHandlers = Omit<CapabilityDefinition, "description">;

/** Inside a worker: handles posted messages, one at a time. */
export function serve(handlers: WorkerHandlers, port: WorkerPort = webPort()): void {
  const definition = { description: "", ...handlers };
  requireHandlers(definition);
  port.postMessage(SERVES);
  const actor = new MailboxActor(systemHost(), (message, context) => dispatch(definition, message, context));
  actor.onmessage = (event) => {
    try {
      port.postMessage(event instanceof MadeMessageEvent ? event.data : [SENT, event.data]);
    } catch (thrown) {
      // Only this message fails: an escaped error would end the worker with all its messages.
      notCloned(event, thrown, port);
    }
  };
  port.onMessage((data) => {
    const message = data as Message;
    if (isAnswer(message)) return actor.postMessage(message);
    const { id } = message.metadata;
    const over = (failure: ParcelFailure | undefined) =>
      port.postMessage({ handled: id, ...(failure && { failed: failure.reason }) } satisfies Handled);
    actor.accept({ message, request: undefined, parcel: new Parcel(message, over) });
  });
}

/** An emission cannot be cloned: its receiver gets an error, or else the handler. */
function notCloned(event: ActorEvent, thrown: unknown, port: WorkerPort): void {
  const reason = whyNotCloned(event.data, thrown);
  if (!(event instanceof MadeMessageEvent)) throw new Failure(500, `not sent: ${reason}`);
  const { kind, type, metadata } = event.data;
  if (kind === "reply" || kind === "error") {
    const data = errorData(500, `the worker gave an invalid answer: ${reason}`);
    port.postMessage({ kind: "error", type, data, metadata: cleanMetadata(metadata) });
  } else event.refused = new Failure(500, kind === "event" ? reason : `not sent: ${reason}`);
}

/** In the words of the loop, because the runtime's message shows the source of a function and no place. */
function whyNotCloned(said: unknown, thrown: unknown): string {
  try {
    const checked = checkMessage(said);
    return checked.kind === "refused" ? checked.message : `it cannot be cloned: ${thrownText(thrown)}`;
  } catch (again) {
    // A proxy can refuse to be looked at as well.
    return `it cannot be cloned: ${thrownText(again)}`;
  }
}

/**
 * A handler may have changed the message that it answers, whose metadata are in the answer: then only the checked
 * fields are kept.
 */
function cleanMetadata(metadata: Metadata): Metadata {
  const clone = cloneJson(metadata);
  if (clone.kind === "clone") return clone.value as Metadata;
  const { id, timestamp, causation } = metadata;
  return { id, timestamp, ...(isId(causation) ? { causation } : {}) };
}

/** The reason of a worker's crash, which some runtimes and errors do not give. */
function crashText({ message, error }: WorkerEvent): string {
  const text = error === undefined || error === null ? thrownText(message ?? "") : thrownText(error);
  return text.replace(/^(?:error: |Uncaught )/, "") || "it did not say why";
}

/** Answers go past the worker's mailbox too. */
function isAnswer({ kind }: Message): boolean {
  return kind === "reply" || kind === "error";
}

function isSent(said: unknown): said is readonly [typeof SENT, unknown] {
  return Array.isArray(said) && said[0] === SENT;
}

function isHandledWord(said: unknown): said is Handled {
  return typeof (said as Partial<Handled> | null)?.handled === "string";
}

function isOf({ message }: Posted, id: string | undefined): boolean {
  return message.metadata.id === id;
}

/** The id of the message that caused this one, if it is a message. */
function causeOf(said: unknown): string | undefined {
  const causation = (said as Partial<Message> | null | undefined)?.metadata?.causation;
  return typeof causation === "string" ? causation : undefined;
}

/** A worker may emit any value; the router checks whether it is a message. */
function isRequest(said: unknown): said is Message {
  const { kind, metadata } = (said ?? {}) as Partial<Message>;
  return (kind === "command" || kind === "query") && typeof metadata?.id === "string";
}

/** The id of the request that this answers, where it is an answer. */
function answeredBy(said: unknown): string | undefined {
  const { kind, metadata } = (said ?? {}) as Partial<Message>;
  return kind === "reply" || kind === "error" ? (metadata?.causation ?? undefined) : undefined;
}

/** The worker's own global scope. */
function webPort(): WorkerPort {
  const scope = globalThis as never as {
    postMessage(message: unknown): void;
    addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  };
  return {
    postMessage: (message) => scope.postMessage(message),
    onMessage: (listener) => scope.addEventListener("message", ({ data }) => listener(data)),
  };
}
