/**
 * Lines out of chunks (RFC 0032 §13.1): bytes up to a newline, at most so many, whatever way they arrive. A line that is too long is
 * reported once and skipped to its end without being kept. A carriage return before the newline belongs to the ending.
 */
import { LINE_BYTES_MAX } from "../limits.ts";

export interface LineSink {
  /** A line without its newline; the bytes are valid only during the call. */
  line(bytes: Uint8Array): void;
  /** A line went over the limit; what is left of it is skipped. */
  overlong(): void;
  /** Asked after each line: whether to go on, or to leave the rest of the chunk for later. */
  readonly wantsMore: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;

export class LineFramer {
  readonly #sink: LineSink;
  readonly #bytesMax: number;
  /** The start of a line whose end has not come; grown as needed, never beyond the limit. */
  #held = new Uint8Array(0);
  #length = 0;
  #skipping = false;
  #lines = 0;

  constructor(sink: LineSink, bytesMax: number = LINE_BYTES_MAX) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
  }

  /** Whether a line has begun and not ended. */
  get inLine(): boolean {
    return this.#length > 0 || this.#skipping;
  }

  /** Lines that have ended so far, of whatever kind. */
  get lines(): number {
    return this.#lines;
  }

  /** Takes lines until the chunk ends or the sink wants no more; gives how many bytes were taken. */
  push(given: Uint8Array): number {
    // Cutting lines out of a Buffer makes Buffers, which costs half as much again as plain views of the same bytes.
    const chunk = new Uint8Array(given.buffer, given.byteOffset, given.length);
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (!this.#sink.wantsMore) return start;
      this.#lines++;
      this.#end(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return chunk.length;
  }

  /** The stream has ended: what is left is a line too. */
  finish(): void {
    if (this.#length > 0) this.#end(new Uint8Array(0));
    this.#skipping = false;
  }

  #end(rest: Uint8Array): void {
    if (this.#skipping) {
      this.#skipping = false;
      return;
    }
    if (this.#length === 0) return this.#deliver(rest);
    this.#keep(rest);
    if (this.#skipping) {
      this.#skipping = false;
      return;
    }
    const line = this.#held.subarray(0, this.#length);
    this.#length = 0;
    this.#deliver(line);
  }

  #deliver(bytes: Uint8Array): void {
    const line = bytes[bytes.length - 1] === RETURN ? bytes.subarray(0, -1) : bytes;
    if (line.length > this.#bytesMax) this.#sink.overlong();
    else if (line.length > 0) this.#sink.line(line);
  }

  #keep(part: Uint8Array): void {
    if (this.#skipping) return;
    const length = this.#length + part.length;
    // One more for the carriage return that may end it.
    if (length > this.#bytesMax + 1) {
      this.#skipping = true;
      this.#length = 0;
      this.#sink.overlong();
      return;
    }
    if (length > this.#held.length) {
      const grown = new Uint8Array(Math.min(this.#bytesMax + 1, Math.max(length, this.#held.length * 2, 256)));
      grown.set(this.#held.subarray(0, this.#length));
      this.#held = grown;
    }
    this.#held.set(part, this.#length);
    this.#length = length;
  }
}
