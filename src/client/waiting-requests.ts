/**
 * The requests of a client that have no answer yet, in the order in which they were made; and which of them a kernel means that refuses
 * a line without naming it, because it has read nothing of it. SPEC: K30, K32.
 */
import { causationOf, type Message } from "../message/envelope.ts";
import type { ErrorData } from "../message/error-data.ts";

export interface Waiting {
  readonly id: string;
  /** The request as it is sent, and sent again. */
  readonly line: string;
  /** What that takes as UTF-8. */
  readonly bytes: number;
  /** Sent on an earlier connection too. */
  repeated: boolean;
  answer(answer: Message): void;
  fail(error: unknown): void;
}

const TOO_LONG = 413;
/** What is said of a line that could not be read as a message. */
const LINE_REFUSED: readonly number[] = [400, TOO_LONG, 422];

export class WaitingRequests implements Iterable<Waiting> {
  readonly #byId = new Map<string, Waiting>();
  /** The longest line of a request that was given up, whose refusal may be on its way; 0 when there is none. */
  #givenUpBytes = 0;

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  [Symbol.iterator](): Iterator<Waiting> {
    return this.#byId.values();
  }

  add(waiting: Waiting): void {
    this.#byId.set(waiting.id, waiting);
  }

  answered(id: string): void {
    this.#byId.delete(id);
  }

  givenUp({ id, bytes }: Waiting): void {
    this.#byId.delete(id);
    this.#givenUpBytes = Math.max(this.#givenUpBytes, bytes);
  }

  /** Nothing that was sent before can be answered any more. */
  newConnection(): void {
    this.#givenUpBytes = 0;
  }

  /** The request that an answer is for; undefined where nobody waits for it. */
  asked(answer: Message): Waiting | undefined {
    const causation = causationOf(answer);
    return causation === undefined ? this.#refused(answer) : this.#byId.get(causation);
  }

  /**
   * A line that is too long is not longer than the longest that waits or was given up: so that one is too long as well, and if it
   * waits, it is told. Of other lines it is known where one alone can be meant.
   */
  #refused(answer: Message): Waiting | undefined {
    if (answer.kind !== "error") return undefined;
    const { code } = answer.data as ErrorData;
    if (!LINE_REFUSED.includes(code)) return undefined;
    let longest: Waiting | undefined;
    for (const waiting of this) if (longest === undefined || waiting.bytes > longest.bytes) longest = waiting;
    if (longest === undefined) return undefined;
    const isSure =
      code === TOO_LONG ? longest.bytes >= this.#givenUpBytes : this.size === 1 && this.#givenUpBytes === 0;
    return isSure ? longest : undefined;
  }
}

/** Whether an answer says that the line was longer than the kernel takes. A handler may answer with the same code; that names the request. */
export function isTooLong(answer: Message): boolean {
  return answer.kind === "error" && (answer.data as ErrorData).code === TOO_LONG && causationOf(answer) === undefined;
}
