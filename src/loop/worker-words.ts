/**
 * The protocol between a `WorkerActor` and `serve` inside its Worker. Messages of the loop pass as they are; all other
 * words are here. SPEC: L31, U66, U67.
 */
import type { Message } from "../message/envelope.ts";

/** The first word of `serve`. */
export const SERVES = "millrace:serves";
/** Marks a message that a handler gave to `send`. */
export const SENT = "millrace:sent";
const ABORT = "millrace:abort";

/** A word of `serve` after each handled message. */
export interface Handled {
  readonly handled: string;
  /** The answer to a request, or the failure of an event. */
  readonly answer?: unknown;
  /** Why the handler of an event failed. */
  readonly failed?: string;
  /** Whether the handler was left behind after its timeout: a word `WorkerSettled` follows when it ends. */
  readonly isTimeout?: boolean;
}

/** A word of `serve` when a handler that was left behind has ended. */
export interface WorkerSettled {
  readonly settled: string;
}

/** A word to `serve`: the time of the handler of this message is over. */
export type Abort = readonly [word: typeof ABORT, id: string, timeoutMs: number];

export function abortOf(id: string, timeoutMs: number): Abort {
  return [ABORT, id, timeoutMs];
}

export function isAbort(data: unknown): data is Abort {
  return Array.isArray(data) && data[0] === ABORT;
}

export function isSent(said: unknown): said is readonly [typeof SENT, unknown] {
  return Array.isArray(said) && said[0] === SENT;
}

export function isHandled(said: unknown): said is Handled {
  return typeof (said as Partial<Handled> | null)?.handled === "string";
}

export function isWorkerSettled(said: unknown): said is WorkerSettled {
  return typeof (said as Partial<WorkerSettled> | null)?.settled === "string";
}

/** Answers do not wait in the mailbox of a worker. */
export function isAnswer({ kind }: Message): boolean {
  return kind === "reply" || kind === "error";
}

/** A worker may emit any value; the router checks whether it is a message. */
export function isRequest(said: unknown): said is Message {
  const { kind, metadata } = (said ?? {}) as Partial<Message>;
  return (kind === "command" || kind === "query") && typeof metadata?.id === "string";
}

/** The id of the message that caused this one, if it is a message. */
export function causeOf(said: unknown): string | undefined {
  const causation = (said as Partial<Message> | null | undefined)?.metadata?.causation;
  return typeof causation === "string" ? causation : undefined;
}

/** The id of the request that this answers, if it is an answer. */
export function answeredBy(said: unknown): string | undefined {
  const { kind, metadata } = (said ?? {}) as Partial<Message>;
  return kind === "reply" || kind === "error" ? (metadata?.causation ?? undefined) : undefined;
}
