/**
 * One subscription as a response: server-sent events, or lines of JSON. SPEC: W20, W24.
 */
import type { Host, Timer } from "../host/host.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Connection } from "../loop/pending-request.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, errorData } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { error } from "../message/lineage.ts";
import { AnswerStream } from "./answer-stream.ts";
import type { Principal } from "./principal.ts";

/** A comment on a silent stream, so that proxies do not end it. */
const HEARTBEAT_MS = 15_000;
const ENDED = errorData(503, "the stream has ended", { reason: "DRAINING" });

/** The text of messages. */
export interface StreamFormat {
  readonly contentType: string;
  readonly begin: string;
  readonly heartbeat: string;
  readonly bye: string;
  message(message: Message): string;
  failure(error: ErrorData): string;
}

export interface EventSourceParts {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly principal: Principal;
  readonly format: StreamFormat;
  /** The stream has ended. */
  readonly closed: (source: EventSource) => void;
}

export class EventSource implements Connection {
  readonly id: string;
  readonly adapter = "http";
  readonly clearance?: readonly string[];
  readonly #parts: EventSourceParts;
  readonly #out: AnswerStream;
  #heartbeat: Timer;
  #opened!: (answer: Message) => void;
  readonly #first: Promise<Message>;
  /** Why the subscription has ended, and whether a message came before. */
  #failure: ErrorData | undefined;
  #begun: () => void = () => undefined;
  #hasBegun = false;

  constructor(parts: EventSourceParts) {
    const { host, loop, principal, closed } = parts;
    this.#parts = parts;
    this.id = host.id();
    if (principal.clearance !== undefined) this.clearance = principal.clearance;
    this.#out = new AnswerStream(() => {
      this.#heartbeat.cancel();
      loop.disconnect(this);
      closed(this);
      // A request that still waits for the answer of the loop would wait for ever.
      this.#opened(error(host, { type: "Sys.Subscribe", metadata: { id: this.id, timestamp: host.now() } }, ENDED));
    });
    this.#first = new Promise((resolve) => {
      this.#opened = resolve;
    });
    this.#heartbeat = this.#beatLater();
  }

  #beatLater(): Timer {
    const { host, format } = this.#parts;
    const beat = () => {
      if (this.#out.hasRoom) this.#out.write(format.heartbeat);
      this.#heartbeat = this.#beatLater();
    };
    return host.timer(HEARTBEAT_MS, beat, { keepAlive: false });
  }

  /** Sends the command that begins the subscription; resolves with its answer. */
  open(type: string, data: Json): Promise<Message> {
    const { host, loop, principal } = this.#parts;
    const metadata = { id: host.id(), timestamp: host.now(), principal: principal.name };
    loop.receive({ kind: "command", type, data, metadata }, this);
    return this.#first;
  }

  response(headers: Readonly<Record<string, string>> = {}): Response {
    const { contentType, begin } = this.#parts.format;
    if (begin !== "") this.#out.write(begin);
    return new Response(this.#out.body, {
      headers: {
        "content-type": contentType,
        "cache-control": "no-store",
        // For nginx: a buffered stream would be late.
        "x-accel-buffering": "no",
        ...headers,
      },
    });
  }

  /**
   * Waits for the first message, at most so long. The reason if the subscription has failed, and wrote no message
   * before.
   */
  async failedWithin(ms: number, host: Host): Promise<ErrorData | undefined> {
    await new Promise<void>((resolve) => {
      const timer = host.timer(ms, resolve, { keepAlive: false });
      this.#begun = () => {
        timer.cancel();
        resolve();
      };
      if (this.#hasBegun) this.#begun();
    });
    return this.#failure;
  }

  deliver(answer: Message): void {
    this.#opened(answer);
  }

  stream(message: Message): void {
    const { format } = this.#parts;
    // A live query that fails goes on: its next answer follows.
    if (message.kind !== "error" || message.metadata["watch"] !== undefined) this.#out.write(format.message(message));
    else {
      this.#opened(message);
      if (!this.#hasBegun) this.#failure = message.data as ErrorData;
      this.#out.write(format.failure(message.data as ErrorData));
      this.#out.end();
    }
    this.#hasBegun = true;
    this.#begun();
  }

  get hasRoom(): boolean {
    return this.#out.hasRoom;
  }

  whenRoom(): Promise<void> {
    return this.#out.whenRoom();
  }

  /** Bytes that the client has not read. */
  get frames(): number {
    return this.#out.unread;
  }

  /** Ends the stream in good order: the client is told to come back. */
  dismiss(): void {
    this.#out.write(this.#parts.format.bye);
    this.#out.end();
  }

  drop(reason: string): void {
    this.#out.cut(reason);
  }
}

/** A message for a reader of a stream. */
export interface ServerEvent {
  /** The client sends it as `Last-Event-ID` when it comes back. */
  readonly id?: string;
  readonly event: string;
  readonly data: Json | Message | ErrorData;
}

export function serverSent({ id, event, data }: ServerEvent): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
