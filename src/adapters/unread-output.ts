/**
 * Limits the unread output of all connections of an adapter in sum. Each connection has its own limit, at which it is
 * paused; but many connections below it can exceed the kernel's memory. Above the sum, the connections with the most
 * unread output are dropped until it fits (load shedding). SPEC: N20.
 */
import { UNREAD_OUTPUT_ALL_BYTES_MAX } from "../limits.ts";

export interface OutputHolder {
  /** Bytes written and not read by the client. */
  readonly frames: number;
  /** Ends the connection; the unread output is lost. */
  drop(reason: string): void;
}

export class UnreadOutput {
  readonly #bytesMax: number;
  /** Bytes of each connection at its last write: sockets send later without a notice, so this is an upper bound. */
  readonly #noted = new Map<OutputHolder, number>();
  /** The sum of `#noted`. */
  #bytes = 0;

  constructor(bytesMax: number = UNREAD_OUTPUT_ALL_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Called when a connection has written, or its client has read. */
  note(holder: OutputHolder): void {
    const bytes = holder.frames;
    this.#bytes += bytes - (this.#noted.get(holder) ?? 0);
    this.#noted.set(holder, bytes);
    if (this.#bytes > this.#bytesMax) this.#shed();
  }

  forget(holder: OutputHolder): void {
    this.#bytes -= this.#noted.get(holder) ?? 0;
    this.#noted.delete(holder);
  }

  #shed(): void {
    this.#bytes = 0;
    for (const holder of this.#noted.keys()) {
      const bytes = holder.frames;
      this.#noted.set(holder, bytes);
      this.#bytes += bytes;
    }
    const largestFirst = [...this.#noted].sort(([, one], [, other]) => other - one);
    for (const [holder, bytes] of largestFirst) {
      if (this.#bytes <= this.#bytesMax) return;
      this.forget(holder);
      const bound = `all clients together may leave ${this.#bytesMax} bytes unread`;
      holder.drop(`the client has not read ${bytes} bytes of output, more than any other; ${bound}`);
    }
  }
}
