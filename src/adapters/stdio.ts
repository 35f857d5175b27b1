/**
 * NDJSON over standard input and output: one client, the process that started us. It ends when the input has ended and every answer is
 * out; a batch ends with it. A reader who does not read is left after the grace of a close. SPEC: N11, N13.
 */
import type { Readable, Writable } from "node:stream";
import type { Host } from "../host/host.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { AdapterLife } from "../loop/liveness.ts";
import { type ByteStream, NdjsonConnection } from "./ndjson-connection.ts";

export interface StdioOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly input: Readable;
  readonly output: Writable;
}

export class Stdio implements AdapterLife {
  /** Resolves when the conversation is over. */
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
    // Destroyed, it says neither of the two; and nothing at all if that was before.
    input.on("close", () => this.#connection.ended());
    if (input.closed) this.#connection.ended();
    output.on("drain", () => this.#connection.drained());
    // Nobody reads us any more.
    output.on("error", () => this.#connection.lost());
    output.on("close", () => this.#connection.lost());
  }

  get frames(): number {
    return this.#connection.frames;
  }

  get isIdle(): boolean {
    return this.#connection.isIdle;
  }

  /** Reads nothing more; what was asked is still answered. */
  quiet(): void {
    this.#connection.stopReading();
  }

  /** Writes what is ready and ends; what nobody has read after the grace is lost. */
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

  /** Standard output belongs to the process and is not closed; the last write is waited for. */
  end(): void {
    this.#input.pause();
    this.#output.write("", () => this.#done());
  }

  cut(): void {
    this.#input.pause();
  }

  /** A pipe whose reader is gone says so when it is written to. */
  probe(): void {
    this.#output.write("");
  }
}
