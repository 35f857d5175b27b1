/**
 * NDJSON over a Unix socket. The socket lies in a directory that only its owner may enter (0700) and is his alone (0600). A socket
 * that a dead kernel left is replaced; one behind which somebody answers is not.
 */
import { chmodSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Host } from "../host/host.ts";
import { CONNECTIONS_MAX } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import { type ByteStream, NdjsonConnection } from "./ndjson-connection.ts";

export interface UnixSocketOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly path: string;
  readonly connectionsMax?: number;
}

/** The socket cannot be opened; the message says what to do. */
export class SocketError extends Error {
  override readonly name = "SocketError";
  readonly code: "SOCKET_IN_USE" | "SOCKET_NOT_OURS" | "SOCKET_FAILED";

  constructor(code: SocketError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export class UnixSocket {
  readonly path: string;
  readonly #options: UnixSocketOptions;
  readonly #server: Server;
  readonly #connections = new Map<NdjsonConnection, Socket>();

  static async open(options: UnixSocketOptions): Promise<UnixSocket> {
    mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
    chmodSync(dirname(options.path), 0o700);
    await clear(options.path);
    const socket = new UnixSocket(options);
    await socket.#listen();
    return socket;
  }

  private constructor(options: UnixSocketOptions) {
    this.path = options.path;
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#connected(client));
    this.#server.maxConnections = options.connectionsMax ?? CONNECTIONS_MAX;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Whether every answer that is ready has been taken by its client. */
  get isIdle(): boolean {
    for (const connection of this.#connections.keys()) if (!connection.isIdle) return false;
    return true;
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", (error) => {
        reject(new SocketError("SOCKET_FAILED", `cannot listen on ${this.path}: ${error.message}`, { cause: error }));
      });
      // Private from its first moment: the umask decides until chmod would.
      const umask = process.umask(0o177);
      this.#server.listen(this.path, () => {
        chmodSync(this.path, 0o600);
        resolve();
      });
      process.umask(umask);
    });
  }

  #connected(client: Socket): void {
    const { host, loop } = this.#options;
    const stream = new SocketStream(client);
    const connection = new NdjsonConnection({
      ...{ host, loop, stream, adapter: "socket" },
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.set(connection, client);
    client.on("data", (chunk) => connection.data(chunk as Buffer));
    client.on("end", () => connection.ended());
    client.on("drain", () => connection.drained());
    client.on("close", () => connection.lost());
    // A client that resets the connection is gone, which `close` says next.
    client.on("error", () => client.destroy());
  }

  /** Takes no more connections, writes what is ready, and closes; clients that do not read are cut off after the grace. */
  async close(graceMs = 1_000): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections.keys()) connection.close();
    const timer = this.#options.host.timer(graceMs, () => {
      for (const client of this.#connections.values()) client.destroy();
    });
    await closed;
    timer.cancel();
  }
}

class SocketStream implements ByteStream {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(text: string): boolean {
    return this.#socket.write(text);
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

  end(): void {
    this.#socket.end();
  }
}

/** Removes what a dead kernel left at the path; refuses what is not a socket and one that somebody listens on. */
async function clear(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket())
    throw new SocketError("SOCKET_NOT_OURS", `${path} is there and is not a socket; remove it or choose another path`);
  if (await answers(path))
    throw new SocketError("SOCKET_IN_USE", `a kernel is running on ${path}; stop it first, or set MILLRACE_DIR`);
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}
