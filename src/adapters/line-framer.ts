/**
 * Lines out of chunks (RFC 0032 §13.1): bytes up to a newline, at most so many, whatever way they arrive. A line that is too long is
 * reported once and skipped to its end without being kept. A carriage return before the newline belongs to the ending.
 */
import { LINE_BYTES_MAX } from "../limits.ts";
import { asciiText } from "../message/line.ts";

export interface LineSink {
  /** A line without its newline, at `start` to `end` of bytes that are valid only during the call; its text where it is known. */
  line(bytes: Uint8Array, start: number, end: number, text: string | undefined): void;
  /** A line went over the limit; what is left of it is skipped. */
  overlong(): void;
  /** Asked after each line: whether to go on, or to leave the rest of the chunk for later. */
  readonly wantsMore: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** Bytes that are decoded at once: many lines, but not again and again all that waits for a client that has used up its share. */
const PART_BYTES = 16_384;
/** A buffer up to this length is kept for the next line. */
const HELD_KEPT_BYTES = 16_384;

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
  push(chunk: Uint8Array): number {
    let taken = 0;
    while (taken < chunk.length) {
      // Cutting lines out of a Buffer makes Buffers, which costs half as much again as plain views of the same bytes.
      const length = Math.min(chunk.length - taken, PART_BYTES);
      const ofPart = this.#pushPart(new Uint8Array(chunk.buffer, chunk.byteOffset + taken, length));
      taken += ofPart;
      if (ofPart < length) break;
    }
    return taken;
  }

  #pushPart(part: Uint8Array): number {
    // Decoding all lines at once, and looking for their ends in the text, costs a fifth of doing it for each.
    const text = asciiText(part);
    const endFrom = (from: number) => (text === undefined ? part.indexOf(NEWLINE, from) : text.indexOf("\n", from));
    let start = 0;
    for (let end = endFrom(0); end !== -1; end = endFrom(start)) {
      if (!this.#sink.wantsMore) return start;
      this.#lines++;
      if (this.inLine) this.#end(part.subarray(start, end));
      else this.#deliver(part, start, end, text);
      start = end + 1;
    }
    if (start < part.length) this.#keep(part.subarray(start));
    return part.length;
  }

  /** The stream has ended: what is left is a line too. */
  finish(): void {
    if (this.#length > 0) this.#end(new Uint8Array(0));
    this.#skipping = false;
  }

  /** Ends the line that has begun. */
  #end(rest: Uint8Array): void {
    this.#keep(rest);
    const length = this.#length;
    this.#length = 0;
    if (this.#skipping) this.#skipping = false;
    else this.#deliver(this.#held, 0, length, undefined);
    // A long line is rare: its buffer must not stay with every connection that has sent one.
    if (this.#held.length > HELD_KEPT_BYTES) this.#held = new Uint8Array(0);
  }

  #deliver(bytes: Uint8Array, start: number, lineEnd: number, text: string | undefined): void {
    const end = lineEnd > start && bytes[lineEnd - 1] === RETURN ? lineEnd - 1 : lineEnd;
    if (end - start > this.#bytesMax) this.#sink.overlong();
    else if (end > start) this.#sink.line(bytes, start, end, text?.slice(start, end));
  }

  #keep(part: Uint8Array): void {
    if (this.#skipping) return;
    const length = this.#length + part.length;
    // One more for the carriage return that may end it.
    if (length > this.#bytesMax + 1) {
      this.#skipping = true;
      this.#length = 0;
      this.#held = new Uint8Array(0);
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
