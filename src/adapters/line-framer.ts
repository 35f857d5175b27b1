/**
 * Splits chunks into lines (RFC 0032 §13.1): bytes up to a newline, with a limit, for any division into chunks. A line
 * that is too long is reported once and skipped without being stored. A carriage return before the newline is removed.
 */
import { LINE_BYTES_MAX } from "../limits.ts";
import { asciiText } from "../message/line.ts";

export interface LineSink {
  /**
   * A line without its newline, at `start` to `end` of bytes that are valid only during the call; `text` if it is
   * known.
   */
  line(bytes: Uint8Array, start: number, end: number, text: string | undefined): void;
  /** A line exceeded the limit; its rest is skipped. */
  overlong(): void;
  /** Checked after each line: whether to go on, or to leave the rest of the chunk for later. */
  readonly wantsMore: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** Bytes decoded at once: many lines, but not repeatedly the whole backlog of a client that has used its share. */
const PART_BYTES = 16_384;
/** A buffer up to this length is kept for the next line. */
const HELD_KEPT_BYTES = 16_384;

export class LineFramer {
  readonly #sink: LineSink;
  readonly #bytesMax: number;
  /** The start of an incomplete line; grows as needed up to the limit. */
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

  /** Lines ended so far, of any kind. */
  get lines(): number {
    return this.#lines;
  }

  /** Takes lines until the chunk ends or the sink stops; returns the number of bytes taken. */
  push(chunk: Uint8Array): number {
    let taken = 0;
    while (taken < chunk.length) {
      // Slicing a Buffer creates Buffers, which cost half as much again as plain views.
      const length = Math.min(chunk.length - taken, PART_BYTES);
      const ofPart = this.#pushPart(new Uint8Array(chunk.buffer, chunk.byteOffset + taken, length));
      taken += ofPart;
      if (ofPart < length) break;
    }
    return taken;
  }

  #pushPart(part: Uint8Array): number {
    // Decoding all lines at once and searching newlines in the text costs a fifth of doing it per line.
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

  /** The stream has ended: the rest is a line too. */
  finish(): void {
    if (this.#length > 0) this.#end(new Uint8Array(0));
    this.#skipping = false;
  }

  /** Ends the current line. */
  #end(rest: Uint8Array): void {
    this.#keep(rest);
    const length = this.#length;
    this.#length = 0;
    if (this.#skipping) this.#skipping = false;
    else this.#deliver(this.#held, 0, length, undefined);
    // Long lines are rare, so their buffers are not kept with each connection.
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
    // One more byte for a carriage return at the end.
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
