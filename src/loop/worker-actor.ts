/**
 * A real Worker as an actor, and the worker's side of it. The surface is the one that every actor has; what is added is what the worker has
 * not handled yet, so that its mailbox is bounded like any other: `serve` says after each message that it is done. It also says
 * of what it has put into the loop by `send` that it waits for no answer; any other request of it counts as waited for. What cannot be
 * cloned does not leave a worker, and is refused there as the loop would refuse it here. SPEC: L11, L31, L41.
 *
 * ```
 *   silent ──its first word is that it serves──> serving: a message is handled when it says so
 *      └──any other word──> bare: a request is handled when it is answered, an event when it was taken
 * ```
 *
 *     spawn: () => workerActor(new URL("./hash-worker.ts", import.meta.url))      // in the capability
 *     serve({ queries: { "Hash.Of": { handle: (data) => hash(data) } } })         // in hash-worker.ts
 *
 * Web Workers, as on Deno, Bun and in browsers. Worker threads of Node have the same two functions in `src/adapters/node-worker.ts`.
 */
import { systemHost } from "../host/system-host.ts";
import { causationOf, checkMessage, isId, type Message, type Metadata } from "../message/envelope.ts";
import { errorData, Failure, thrownText } from "../message/error-data.ts";
import { cloneJson } from "../message/json-copy.ts";
import type { ActorEvent, ActorListener, CapabilityActor } from "./capability.ts";
import { type CapabilityDefinition, dispatch, requireHandlers } from "./define-capability.ts";
import { HandledCount } from "./handled-count.ts";
import { MadeMessageEvent, MailboxActor } from "./mailbox-actor.ts";

/** What is needed of a Worker; a Web Worker has it. */
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

/** Sent by `serve` before anything else; no message of anybody. */
const SERVES = "millrace:serves";
/** Sent by it after each message that it has handled. */
const HANDLED = "millrace:handled";
/** Before a message that `serve` was given by `send`. */
const SENT = "millrace:sent";

export class WorkerActor implements CapabilityActor {
  readonly #worker: WorkerLike;
  readonly #listeners: ActorListener[] = [];
  /** What it was given and has not handled, in order. */
  #given: { readonly id: string; readonly isRequest: boolean }[] = [];
  #manner: "silent" | "serving" | "bare" = "silent";
  /** Ids of the requests that it waits for. */
  readonly #asked = new Set<string>();
  #idleWaiters: (() => void)[] = [];
  readonly #handled = new HandledCount();

  constructor(worker: WorkerLike) {
    this.#worker = worker;
    worker.addEventListener("message", (event) => this.#message(event));
  }

  get mailboxLength(): number {
    return this.#given.length;
  }

  postMessage(message: Message): void {
    this.#worker.postMessage(message);
    if (isAnswer(message)) this.#asked.delete(causationOf(message) ?? "");
    else if (this.#manner !== "bare" || isRequest(message))
      this.#given.push({ id: message.metadata.id, isRequest: isRequest(message) });
  }

  awaits(request: string): boolean {
    return this.#asked.has(request);
  }

  addEventListener(type: "message" | "error" | "messageerror", listener: ActorListener): void {
    if (type === "message") this.#listeners.push(listener);
    else {
      this.#worker.addEventListener(type, (event) => {
        // The loop hears of it; where nobody is said to have, some runtimes end the process.
        event.preventDefault?.();
        listener({ type, message: crashText(event), error: event.error });
      });
    }
  }

  async terminate(): Promise<void> {
    this.#given = [];
    this.#checkIdle();
    this.#handled.end();
    await this.#worker.terminate();
  }

