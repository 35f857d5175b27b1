/**
 * The unanswered requests of a client in order, and the search for the request of a refusal without an id (the kernel
 * could not parse the line). SPEC: K30, K32.
 */
import type { Timer } from "../host/host.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { type ErrorData, Failure } from "../message/error-data.ts";
import type { ClientHost } from "./page-host.ts";

/** One request until it is answered, times out or is aborted. */
export class WaitingRequest {
  readonly id: string;
  readonly type: string;
  /** The line as sent, and sent again. */
  readonly line: string;
  /** Its length in UTF-8. */
  readonly bytes: number;
  /** Also sent on an earlier connection. */
  repeated = false;
  readonly #among: WaitingRequests;
  readonly #resolve: (answer: Message) => void;
  readonly #reject: (error: unknown) => void;
  readonly #timer: Timer;
  readonly #signal: AbortSignal | undefined;
  readonly #aborted: (() => void) | undefined;

  constructor(
    request: Request,
    among: WaitingRequests,
    host: ClientHost,
    resolve: (answer: Message) => void,
    reject: (error: unknown) => void,
  ) {
    const { id, type, line, bytes, timeoutMs, signal } = request;
    this.id = id;
    this.type = type;
    this.line = line;
    this.bytes = bytes;
    this.#among = among;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = host.timer(timeoutMs, () => {
      this.fail(new Failure(504, `no answer to ${type} within ${timeoutMs} ms (id ${id})`));
    });
    this.#signal = signal;
    this.#aborted = signal && (() => this.fail(signal.reason));
    if (this.#aborted) signal?.addEventListener("abort", this.#aborted, { once: true });
  }

  answer(answer: Message): void {
    this.#end();
    this.#among.answered(this.id);
    if (isTooLong(answer)) this.#reject(tooLongError(this.type, this.bytes, (answer.data as ErrorData).message));
    else this.#resolve(answer);
  }

  fail(error: unknown): void {
    this.#end();
    this.#among.givenUp(this);
    this.#reject(error);
  }

  #end(): void {
    this.#timer.cancel();
    if (this.#aborted) this.#signal?.removeEventListener("abort", this.#aborted);
  }
}

/** A request to be sent and its timeout. */
interface Request {
  readonly id: string;
  readonly type: string;
  readonly line: string;
  readonly bytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

const TOO_LONG = 413;
/** Codes of a line that could not be parsed as a message. */
const LINE_REFUSED: readonly number[] = [400, TOO_LONG, 422];

export class WaitingRequests implements Iterable<WaitingRequest> {
  readonly #byId = new Map<string, WaitingRequest>();
  /** The longest line of an abandoned request whose refusal may still arrive; 0 if there is none. */
  #givenUpBytes = 0;
  readonly #changed: () => void;

  /** `changed` is called when a request begins or ends to wait. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  [Symbol.iterator](): Iterator<WaitingRequest> {
    return this.#byId.values();
  }

  add(waiting: WaitingRequest): void {
    this.#byId.set(waiting.id, waiting);
    this.#changed();
  }

  answered(id: string): void {
    this.#byId.delete(id);
    this.#changed();
  }

  givenUp({ id, bytes }: WaitingRequest): void {
    this.#byId.delete(id);
    this.#givenUpBytes = Math.max(this.#givenUpBytes, bytes);
    this.#changed();
  }

  /** Earlier lines can no longer be answered. */
  newConnection(): void {
    this.#givenUpBytes = 0;
  }

  /** The request of an answer; undefined if no request waits for it. */
  asked(answer: Message): WaitingRequest | undefined {
    const causation = causationOf(answer);
    return causation === undefined ? this.#refused(answer) : this.#byId.get(causation);
  }

  /**
   * A refused line is at most as long as the longest waiting or abandoned one, so that one is too long as well; if it
   * waits, it fails. Other refusals are assigned only if exactly one request can be meant.
   */
  #refused(answer: Message): WaitingRequest | undefined {
    if (answer.kind !== "error") return undefined;
    const { code } = answer.data as ErrorData;
    if (!LINE_REFUSED.includes(code)) return undefined;
    let longest: WaitingRequest | undefined;
    for (const waiting of this) if (longest === undefined || waiting.bytes > longest.bytes) longest = waiting;
    if (longest === undefined) return undefined;
    const isSure =
      code === TOO_LONG ? longest.bytes >= this.#givenUpBytes : this.size === 1 && this.#givenUpBytes === 0;
    return isSure ? longest : undefined;
  }
}

/**
 * Whether the answer refuses the line as too long. A handler may use the same code, but its answer names the request.
 */
function isTooLong(answer: Message): boolean {
  return answer.kind === "error" && (answer.data as ErrorData).code === TOO_LONG && causationOf(answer) === undefined;
}

export function tooLongError(type: string, bytes: number, why: string): Failure {
  return new Failure(
    413,
    `${type} takes a line of ${bytes} bytes: ${why}; send it in parts, or set the kernel's lineBytesMax`,
  );
}
