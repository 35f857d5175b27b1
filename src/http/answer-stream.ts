/**
 * A response that goes on: text is written as it comes, and the reader's pace decides when there is room. SPEC: W23.
 *
 *     open ──end(), or the client leaves──> ended
 */
import { Waiters } from "../host/waiters.ts";
import { UNREAD_OUTPUT_BYTES_MAX } from "../limits.ts";

const encoder = new TextEncoder();
/** The stream says that it has room below this many unread bytes. */
const ROOM_BYTES = UNREAD_OUTPUT_BYTES_MAX >> 2;

export class AnswerStream {
  readonly body: ReadableStream<Uint8Array>;
  isEnded = false;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly #left: () => void;
  readonly #roomWaiters = new Waiters();

  /** `left` is called once, when the client has left or the stream was ended. */
  constructor(left: () => void) {
    this.#left = left;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#tellRoom(),
        cancel: () => this.#over(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: ROOM_BYTES }),
    );
  }

  write(text: string): void {
    if (!this.isEnded) this.#controller.enqueue(encoder.encode(text));
  }

  /** Ends the response after all that was written. */
  end(): void {
    if (this.isEnded) return;
    this.#controller.close();
    this.#over();
  }

  /** Ends the response now. */
  cut(reason: string): void {
    if (this.isEnded) return;
    this.#controller.error(new Error(reason));
    this.#over();
  }

  /** Bytes that the client has not read. */
  get unread(): number {
    return this.isEnded ? 0 : Math.max(0, ROOM_BYTES - (this.#controller.desiredSize ?? ROOM_BYTES));
  }

  get hasRoom(): boolean {
    return this.isEnded || (this.#controller.desiredSize ?? 0) > 0;
  }

  whenRoom(): Promise<void> {
    if (this.hasRoom) return Promise.resolve();
    return this.#roomWaiters.wait();
  }

  #tellRoom(): void {
    this.#roomWaiters.release();
  }

  #over(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#tellRoom();
    this.#left();
  }
}
