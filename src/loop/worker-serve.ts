/**
 * The worker's side of a real Worker as an actor: handles posted messages one at a time, and reports each of them.
 * When it gets the abort of a message, it leaves the handler behind, as an actor in the main thread does: the signal
 * of the handler aborts, the answer is 504, and later messages of the handler are refused. A value that cannot be
 * cloned is refused here, with the texts of the loop. SPEC: L31, L221, U66.
 *
 *     serve({ queries: { "Hash.Of": { handle: (data) => hash(data) } } })         // in hash-worker.ts
 */
import { systemHost } from "../host/system-host.ts";
import { checkMessage, isId, type Message, type Metadata } from "../message/envelope.ts";
import { type ErrorData, errorData, Failure, thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { cloneJson } from "../message/json-copy.ts";
import { isThenable } from "../work/handler-call.ts";
import type { ActorEvent } from "./capability.ts";
import { type CapabilityDefinition, dispatch, requireHandlers } from "./capability-definition.ts";
import { MadeMessageEvent, MailboxActor, type MessageHandling } from "./mailbox-actor.ts";
import { Parcel, type ParcelFailure } from "./parcel.ts";
import { type Handled, isAbort, isAnswer, SENT, SERVES, type WorkerSettled } from "./worker-words.ts";

/** The port to the loop, inside a worker. */
export interface WorkerPort {
  postMessage(message: unknown): void;
  onMessage(listener: (data: unknown) => void): void;
}

/** The handlers that `serve` runs in a worker. */
export type WorkerHandlers = Omit<CapabilityDefinition, "description">;

/** Inside a worker: handles posted messages, one at a time. */
export function serve(handlers: WorkerHandlers, port: WorkerPort = webPort()): void {
  const definition = { description: "", ...handlers };
  requireHandlers(definition);
  port.postMessage(SERVES);
  const running = new AbortableHandlers(definition, port);
  const actor = new MailboxActor(systemHost(), (message, context) => running.handle(message, context));
  // An actor answers a message right before it ends its parcel: both leave in one word.
  let answer: Message | undefined;
  actor.onmessage = (event) => {
    const { data } = event as { data: Message };
    if (event instanceof MadeMessageEvent && isAnswer(data)) answer = data;
    else post(event, port);
  };
  port.onMessage((data) => {
    if (isAbort(data)) return running.abort(data[1], data[2]);
    const message = data as Message;
    if (isAnswer(message)) return actor.postMessage(message);
    const { id } = message.metadata;
    const over = (failure: ParcelFailure | undefined) => {
      const word: Handled = {
        handled: id,
        ...(failure && { failed: failure.reason }),
        ...(running.hasAborted(id) && { isTimeout: true }),
      };
      const said = answer;
      answer = undefined;
      try {
        port.postMessage(said === undefined ? word : { ...word, answer: said });
      } catch (thrown) {
        port.postMessage({ ...word, answer: failureOf(said as Message, thrown) });
      }
    };
    actor.accept({ message, request: undefined, parcel: new Parcel(message, over) });
  });
}

/** Posts an emission. If it cannot be cloned, the handler gets the error. */
function post(event: ActorEvent, port: WorkerPort): void {
  try {
    port.postMessage(event instanceof MadeMessageEvent ? event.data : [SENT, event.data]);
  } catch (thrown) {
    // Only this message fails: an escaped error would end the worker with all its messages.
    const reason = whyNotCloned(event.data, thrown);
    if (!(event instanceof MadeMessageEvent)) throw new Failure(500, `not sent: ${reason}`);
    event.refused = new Failure(500, event.data.kind === "event" ? reason : `not sent: ${reason}`);
  }
}

/** Handlers that return a promise, which the loop may end. A handler that computes synchronously cannot be aborted. */
class AbortableHandlers {
  readonly #definition: CapabilityDefinition;
  readonly #port: WorkerPort;
  readonly #running = new Map<string, (timeoutMs: number) => void>();
  /** Aborted messages that are not reported as handled yet. */
  readonly #aborted = new Set<string>();

  constructor(definition: CapabilityDefinition, port: WorkerPort) {
    this.#definition = definition;
    this.#port = port;
  }

  handle(message: Message, context: MessageHandling): Json | undefined | Promise<Json | undefined> {
    const result = dispatch(this.#definition, message, context);
    if (!isThenable(result)) return result;
    const { id } = message.metadata;
    return new Promise((resolve, reject) => {
      let isLeftBehind = false;
      this.#running.set(id, (timeoutMs) => {
        isLeftBehind = true;
        this.#aborted.add(id);
        const failure = new Failure(504, `the handler timed out after ${timeoutMs} ms`);
        context.cancel(failure);
        reject(failure);
      });
      const ended = () => {
        if (isLeftBehind) this.#port.postMessage({ settled: id } satisfies WorkerSettled);
        else this.#running.delete(id);
      };
      Promise.resolve(result).finally(ended).then(resolve, reject);
    });
  }

  /** Without effect if the handler has ended: its report is on its way. */
  abort(id: string, timeoutMs: number): void {
    const expire = this.#running.get(id);
    this.#running.delete(id);
    expire?.(timeoutMs);
  }

  /** Asked once for each handled message. */
  hasAborted(id: string): boolean {
    return this.#aborted.delete(id);
  }
}

/** The answer in place of one that cannot be cloned. */
function failureOf(answer: Message, thrown: unknown): Message<ErrorData> {
  const data = errorData(500, `the worker gave an invalid answer: ${whyNotCloned(answer, thrown)}`);
  return { kind: "error", type: answer.type, data, metadata: cleanMetadata(answer.metadata) };
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
