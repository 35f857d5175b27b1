/**
 * NDJSON over a Unix socket, which only its owner may use (0600), in a folder that only its owner may write to. A socket that a
 * dead kernel left is replaced; a socket that is answered is not. At the end its file is removed, unless another has replaced it.
 * When all places are taken, the connection that is idle for the longest time makes room.
 *
 * ```
 *   open ──quiet(): no new clients, no new requests──> quiet ──close(): answers out──> closed
 * ```
 * SPEC: N. One client's bytes and answers are `NdjsonConnection`'s business.
 */
import { chmodSync, lstatSync, renameSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Host } from "../host/host.ts";
import { CONNECTION_IDLE_MS, CONNECTIONS_MAX, SOCKET_PATH_BYTES_MAX, SOCKET_PATH_BYTES_MAX_LINUX } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { AdapterLife } from "../loop/liveness.ts";
import { requireLimit } from "../loop/loop-limits.ts";
import { errorData } from "../message/error-data.ts";
import { type ConnectionLimits, connectionLimits } from "./connection-limits.ts";
import { FairShare } from "./fair-share.ts";
import { NdjsonConnection } from "./ndjson-connection.ts";
import { SocketError } from "./socket-error.ts";
import { requireSocketFolder } from "./socket-folder.ts";
import { SocketStream } from "./socket-stream.ts";
import { UnreadOutput } from "./unread-output.ts";

export interface UnixSocketOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly path: string;
  readonly connectionsMax?: number;
  /** Bytes of output that all clients together may leave unread. */
  readonly unreadOutputAllBytesMax?: number;
  /** What one client may cost. */
  readonly limits?: Partial<ConnectionLimits>;
  /** What its clients may be told; without one, everything. */
  readonly clearance?: readonly string[];
}

/** What Node asks for where nothing is said. */
const BACKLOG_MIN = 511;
/** The most that the system is asked for: it takes a number of 32 bits, and cuts it to a bound of its own. */
const BACKLOG_MAX = 65_535;

export class UnixSocket implements AdapterLife {
  readonly path: string;
  readonly #options: UnixSocketOptions;
  readonly #server: Server;
  readonly #connectionsMax: number;
  readonly #limits: ConnectionLimits;
  readonly #connections = new Map<NdjsonConnection, Socket>();
  readonly #share = new FairShare();
  readonly #output: UnreadOutput;
  #detach: () => void = () => undefined;
  /** The file it was bound to. The system keeps its number while the socket is open, also when it was removed. */
  #file: FileIdentity | undefined;
  #serverClosed: Promise<void> | undefined;

  static async open(options: UnixSocketOptions): Promise<UnixSocket> {
    const tooLong = socketPathTooLong(options.path);
    if (tooLong) throw new SocketError("SOCKET_FAILED", tooLong);
    requireSocketFolder(dirname(options.path));
    await clear(options.path);
    const socket = new UnixSocket(options);
    await socket.#listen();
    socket.#detach = options.loop.attach(socket);
    return socket;
  }

  private constructor(options: UnixSocketOptions) {
    this.path = options.path;
    this.#options = options;
    this.#connectionsMax = options.connectionsMax ?? CONNECTIONS_MAX;
    requireLimit("connectionsMax", this.#connectionsMax);
    this.#limits = connectionLimits(options.limits);
    const { unreadOutputAllBytesMax: bytesMax } = options;
    if (bytesMax !== undefined) requireLimit("unreadOutputAllBytesMax", bytesMax);
    this.#output = new UnreadOutput(bytesMax);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#connected(client));
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Bytes written and not yet taken by the clients. */
  get frames(): number {
    let frames = 0;
    for (const connection of this.#connections.keys()) frames += connection.frames;
    return frames;
  }

  /** Whether every request is answered and every answer has been taken by its client. */
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
      // As many may come at once as may stay: all clients do when a kernel is started again. Those beyond are told so, once they are in.
      const backlog = Math.min(Math.max(BACKLOG_MIN, this.#connectionsMax), BACKLOG_MAX);
      this.#server.listen({ path: this.path, backlog }, () => {
        chmodSync(this.path, 0o600);
        this.#file = identityOf(this.path);
        resolve();
      });
      process.umask(umask);
    });
  }

