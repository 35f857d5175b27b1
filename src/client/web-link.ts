/**
 * A kernel behind a URL: one WebSocket for all links of a client. Works in browsers, and wherever a global `WebSocket`
 * is. SPEC: W62-W64.
 *
 *     idle ──open()──> connecting ──token taken──> open ──lost, or silent──> idle (its links are lost)
 *                        │    └──no answer: again, after a pause──┐
 *                        │    ^───────────────────────────────────┘
 *                        └──token refused──> idle (who opens gets the failure)
 */
import { backoffMs, jittered } from "../host/backoff.ts";
import type { Timer } from "../host/host.ts";
import { WEB_RECONNECT_MS_MAX, WEB_RECONNECT_START_MS, WEB_SILENCE_MS } from "../limits.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { JsonObject } from "../message/json.ts";
import { commandMessage, queryMessage } from "../message/lineage.ts";
import type { ClientLink, LinkEvents, Source } from "./link.ts";
import { pauseOrAbort } from "./message-stream.ts";
import type { ClientHost } from "./page-host.ts";

export interface WebOptions {
  /** The address of the kernel's server, like `https://shop.example`. Default in a page: the page's own server. */
  readonly url?: string | URL;
  /** A token of the kernel, or a function that returns one. Without it the page's cookie decides. */
  readonly token?: string | (() => string | Promise<string>);
}

const PROTOCOL = "millrace.v1";
const RECONNECTS = { startMs: WEB_RECONNECT_START_MS, maxMs: WEB_RECONNECT_MS_MAX };
/** The close code of a server that refuses the token. */
const POLICY = 1008;

const encoder = new TextEncoder();

export function webSource({ url, token }: WebOptions, host: ClientHost): WebSource {
  return new WebSource(socketUrl(url), token, host);
}