  idle(): Promise<void> {
    if (this.#given.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  handled(): Promise<void> {
    // Only events are waited for so, and a bare one has handled those it has.
    return this.#handled.after(this.#manner === "bare" ? 0 : this.#given.length);
  }

  #message(event: WorkerEvent): void {
    const said = event.data;
    if (said === SERVES) {
      this.#manner = "serving";
      return;
    }
    if (this.#manner === "silent") this.#isBare();
    if (said === HANDLED) return this.#isHandled(0);
    if (isSent(said)) return this.#tell({ type: "message", data: said[1] });
    if (isRequest(said)) this.#asked.add(said.metadata.id);
    this.#tell(event);
    if (this.#manner === "bare") this.#isHandled(this.#given.findIndex(({ id }) => id === answeredBy(said)));
  }

  /** It does not say what it has handled: whoever waits for that need not wait any longer. */
  #isBare(): void {
    this.#manner = "bare";
    this.#given = this.#given.filter((given) => given.isRequest);
    this.#handled.end();
    this.#checkIdle();
  }

  #isHandled(at: number): void {
    if (this.#given[at] === undefined) return;
    this.#given.splice(at, 1);
    this.#handled.add();
    this.#checkIdle();
  }

  #tell(event: ActorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #checkIdle(): void {
    if (this.#given.length === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}

/** This runtime has no Web Workers. */
export class WorkerError extends Error {
  override readonly name = "WorkerError";
  readonly code = "NO_WORKERS";
}

/** Starts a Web Worker, a module, as an actor. */
export function workerActor(url: URL | string): WorkerActor {
  const { Worker } = globalThis as { Worker?: new (url: URL | string, options: { type: "module" }) => WorkerLike };
  if (!Worker) throw new WorkerError("this runtime has no Web Workers; on Node use nodeWorkerActor()");
  return new WorkerActor(new Worker(url, { type: "module" }));
}

export type WorkerHandlers = Omit<CapabilityDefinition, "description">;

/** Inside a worker: handles what is posted, one message at a time. */
export function serve(handlers: WorkerHandlers, port: WorkerPort = webPort()): void {
  const definition = { description: "", ...handlers };
  requireHandlers(definition);
  port.postMessage(SERVES);
  const actor = new MailboxActor(systemHost(), (message, context) => dispatch(definition, message, context));
  actor.onmessage = (event) => {
    try {
      port.postMessage(event instanceof MadeMessageEvent ? event.data : [SENT, event.data]);
    } catch (thrown) {
      // It is the end of this message alone: what escaped from here would end the worker, and with it all that it has in hand.
      notCloned(event, thrown, port);
    }
  };
  port.onMessage((data) => {
    const message = data as Message;
    actor.postMessage(message);
    if (isAnswer(message)) return;
    // Behind what the handling has come to: that an event failed is known before it is over.
    void actor.handled().then(() => port.postMessage(HANDLED));
  });
}

/** What an actor has said cannot be cloned: whoever waits for it is told, or else who said it. */
function notCloned(event: ActorEvent, thrown: unknown, port: WorkerPort): void {
  const reason = whyNotCloned(event.data, thrown);
  if (!(event instanceof MadeMessageEvent)) throw new Failure(500, `not sent: ${reason}`);
  const { kind, type, metadata } = event.data;
  if (kind === "reply" || kind === "error") {
    const data = errorData(500, `the worker gave an invalid answer: ${reason}`);
    port.postMessage({ kind: "error", type, data, metadata: cleanMetadata(metadata) });
  } else event.refused = new Failure(500, kind === "event" ? reason : `not sent: ${reason}`);
}

/** In the words of the loop: the runtime's own show the source of a function, and no place. */
function whyNotCloned(said: unknown, thrown: unknown): string {
  try {
    const checked = checkMessage(said);
    return checked.kind === "refused" ? checked.message : `it cannot be cloned: ${thrownText(thrown)}`;
  } catch (again) {
    // A proxy can refuse to be looked at as well.
    return `it cannot be cloned: ${thrownText(again)}`;
  }
}

/** A handler may have tampered with the message it answers, whose metadata are in the answer: then no more of them than what it answers. */
function cleanMetadata(metadata: Metadata): Metadata {
  const clone = cloneJson(metadata);
  if (clone.kind === "clone") return clone.value as Metadata;
  const { id, timestamp, causation } = metadata;
  return { id, timestamp, ...(isId(causation) ? { causation } : {}) };
}

/** Why a worker has crashed, which some runtimes and some errors say nothing of. */
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

/** A worker may say anything; whether this is a message is judged where it is routed. */
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
