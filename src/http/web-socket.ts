/**
 * WebSocket clients: one text frame is one line of the socket's protocol, both ways, by its rules and limits. SPEC:
 * W20, W25, N.
 *
 *     waiting for a token ──Sys.Authenticate──> open ──> closed
 *       └──5 s, or a bad token──> closed (1008)
 */
import type { WebSocket } from "ws";
import type { FairShare } from "../adapters/fair-share.ts";
import { type ByteStream, NdjsonConnection } from "../adapters/ndjson-connection.ts";
import type { UnreadOutput } from "../adapters/unread-output.ts";
import type { Timer } from "../host/host.ts";
import { WEB_SOCKET_TOKEN_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import type { HttpParts } from "./http-context.ts";
import { scopedMessage } from "./message-scope.ts";
import type { Principal } from "./principal.ts";

/** Codes of RFC 6455 §7.4.1. */
const CLOSE = { normal: 1000, goingAway: 1001, unsupported: 1003, policy: 1008 } as const;

const encoder = new TextEncoder();

export interface WebSocketClientParts extends Pick<HttpParts, "host" | "kernel"> {
  readonly socket: WebSocket;
  /** Undefined: the client sends its token first. */
  readonly principal: Principal | undefined;
  readonly closed: (client: WebSocketClient) => void;
  /** Unread output and bursts of all clients of the server. */
  readonly output: UnreadOutput;
  readonly share: FairShare;
  /** The principal of a token; a `Failure` if it is not valid. */
  readonly authenticate: (token: string) => Promise<Principal | undefined>;
}

export class WebSocketClient {
  readonly #parts: WebSocketClientParts;
  readonly #socket: WebSocket;
  #connection: NdjsonConnection | undefined;
  #tokenTimer: Timer | undefined;
  #isChecking = false;
  /** With it the connection ends its socket. */
  #code: number = CLOSE.normal;

  constructor(parts: WebSocketClientParts) {
    this.#parts = parts;
    this.#socket = parts.socket;
    const { socket, principal, host } = parts;
    if (principal !== undefined) this.#open(principal);
    else {
      const late = () => this.#refuse(`no token came within ${WEB_SOCKET_TOKEN_MS} ms`);
      this.#tokenTimer = host.timer(WEB_SOCKET_TOKEN_MS, late, { keepAlive: false });
    }
    socket.on("message", (data, isBinary) => this.#frame(data as Buffer, isBinary));
    // After an error, `close` follows.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#lost());
  }

  #open(principal: Principal): void {
    const { host, kernel, output, share } = this.#parts;
    this.#connection = new NdjsonConnection({
      ...{ host, loop: kernel.loop, adapter: "web socket", clearance: principal.clearance },
      ...{ output, share },
      stream: new FrameStream(this.#socket, {
        drained: () => this.#connection?.drained(),
        codeAtEnd: () => this.#code,
      }),
      closed: () => undefined,
      admit: (message) => scopedMessage(principal, message),
    });
  }

  #frame(data: Buffer, isBinary: boolean): void {
    if (isBinary) return this.#socket.close(CLOSE.unsupported, "frames are text: one message as JSON");
    if (this.#connection === undefined)
      return void this.#authenticate(data).catch((error: unknown) => this.#refuse(thrownText(error)));
    // A line break within a frame would make two lines of it.
    const line = new Uint8Array(data.length + 1);
    for (let at = 0; at < data.length; at++) line[at] = data[at] === NEWLINE ? SPACE : (data[at] as number);
    line[data.length] = NEWLINE;
    this.#connection.data(line);
  }

  async #authenticate(data: Buffer): Promise<void> {
    if (this.#isChecking)
      return this.#refuse("the first frame is Sys.Authenticate, and the next comes after its answer");
    this.#isChecking = true;
    const request = readJson(data);
    const token =
      isJsonObject(request) && request["type"] === "Sys.Authenticate" ? tokenIn(request["data"]) : undefined;
    const principal = token === undefined ? undefined : await this.#parts.authenticate(token);
    if (principal === undefined)
      return this.#refuse("the token is not valid; the first frame is Sys.Authenticate {token}");
    // The client has left, or the server has ended its socket.
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#tokenTimer?.cancel();
    const { host } = this.#parts;
    const { metadata } = request as { metadata?: { id?: Json } };
    const answered = { id: host.id(), timestamp: host.now(), causation: metadata?.id ?? null };
    const reply = { kind: "reply", type: "Sys.Authenticate", data: { principal: principal.name }, metadata: answered };
    this.#socket.send(JSON.stringify(reply));
    this.#open(principal);
  }

  #refuse(reason: string): void {
    this.#socket.close(CLOSE.policy, clipped(reason));
  }

  #lost(): void {
    this.#tokenTimer?.cancel();
    this.#connection?.lost();
    this.#parts.closed(this);
  }

  get frames(): number {
    return this.#connection?.frames ?? 0;
  }

  quiet(): void {
    this.#connection?.stopReading();
  }

  /** Answers open requests with 503, and tells the client to come back later. */
  close(): void {
    this.#code = CLOSE.goingAway;
    this.#connection?.close();
    // A paused socket would not see the answer to the close frame.
    this.#socket.resume();
    this.#socket.close(CLOSE.goingAway, "the kernel is shutting down; connect again");
  }

  cut(): void {
    this.#socket.terminate();
  }
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const CLOSE_REASON_BYTES_MAX = 123;

interface FrameStreamEvents {
  drained(): void;
  codeAtEnd(): number;
}

/** Lines as frames. */
class FrameStream implements ByteStream {
  readonly #socket: WebSocket;
  readonly #events: FrameStreamEvents;

  constructor(socket: WebSocket, events: FrameStreamEvents) {
    this.#socket = socket;
    this.#events = events;
  }

  write(text: string): void {
    const lines = text.split("\n");
    const last = lines.length - 2;
    for (const [index, line] of lines.entries()) {
      if (line === "") continue;
      this.#socket.send(
        encoder.encode(line),
        { binary: false, compress: false },
        index >= last ? this.#sent : undefined,
      );
    }
  }

  readonly #sent = (): void => {
    if (this.#socket.bufferedAmount === 0) this.#events.drained();
  };

  get buffered(): number {
    return this.#socket.bufferedAmount;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.close(this.#events.codeAtEnd());
  }

  cut(): void {
    this.#socket.terminate();
  }

  probe(): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }
}

/** The reason of a close frame has at most 123 bytes. */
function clipped(reason: string): string {
  return encoder.encode(reason).length <= CLOSE_REASON_BYTES_MAX ? reason : "refused";
}

function readJson(data: Buffer): Json | undefined {
  try {
    return JSON.parse(data.toString("utf8")) as Json;
  } catch {
    // The caller refuses every frame that is no request.
    return undefined;
  }
}

function tokenIn(data: Json | undefined): string | undefined {
  const token = isJsonObject(data) ? data["token"] : undefined;
  return typeof token === "string" ? token : undefined;
}