  #connected(client: Socket): void {
    // A client that resets the connection is gone, which `close` says next.
    client.on("error", () => client.destroy());
    if (this.#connections.size >= this.#connectionsMax && !this.#makePlace()) return this.#turnAway(client);
    const { host, loop, clearance } = this.#options;
    const connection = new NdjsonConnection({
      ...{ host, loop, clearance, stream: new SocketStream(client), adapter: "socket", share: this.#share },
      ...{ limits: this.#limits, output: this.#output },
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.set(connection, client);
    client.on("data", (chunk) => connection.data(chunk as Buffer));
    client.on("end", () => connection.ended());
    client.on("drain", () => connection.drained());
    client.on("close", () => connection.lost());
  }

  /** Ends the connection that is idle for the longest time, if it is long enough; false where there is none. */
  #makePlace(): boolean {
    let longest: NdjsonConnection | undefined;
    let longestMs = CONNECTION_IDLE_MS;
    for (const connection of this.#connections.keys()) {
      const { idleMs } = connection;
      if (idleMs < longestMs) continue;
      longest = connection;
      longestMs = idleMs;
    }
    longest?.dismiss(`idle for ${Math.floor(longestMs)} ms, and another client needs the place; connect again`);
    return longest !== undefined;
  }

  #turnAway(client: Socket): void {
    const { host } = this.#options;
    const data = errorData(503, `too many connections; the limit is ${this.#connectionsMax}`);
    const metadata = { id: host.id(), timestamp: host.now() };
    client.write(`${JSON.stringify({ kind: "error", type: "Validation.Failed", data, metadata })}\n`);
    client.destroy();
  }

  /** The first half of a good end: no new clients, no new requests; what was asked is still answered. */
  quiet(): void {
    this.#serverClosed ??= new Promise<void>((resolve) => this.#closeServer(resolve));
    for (const connection of this.#connections.keys()) connection.stopReading();
  }

  /** The runtime removes whatever is at the path as it closes, in this call: what is another's now is out of its way meanwhile. */
  #closeServer(closed: () => void): void {
    const found = identityOf(this.path);
    const isOurs = found === undefined || (found.device === this.#file?.device && found.inode === this.#file.inode);
    const aside = `${this.path}.${process.pid}`;
    if (!isOurs) renameSync(this.path, aside);
    this.#server.close(closed);
    if (!isOurs) renameSync(aside, this.path);
  }

  /** Takes no more connections, writes what is ready, and closes; clients that do not read are cut off after the grace. */
  async close(graceMs = 1_000): Promise<void> {
    this.quiet();
    for (const connection of this.#connections.keys()) connection.close();
    const timer = this.#options.host.timer(graceMs, () => {
      for (const client of this.#connections.values()) client.destroy();
    });
    await this.#serverClosed;
    timer.cancel();
    this.#detach();
  }
}

interface FileIdentity {
  readonly device: bigint;
  readonly inode: bigint;
}

function identityOf(path: string): FileIdentity | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found && { device: found.dev, inode: found.ino };
}

/** What is wrong with the length of a path, which the system says nothing useful of. */
export function socketPathTooLong(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  const max = process.platform === "linux" ? SOCKET_PATH_BYTES_MAX_LINUX : SOCKET_PATH_BYTES_MAX;
  if (bytes <= max) return undefined;
  return `the socket's path ${path} has ${bytes} bytes, and the system takes ${max}; name a shorter one, or one from the working directory`;
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

/** Only a refused connection proves that nobody is there: a kernel too busy to accept is alive. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED" && code !== "ENOENT"));
  });
}
