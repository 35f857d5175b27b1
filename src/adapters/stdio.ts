/**
 * NDJSON over standard input and output: one client, the parent process. It ends when the input has ended and every
 * answer is written. A reader that does not read is abandoned after the grace of a close. SPEC: N11, N13.
 */
import type { Readable, Writable } from "node:stream";
import type { Host } from "../host/host.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { AdapterLife } from "../loop/liveness.ts";
import { type ByteStream, NdjsonConnection } from "./ndjson-connection.ts";

/** The loop that `Stdio` talks to, and its streams. */
export interface StdioOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly input: Readable;
  readonly output: Writable;
}

/** One NDJSON client on a pair of streams, such as standard input and output. */
export class Stdio implements AdapterLife {
  /** Resolves when the connection has ended. */
  readonly ended: Promise<void>;
  readonly #host: Host;
  readonly #connection: NdjsonConnection;
  #over: () => void = () => undefined;

  constructor({ host, loop, input, output }: StdioOptions) {
    this.#host = host;
    const stream = new PipeStream(input, output, () => this.#connection.lost());
    this.#connection = new NdjsonConnection({ host, loop, stream, adapter: "stdio", closed: () => this.#over() });
    const detach = loop.attach(this);
    this.ended = new Promise((resolve) => {
      this.#over = () => {
        detach();
        resolve();
      };
    });
    input.on("data", (chunk: Uint8Array) => this.#connection.data(chunk));
    input.on("end", () => this.#connection.ended());
    input.on("error", () => this.#connection.ended());
    // A destroyed stream emits neither of the two; and no event at all if it was destroyed before.
    input.on("close", () => this.#connection.ended());
    if (input.closed) this.#connection.ended();
    output.on("drain", () => this.#connection.drained());
    // The reader is gone.
    output.on("error", () => this.#connection.lost());
    output.on("close", () => this.#connection.lost());
  }

  get frames(): number {
    return this.#connection.frames;
  }

  get isIdle(): boolean {
    return this.#connection.isIdle;
  }

  /** Stops reading; earlier requests are still answered. */
  quiet(): void {
    this.#connection.stopReading();
  }

  /** Writes the pending answers and ends; output not read within the grace is lost. */
  async close(graceMs = 1_000): Promise<void> {
    this.#connection.close();
    const timer = this.#host.timer(graceMs, () => this.#connection.lost());
    await this.ended;
    timer.cancel();
  }
}

class PipeStream implements ByteStream {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #done: () => void;

  constructor(input: Readable, output: Writable, done: () => void) {
    this.#input = input;
    this.#output = output;
    this.#done = done;
  }

  write(text: string): void {
    this.#output.write(text);
  }

  get buffered(): number {
    return this.#output.writableLength;
  }

  pause(): void {
    this.#input.pause();
  }

  resume(): void {
    this.#input.resume();
  }

  /** Standard output belongs to the process and is not closed; the last write is awaited. */
  end(): void {
    this.#input.pause();
    this.#output.write("", () => this.#done());
  }

  cut(): void {
    this.#input.pause();
  }

  /** A pipe without a reader reports an error when it is written to. */
  probe(): void {
    this.#output.write("");
  }
}
