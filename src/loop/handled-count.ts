/**
 * How many messages an actor has handled, for those who wait until what it was given so far is over. They wait for no more than that: an actor
 * that is never without work would keep them for ever. SPEC: L9.
 */
import { Fifo } from "../host/fifo.ts";

export class HandledCount {
  #count = 0;
  /** In the order of their counts. */
  readonly #waiting = new Fifo<{ readonly count: number; readonly resolve: () => void }>();

  /** One more handling has ended. */
  add(): void {
    this.#count++;
    if (this.#waiting.length > 0) this.#tell(this.#count);
  }

  /** Resolves when so many more have ended. */
  after(more: number): Promise<void> {
    if (more === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ count: this.#count + more, resolve });
    });
  }

  /** Nothing more will be handled. */
  end(): void {
    this.#tell(Number.POSITIVE_INFINITY);
  }

  #tell(reached: number): void {
    for (let next = this.#waiting.peek(); next && next.count <= reached; next = this.#waiting.peek()) {
      this.#waiting.shift();
      next.resolve();
    }
  }
}
