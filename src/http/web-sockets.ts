/**
 * The WebSocket clients of a server: `GET /v1/ws` is upgraded once the gate and the token allow it. SPEC: W20, W25,
 * W26.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { FairShare } from "../adapters/fair-share.ts";
import { UnreadOutput } from "../adapters/unread-output.ts";
import { LINE_BYTES_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { HttpApp } from "./http-app.ts";
import type { OpenSocket } from "./http-context.ts";
import { problemOf } from "./problem.ts";
import { WebSocketClient } from "./web-socket.ts";

const PATH = "/v1/ws";
const PROTOCOL = "millrace.v1";

export interface WebSocketsParts extends Pick<HttpApp, "parts" | "admit" | "authenticate"> {
  readonly server: Server;
}

export class WebSockets {
  readonly clients: Set<OpenSocket>;
  readonly #parts: WebSocketsParts;
  readonly #output = new UnreadOutput();
  readonly #share = new FairShare();
  readonly #frames = new WebSocketServer({
    ...{ noServer: true, maxPayload: LINE_BYTES_MAX, perMessageDeflate: false },
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });

  constructor(parts: WebSocketsParts) {
    this.#parts = parts;
    this.clients = parts.parts.webSockets;
    parts.server.on("upgrade", (request, socket, head) => {
      // A client that leaves before its upgrade is of no interest.
      socket.on("error", () => undefined);
      this.#upgrade(request, socket, head).catch((error: unknown) => refuse(socket, error));
    });
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { parts, admit, authenticate } = this.#parts;
    const { host, kernel } = parts;
    const [path] = (incoming.url ?? "/").split("?");
    if (path !== PATH) throw new Failure(404, `web sockets are at ${PATH}, and not at ${path}`);
    if (parts.isDraining) throw new Failure(503, "the kernel is shutting down", { reason: "DRAINING" });
    const request = new Request(`http://localhost${PATH}`, { headers: headersOf(incoming) });
    const address = incoming.socket.remoteAddress ?? "unknown";
    const principal = await admit(request, address);
    // It may have begun to drain meanwhile.
    if (parts.isDraining) throw new Failure(503, "the kernel is shutting down", { reason: "DRAINING" });
    this.#frames.handleUpgrade(incoming, socket, head, (opened) => {
      const closed = (client: WebSocketClient) => this.clients.delete(client);
      this.clients.add(
        new WebSocketClient({
          ...{ host, kernel, socket: opened, principal, closed },
          ...{ output: this.#output, share: this.#share },
          authenticate: (token) => authenticate(token, address),
        }),
      );
    });
  }
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
  return headers;
}

/** Answers with the problem, as to any request. */
async function refuse(socket: Duplex, error: unknown): Promise<void> {
  const problem = problemOf(error);
  const body = await problem.text();
  const head = [
    `HTTP/1.1 ${problem.status} Refused`,
    "connection: close",
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
