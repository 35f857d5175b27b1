/**
 * One NDJSON client (RFC 0032 §13): lines in, answers out. It writes replies and errors, and nothing else unless the client has asked
 * for events. Exactly one error per bad line, written by the connection itself. Backpressure both ways: a client that asks more
 * than it reads is not read from until it has caught up.
 *
 * ```
 *   open ──client ends its side──> draining ──last answer written──> closed
 *     └──connection lost, or a line not finished in time──────────────^
 * ```
 */
import type { Host, Timer } from "../host/host.ts";
import { LINE_COMPLETE_MS, REQUESTS_IN_FLIGHT_MAX, UNREAD_OUTPUT_BYTES_MAX } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Connection } from "../loop/inbound.ts";
import type { Message, Refused } from "../message/envelope.ts";
import { errorData } from "../message/error-data.ts";
import { parseLine } from "../message/line.ts";
import { LineFramer, type LineSink } from "./line-framer.ts";

/** The transport under a connection: a socket, or standard input and output. */
export interface ByteStream {
  /** Sends text; false when the other side does not keep up, until `onDrain`. */
  write(text: string): boolean;
  /** Bytes handed over and not sent. */
  readonly buffered: number;
  pause(): void;
  resume(): void;
  /** Ends our side after what is buffered. */
  end(): void;
}

export class NdjsonConnection implements Connection, LineSink {
  readonly id: string;
  readonly adapter: string;
  state: "open" | "draining" | "closed" = "open";
  readonly #host: Host;
  readonly #loop: EventLoop;
  readonly #stream: ByteStream;
  readonly #framer: LineFramer;
  readonly #closed: () => void;
  /** Answers of this turn, written together. */
  #outgoing: string[] = [];
  /** Requests that were handed to the loop and not answered. */
  #inFlight = 0;
  #paused = false;
  #lineTimer: Timer | undefined;

  constructor(options: {
    host: Host;
    loop: EventLoop;
    stream: ByteStream;
    adapter: string;
    closed: () => void;
    lineBytesMax?: number;
  }) {
    this.#host = options.host;
    this.#loop = options.loop;
    this.#stream = options.stream;
    this.#closed = options.closed;
    this.adapter = options.adapter;
    this.id = options.host.id();
    this.#framer = new LineFramer(this, options.lineBytesMax);
  }

  // In -----------------------------------------------------------------------------------------------------------------------

  data(chunk: Uint8Array): void {
    if (this.state !== "open") return;
    this.#framer.push(chunk);
    this.#balance();
    this.#watchLine();
  }

  /** The client will send nothing more; it still gets what it is owed. */
  ended(): void {
    if (this.state !== "open") return;
    this.#framer.finish();
    this.#lineTimer?.cancel();
    this.state = "draining";
    this.#finishIfDone();
  }

  /** The connection is gone. */
  lost(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.#lineTimer?.cancel();
    this.#loop.disconnect(this);
    this.#closed();
  }

  line(bytes: Uint8Array): void {
    const checked = parseLine(bytes);
    if (checked.kind === "refused") return this.#refuse(checked);
    const { message } = checked;
    if (message.kind === "command" || message.kind === "query") this.#inFlight++;
    this.#loop.receive(message, this);
  }

  overlong(): void {
    this.#refuse({ kind: "refused", code: 413, message: "line too long; the rest of it was skipped" });
  }

  /** A line that was begun must end in time, or a slow client holds its buffer for ever. */
  #watchLine(): void {
    // While we do not read, the client cannot finish anything.
    if (!this.#framer.inLine || this.#paused) {
      this.#lineTimer?.cancel();
      this.#lineTimer = undefined;
      return;
    }
    this.#lineTimer ??= this.#host.timer(
      LINE_COMPLETE_MS,
      () => {
        this.#refuse({ kind: "refused", code: 400, message: `a line was not finished within ${LINE_COMPLETE_MS} ms` });
        this.#flush();
        this.#stream.end();
        this.lost();
      },
      { keepAlive: false },
    );
  }

  // Out ----------------------------------------------------------------------------------------------------------------------

  deliver(message: Message): void {
    if (message.kind === "reply" || message.kind === "error") this.#inFlight--;
    if (this.state === "closed") return;
    this.#send(message);
  }

  /** Everything that waits to be written goes out now. */
  #flush(): void {
    if (this.#outgoing.length === 0 || this.state === "closed") return;
    const text = this.#outgoing.join("");
    this.#outgoing = [];
    this.#stream.write(text);
    this.#balance();
    this.#finishIfDone();
  }

  #send(message: Message | { kind: "error"; type: string; data: unknown; metadata: object }): void {
    this.#outgoing.push(`${JSON.stringify(message)}\n`);
    // One write for all answers of a turn.
    if (this.#outgoing.length === 1) this.#host.microtask(() => this.#flush());
  }

  #refuse({ code, message, id, type, correlation }: Refused): void {
    const metadata = {
      id: this.#host.id(),
      timestamp: this.#host.now(),
      ...(correlation === undefined ? {} : { correlation }),
      ...(id === undefined ? {} : { causation: id }),
    };
    this.#send({ kind: "error", type: type ?? "Validation.Failed", data: errorData(code, message), metadata });
  }

  /** The stream has room again. */
  drained(): void {
    this.#balance();
    this.#finishIfDone();
  }

  /** Stops reading from a client that is owed too much, and starts again when it has caught up. */
  #balance(): void {
    const full = this.#inFlight >= REQUESTS_IN_FLIGHT_MAX || this.#stream.buffered >= UNREAD_OUTPUT_BYTES_MAX;
    if (full === this.#paused) return;
    this.#paused = full;
    if (full) this.#stream.pause();
    else this.#stream.resume();
    this.#watchLine();
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#outgoing.length === 0 && this.#stream.buffered === 0;
  }

  #finishIfDone(): void {
    if (this.state !== "draining" || this.#inFlight > 0 || this.#outgoing.length > 0) return;
    this.#stream.end();
  }

  /** Shuts down: what is owed and ready is written, then the connection ends. */
  close(): void {
    if (this.state === "closed") return;
    this.#flush();
    this.state = "draining";
    this.#stream.end();
  }
}
