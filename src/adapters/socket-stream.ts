/** A Node socket as the byte stream under a connection. */
import type { Socket } from "node:net";
import type { ByteStream } from "./ndjson-connection.ts";

const NOTHING = new Uint8Array(0);

export class SocketStream implements ByteStream {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  get buffered(): number {
    return this.#socket.writableLength;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes both sides after the last write: a client that keeps its side open must not keep ours. */
  end(): void {
    this.#socket.destroySoon();
  }

  cut(): void {
    this.#socket.destroy();
  }

  /** An empty write fails with EPIPE if the client has closed, and has no effect if it has only ended its side. */
  probe(): void {
    this.#socket.write(NOTHING);
  }
}
