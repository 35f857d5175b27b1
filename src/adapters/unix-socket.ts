/**
 * NDJSON over a Unix socket that only its owner may use (0600), in a folder that only its owner may write to. A socket
 * left by a dead kernel is replaced; one in use is not. At the end its file is removed, unless another has replaced it.
 * When the connection limit is reached, the longest idle connection makes room.
 *
 * ```
 *   open ──quiet(): no new clients, no new requests──> quiet ──close(): answers out──> closed
 * ```
 * SPEC: N. `NdjsonConnection` handles the bytes and answers of one client.
 */
import { chmodSync, lstatSync, mkdirSync, renameSync, statSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Host } from "../host/host.ts";
import { CONNECTION_IDLE_MS, CONNECTIONS_MAX, SOCKET_PATH_BYTES_MAX, SOCKET_PATH_BYTES_MAX_LINUX } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { AdapterLife } from "../loop/liveness.ts";
import { requireLimit } from "../loop/loop-limits.ts";
import { errorData, thrownText } from "../message/error-data.ts";
import { type ConnectionLimits, connectionLimits } from "./connection-limits.ts";
import { FairShare } from "./fair-share.ts";
import type { ByteStream } from "./ndjson-connection.ts";
import { NdjsonConnection } from "./ndjson-connection.ts";
import { SocketError } from "./socket-error.ts";
import { UnreadOutput } from "./unread-output.ts";

export interface UnixSocketOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly path: string;
  readonly connectionsMax?: number;
  /** Limit of bytes of unread output of all clients together. */
  readonly unreadOutputAllBytesMax?: number;
  /** Limits per client. */
  readonly limits?: Partial<ConnectionLimits>;
  /** The clearance of its clients; without one it is unlimited. */
  readonly clearance?: readonly string[];
}

/** Node's default. */
const BACKLOG_MIN = 511;
/** Maximum requested from the system, which takes 32 bits and applies its own limit. */
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
  /** The file it was bound to. The system keeps its number while the socket is open, even if the file was removed. */
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

  /** Bytes written and not yet read by the clients. */
  get frames(): number {
    let frames = 0;
    for (const connection of this.#connections.keys()) frames += connection.frames;
    return frames;
  }

  /** Whether every request is answered and every answer was read by its client. */
  get isIdle(): boolean {
    for (const connection of this.#connections.keys()) if (!connection.isIdle) return false;
    return true;
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", (error) => {
        reject(new SocketError("SOCKET_FAILED", `cannot listen on ${this.path}: ${error.message}`, { cause: error }));
      });
      // Private from its first moment: the umask applies before chmod.
      const umask = process.umask(0o177);
      // As many may connect at once as may stay: all clients reconnect when a kernel restarts. Further ones are
      // accepted and refused with an error.
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
    // After a reset, `close` follows.
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

  /** Ends the longest idle connection if it is idle for long enough; false if there is none. */
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

  /** First phase of a graceful end: no new clients or requests; earlier requests are still answered. */
  quiet(): void {
    this.#serverClosed ??= new Promise<void>((resolve) => this.#closeServer(resolve));
    for (const connection of this.#connections.keys()) connection.stopReading();
  }

  /** The runtime removes the file at the path when it closes, in this call: a foreign file is moved away meanwhile. */
  #closeServer(closed: () => void): void {
    const found = identityOf(this.path);
    const isOurs = found === undefined || (found.device === this.#file?.device && found.inode === this.#file.inode);
    const aside = `${this.path}.${process.pid}`;
    if (!isOurs) renameSync(this.path, aside);
    this.#server.close(closed);
    if (!isOurs) renameSync(aside, this.path);
  }

  /** Stops listening, writes the pending answers, and closes; clients that do not read are cut off after the grace. */
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

/** Error for a path that is too long, because the system's own message does not help. */
export function socketPathTooLong(path: string): string | undefined {
  const bytes = Buffer.byteLength(path);
  const max = process.platform === "linux" ? SOCKET_PATH_BYTES_MAX_LINUX : SOCKET_PATH_BYTES_MAX;
  if (bytes <= max) return undefined;
  return `the socket's path ${path} has ${bytes} bytes, and the system takes ${max}; name a shorter one, or one from the working directory`;
}

/** Removes the socket of a dead kernel at the path; refuses a file that is not a socket, and a socket in use. */
async function clear(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket())
    throw new SocketError("SOCKET_NOT_OURS", `${path} is there and is not a socket; remove it or choose another path`);
  if (await answers(path))
    throw new SocketError("SOCKET_IN_USE", `a kernel is running on ${path}; stop it first, or set MILLRACE_DIR`);
  unlinkSync(path);
}

/** Only a refused connection proves that no kernel listens: a kernel too busy to accept is alive. */
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

const OWNER_ONLY = 0o700;

const WRITABLE_BY_OTHERS = 0o022;

const ROOT = 0;

/**
 * The folder of a socket. A user with write access to it can replace the socket, so a folder that others may write to
 * is refused. A missing folder is created for its owner only; an existing one is never changed. SPEC: N10, N22.
 */
function requireSocketFolder(folder: string): void {
  try {
    if (!statSync(folder, { throwIfNoEntry: false })) return makeOwn(folder);
  } catch (error) {
    const why = thrownText(error);
    throw new SocketError("SOCKET_FAILED", `the socket's folder ${folder} cannot be used: ${why}`, { cause: error });
  }
  const problem = unsafety(folder);
  if (problem) throw new SocketError("SOCKET_UNSAFE", problem);
}

function makeOwn(folder: string): void {
  mkdirSync(folder, { mode: OWNER_ONLY });
  // The umask may have removed rights of the owner too.
  chmodSync(folder, OWNER_ONLY);
}

function unsafety(folder: string): string | undefined {
  const user = process.getuid?.();
  // Windows has neither owners nor modes of this kind.
  if (user === undefined) return undefined;
  const { uid, mode } = statSync(folder);
  const advice = "name a socket in a folder of its own, which is made with mode 700";
  if (uid !== user && uid !== ROOT)
    return `the socket's folder ${folder} belongs to another user (${uid}), who could replace the socket; ${advice}`;
  if ((mode & WRITABLE_BY_OTHERS) === 0) return undefined;
  const shown = (mode & 0o777).toString(8);
  return `others may write to the socket's folder ${folder} (mode ${shown}) and replace the socket; ${advice}, or run: chmod go-w ${folder}`;
}

const NOTHING = new Uint8Array(0);

class SocketStream implements ByteStream {
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
