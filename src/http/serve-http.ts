/**
 * Serves a kernel over HTTP and WebSocket on Node. SPEC: W20, W23-W25.
 *
 *     open ──quiet(): not ready, no new streams──> draining ──close(): streams end, answers out──> closed
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import {
  DRAIN_MS,
  HTTP_BODY_MS,
  HTTP_CONNECTIONS_MAX,
  HTTP_HEADER_BYTES_MAX,
  HTTP_HEADERS_MS,
  HTTP_IDLE_MS,
} from "../limits.ts";
import type { AdapterLife } from "../loop/liveness.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { LOOPBACK_HOSTS } from "./gate.ts";
import { type HttpAppOptions, makeHttpApp, type Served } from "./http-app.ts";
import type { HttpParts } from "./http-context.ts";
import { secretsIn, TlsCertificate, type TlsFiles } from "./tls-certificate.ts";
import { WebSockets } from "./web-sockets.ts";

/** Options of `serveHttp`: port, address and TLS, beside those of `httpApp`. */
export interface ServeHttpOptions extends HttpAppOptions {
  /** Default 4646; 0 for any free one. */
  readonly port?: number;
  /** The address to listen on. Default 127.0.0.1: this machine alone. */
  readonly address?: string;
  /** PEM files. Without them the server speaks plain HTTP. New ones are taken within a minute. */
  readonly tls?: TlsFiles;
}

/** A running server. */
export interface HttpServer extends AsyncDisposable {
  /** Like `http://127.0.0.1:4646`. */
  readonly url: string;
  /** Takes the certificate and the key from their files now. Throws, and keeps the old ones, if they cannot be used. */
  reloadTls(): void;
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

/** The server cannot listen, or would be unsafe. */
export class HttpError extends MillraceError<"HTTP_FAILED" | "HTTP_UNSAFE"> {
  override readonly name = "HttpError";
}

const DEFAULT_PORT = 4646;

/** Listens; resolves when it is ready. The kernel closes it with itself. */
export async function serveHttp(served: Served, options: ServeHttpOptions = {}): Promise<HttpServer> {
  const { port = DEFAULT_PORT, address = "127.0.0.1", tls, ...rest } = options;
  if (rest.authenticate === "none" && !isLoopback(address))
    throw new HttpError("HTTP_UNSAFE", `without tokens it listens on loopback alone, not on ${address}; use tokens`);
  const host = rest.host ?? systemHost();
  const hosts = rest.hosts ?? [...LOOPBACK_HOSTS, ...(isLoopback(address) || isWildcard(address) ? [] : [address])];
  const { app, parts, admit, authenticate } = makeHttpApp(served, { ...rest, host, hosts });
  const server = createAdaptorServer({
    fetch: app.fetch,
    // The program around keeps the runtime's own Request and Response.
    overrideGlobalObjects: false,
    ...(tls === undefined
      ? { createServer, serverOptions: SERVER_OPTIONS }
      : { createServer: createSecureServer, serverOptions: { ...SERVER_OPTIONS, ...secretsIn(tls) } }),
  }) as Server;
  server.maxConnections = HTTP_CONNECTIONS_MAX;
  server.on("request", (incoming, response) => {
    limitBodyTime(host, incoming, response);
    response.on("close", () => {
      if (parts.isDraining) server.closeIdleConnections();
    });
  });
  const sockets = new WebSockets({ server, parts, admit, authenticate });
  const bound = await listening(server, port, address);
  const certificate = tls && new TlsCertificate({ host, files: tls, server: server as SecureServer });
  const url = urlOf(bound, tls !== undefined);
  return new RunningServer({ host, server, sockets, parts, certificate, url });
}

const SERVER_OPTIONS = {
  maxHeaderSize: HTTP_HEADER_BYTES_MAX,
  headersTimeout: HTTP_HEADERS_MS,
  // The time of a body is limited by `limitBodyTime`: an exchange of lines has none.
  requestTimeout: 0,
  keepAliveTimeout: HTTP_IDLE_MS,
  connectionsCheckingInterval: 1_000,
  noDelay: true,
};

function listening(server: Server, port: number, address: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: Error & { code?: string }) => {
      const advice = error.code === "EADDRINUSE" ? "; choose another port" : "";
      const text = `cannot listen on ${address}:${port}: ${error.message}${advice}`;
      reject(new HttpError("HTTP_FAILED", text, { cause: error }));
    });
    server.listen({ port, host: address }, () => {
      // A connection that cannot be accepted (no file left) is no reason to end the process.
      server.on("error", () => undefined);
      resolve(server.address() as AddressInfo);
    });
  });
}

function urlOf({ address, family, port }: AddressInfo, isSecure: boolean): string {
  return `${isSecure ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^127(?:\.\d{1,3}){3}$/.test(address);
}

function isWildcard(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

interface RunningParts {
  readonly host: Host;
  readonly server: Server;
  readonly sockets: WebSockets;
  readonly parts: HttpParts;
  readonly certificate: TlsCertificate | undefined;
  readonly url: string;
}

class RunningServer implements HttpServer, AdapterLife {
  readonly url: string;
  readonly #running: RunningParts;
  readonly #detach: () => void;
  #closing: Promise<void> | undefined;

  constructor(running: RunningParts) {
    this.#running = running;
    this.url = running.url;
    this.#detach = running.parts.kernel.loop.attach(this);
  }

  get frames(): number {
    const { sockets, parts } = this.#running;
    let frames = 0;
    for (const one of [...sockets.clients, ...parts.streams]) frames += one.frames;
    return frames;
  }

  reloadTls(): void {
    this.#running.certificate?.reload();
  }

  quiet(): void {
    const { parts, sockets, server } = this.#running;
    parts.isDraining = true;
    for (const client of sockets.clients) client.quiet();
    server.closeIdleConnections();
  }

  close({ graceMs = DRAIN_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const { host, server, sockets, parts, certificate } = this.#running;
    certificate?.stop();
    this.quiet();
    for (const stream of [...parts.streams]) stream.dismiss();
    for (const client of [...sockets.clients]) client.close();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const timer = host.timer(graceMs, () => {
      for (const client of [...sockets.clients]) client.cut();
      server.closeAllConnections();
    });
    await closed;
    timer.cancel();
    this.#detach();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const UNLIMITED_PATH = "/v1/messages";

const TOO_LATE = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/**
 * The time of a request's body: a client that sends it slower is answered with 408, and its connection ends. An
 * exchange of lines goes on as long as its client wants. SPEC: W23, W93.
 */
function limitBodyTime(host: Host, incoming: IncomingMessage, response: ServerResponse): void {
  const { headers, url, socket } = incoming;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!hasBody || url?.split("?", 1)[0] === UNLIMITED_PATH) return;
  const timer = host.timer(
    HTTP_BODY_MS,
    () => {
      if (incoming.complete) return;
      if (!response.headersSent) socket.write(TOO_LATE);
      socket.destroySoon();
    },
    { keepAlive: false },
  );
  const cancel = () => timer.cancel();
  incoming.once("end", cancel).once("close", cancel);
}