function socketUrl(given: string | URL | undefined): string {
  const page: string | undefined = (globalThis as { location?: { href?: string } }).location?.href;
  if (given === undefined && page === undefined)
    throw new Failure(422, "connect: url is missing; give the address of the kernel's server");
  let url: URL;
  try {
    url = new URL(given ?? "/", page);
  } catch (cause) {
    throw new Failure(422, `connect: url: ${String(given)} is not an address like http://127.0.0.1:4646`, { cause });
  }
  url.protocol = url.protocol.replace("http", "ws");
  url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/ws`;
  url.hash = "";
  return url.href;
}

class WebSource implements Source {
  readonly host: ClientHost;
  readonly #url: string;
  readonly #token: WebOptions["token"];
  #socket: WebSocket | undefined;
  #attempt: Promise<WebSocket> | undefined;
  /** Attempts to connect since the last connection. */
  #attempts = 0;
  /** The link of requests, and those of streams under the ids of their requests and subscriptions. */
  readonly #plain = new Set<WebLink>();
  readonly #streams = new Map<string, WebLink>();
  #silence: Timer | undefined;
  #heard = false;
  readonly #end = new AbortController();

  constructor(url: string, token: WebOptions["token"], host: ClientHost) {
    this.#url = url;
    this.#token = token;
    this.host = host;
  }

  bytesOf(text: string): number {
    return encoder.encode(text).length;
  }

  /** Waits until the kernel is reached. Fails if it refuses the token, or if the source is closed. */
  async open(events: LinkEvents, request?: Message): Promise<ClientLink> {
    const socket = this.#socket ?? (await this.#connected());
    const link = new WebLink(socket, events, request?.metadata.id ?? "", () => this.#left(link));
    if (request === undefined) this.#plain.add(link);
    else {
      this.#streams.set(link.request, link);
      link.send(JSON.stringify(request));
    }
    return link;
  }

  close(): void {
    this.#end.abort();
    this.#socket?.close();
  }

  #connected(): Promise<WebSocket> {
    this.#attempt ??= this.#connect().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #connect(): Promise<WebSocket> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      // Up to double, so that the clients of a kernel that was away do not come back in one moment.
      if (this.#attempts > 0)
        await pauseOrAbort(this.host, 2 * jittered(backoffMs(this.#attempts, RECONNECTS), this.host), signal);
      this.#attempts++;
      const token = typeof this.#token === "function" ? await this.#token() : this.#token;
      const socket = signal.aborted ? undefined : await this.#dial(token);
      if (socket !== undefined) return this.#use(socket);
    }
    throw new Failure(503, "the client is closed; connect a new one", { reason: "CLOSED", retryable: false });
  }

  /** One attempt; undefined if the kernel is not reached. */
  #dial(token: string | undefined): Promise<WebSocket | undefined> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.#url, PROTOCOL);
      const timer = this.host.timer(WEB_SILENCE_MS, () => socket.close());
      const abort = () => socket.close();
      this.#end.signal.addEventListener("abort", abort);
      const over = () => {
        timer.cancel();
        this.#end.signal.removeEventListener("abort", abort);
      };
      socket.onopen = () => {
        // The answer shows that the token, or the cookie, is taken.
        const first =
          token === undefined
            ? queryMessage(this.host, "Syscall.Ping", null)
            : commandMessage(this.host, "Sys.Authenticate", { token });
        socket.send(JSON.stringify(first));
      };
      socket.onmessage = () => {
        over();
        resolve(socket);
      };
      socket.onclose = ({ code, reason }) => {
        over();
        if (code === POLICY) reject(new Failure(401, reason, { reason: "UNAUTHENTICATED" }));
        else resolve(undefined);
      };
    });
  }

  #use(socket: WebSocket): WebSocket {
    this.#socket = socket;
    this.#attempts = 0;
    socket.onmessage = ({ data }) => this.#received(JSON.parse(String(data)) as Message);
    socket.onclose = () => this.#lost();
    this.#heard = true;
    this.#watchSilence(socket);
    return socket;
  }

  #received(message: Message): void {
    this.#heard = true;
    const { metadata } = message;
    const stream = this.#streams.get(String(metadata["subscription"] ?? causationOf(message)));
    if (stream === undefined) {
      for (const link of this.#plain) link.message(message);
      return;
    }
    if (message.kind === "reply") this.#streams.set(stream.began(message), stream);
    // Refused: there is no stream.
    else if (message.kind === "error" && stream.stream === undefined) this.#streams.delete(stream.request);
    stream.message(message);
    if (stream.isEnded) this.#left(stream);
  }

  #lost(): void {
    this.#socket = undefined;
    this.#silence?.cancel();
    const links = new Set([...this.#plain, ...this.#streams.values()]);
    this.#plain.clear();
    this.#streams.clear();
    for (const link of links) link.lost();
  }

  /** The program has ended the link: its stream ends too, or as soon as its id has come. */
  #left(link: WebLink): void {
    this.#plain.delete(link);
    const { stream } = link;
    if (stream === undefined) return;
    this.#streams.delete(link.request);
    // After a lost connection there is no stream any more.
    if (this.#streams.delete(stream.id)) link.send(JSON.stringify(commandMessage(this.host, stream.end, stream.data)));
  }

  /** A network that is gone closes no socket: silence is answered by a ping, and further silence ends the socket. */
  #watchSilence(socket: WebSocket): void {
    this.#silence = this.host.timer(
      WEB_SILENCE_MS,
      () => {
        if (!this.#heard) return socket.close();
        this.#heard = false;
        socket.send(JSON.stringify(queryMessage(this.host, "Syscall.Ping", null)));
        this.#watchSilence(socket);
      },
      { keepAlive: false },
    );
  }
}

/** Kinds of streams: the field of their id in the reply, and the request that ends them. */
const STREAM_ENDS = { watch: "Sys.Unwatch", subscription: "Sys.Unsubscribe" } as const;

class WebLink implements ClientLink {
  /** The id of the request of a stream; empty for the link of requests. */
  readonly request: string;
  /** Once the kernel has answered the request. */
  stream: { readonly id: string; readonly end: string; readonly data: JsonObject } | undefined;
  isEnded = false;
  readonly #socket: WebSocket;
  readonly #events: LinkEvents;
  readonly #left: () => void;

  constructor(socket: WebSocket, events: LinkEvents, request: string, left: () => void) {
    this.#socket = socket;
    this.#events = events;
    this.request = request;
    this.#left = left;
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  message(message: Message): void {
    if (!this.isEnded) this.#events.message(message);
  }

  /** Returns the id of the stream. */
  began({ data }: Message): string {
    for (const [name, end] of Object.entries(STREAM_ENDS)) {
      const id = (data as JsonObject)[name];
      if (typeof id === "string") this.stream = { id, end, data: { [name]: id } };
    }
    return this.stream?.id ?? this.request;
  }

  /** A WebSocket cannot wait for one reader: the stream ends, and its reader asks again after the last message. */
  pause(): void {
    this.end();
  }

  resume(): void {
    // Nothing is held back.
  }

  end(): void {
    if (this.isEnded) return;
    this.lost();
    this.#left();
  }

  lost(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#events.lost();
  }
}
