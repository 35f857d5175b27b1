/**
 * A client of a kernel: sends commands, queries and events over the socket and returns their answers. After a lost
 * connection it reconnects and repeats unanswered requests with the same ids. A transactional command still takes
 * effect once because of its receipt; a plain handler may run twice. SPEC: K30-K35.
 *
 * ```
 *   connected ──connection lost──> waiting ──connected again: unanswered requests are repeated──> connected
 *       └──────────── close() ───────┴──> closed
 * ```
 */
import { guarded } from "../host/hook.ts";
import type { Host, Timer } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECT_START_MS, CLIENT_TIMEOUT_MS } from "../limits.ts";
import { checkMessage, type Message } from "../message/envelope.ts";
import { type ErrorData, errorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { command, error, query } from "../message/lineage.ts";
import { LineLink } from "./line-link.ts";
import { type StreamedEvent, type SubscribeOptions, subscribe } from "./subscription.ts";
import { tooLongError, WaitingRequest, WaitingRequests } from "./waiting-requests.ts";

/**
 * Input and output of one type. Not limited to JSON: a schema type has `undefined` for an optional field. Sent values
 * are checked.
 */
export interface Exchange {
  readonly input: unknown;
  readonly output: unknown;
}

/** The types that a client knows: those of an app (`ExchangesOf<typeof app>`), or written by hand. */
export type Exchanges = Readonly<Record<string, Exchange>>;
/** The types of a client that knows none of the kernel's types. */
export type AnyExchanges = Readonly<Record<string, { readonly input: Json; readonly output: Json }>>;

/** The socket of a client, and its limits. */
export interface ClientOptions {
  /** The kernel's socket: `.millrace/kernel.sock`. */
  readonly path: string;
  /** Default timeout of a request; 30 s. */
  readonly timeoutMs?: number;
  /** Longer lines are not sent. Without it the kernel refuses long lines. */
  readonly lineBytesMax?: number;
  /** Called when the connection is lost while answers are due, and when it is restored. */
  readonly onConnection?: (state: "lost" | "back") => void;
  readonly host?: Host;
}

/** Options of one request. */
export interface RequestOptions {
  readonly timeoutMs?: number;
  /** Stops waiting. The kernel continues its work. */
  readonly signal?: AbortSignal;
}

/** A connection to a kernel over its Unix socket, which reconnects. */
export class Client<Types extends Exchanges = AnyExchanges> implements AsyncDisposable {
  readonly #options: ClientOptions;
  readonly #host: Host;
  readonly #onConnection: (state: "lost" | "back") => void;
  readonly #waiting = new WaitingRequests();
  #link: LineLink | undefined;
  #reconnect: Timer | undefined;
  readonly #end = new AbortController();

  /** Fails with NOT_REACHABLE if no kernel listens now. */
  static async connect<Types extends Exchanges = AnyExchanges>(options: ClientOptions): Promise<Client<Types>> {
    const client = new Client<Types>(options);
    await client.#connect();
    return client;
  }

  private constructor(options: ClientOptions) {
    this.#options = options;
    this.#host = options.host ?? systemHost();
    this.#onConnection = guarded(this.#host, options.onConnection ?? (() => undefined));
  }

  /** Sends a command and returns the data of its reply; an error answer is thrown as `Failure`. */
  async command<Type extends keyof Types & string>(
    type: Type,
    data: Types[Type]["input"],
    options?: RequestOptions,
  ): Promise<Types[Type]["output"]> {
    return dataOf(await this.request(command(this.#host, type, data as Json), options));
  }

  async query<Type extends keyof Types & string>(
    type: Type,
    data: Types[Type]["input"],
    options?: RequestOptions,
  ): Promise<Types[Type]["output"]> {
    return dataOf(await this.request(query(this.#host, type, data as Json), options));
  }

  /** Publishes an event; resolves with its id in the journal once it is durable. */
  async emit(type: string, data: Json, options?: RequestOptions): Promise<number> {
    const answer = await this.request(command(this.#host, "Journal.Publish", { type, data }), options);
    return (dataOf(answer) as { id: number }).id;
  }

  /** Events of the journal as they arrive, until the iteration, the signal or the client ends it. */
  subscribe(options: SubscribeOptions = {}): AsyncGenerator<StreamedEvent, void> {
    const signal = options.signal ? AbortSignal.any([options.signal, this.#end.signal]) : this.#end.signal;
    return subscribe({ path: this.#options.path, host: this.#host }, { ...options, signal });
  }

  /**
   * Sends a whole message and returns the whole answer, a reply or an error. The same message may be sent again later.
   */
  request(message: Message, { timeoutMs, signal }: RequestOptions = {}): Promise<Message> {
    const refusal = refusalOf(message);
    if (refusal !== undefined) return Promise.reject(new Failure(422, refusal));
    const { id } = message.metadata;
    // The kernel would refuse it too, and the answer could not be distinguished from that to the first.
    if (this.#waiting.has(id)) {
      const inUse = errorData(409, `request id ${id} is in use: this client waits for its answer already`, {
        reason: "ID_IN_USE",
      });
      return Promise.resolve(error(this.#host, message, inUse));
    }
    const line = JSON.stringify(message);
    const bytes = Buffer.byteLength(line);
    const { lineBytesMax = Number.POSITIVE_INFINITY } = this.#options;
    const wait = timeoutMs ?? this.#options.timeoutMs ?? CLIENT_TIMEOUT_MS;
    return new Promise((resolve, reject) => {
      if (this.#end.signal.aborted) return reject(closedError());
      if (signal?.aborted) return reject(signal.reason);
      if (bytes > lineBytesMax) return reject(tooLongError(message.type, bytes, `the limit is ${lineBytesMax} bytes`));
      const request = { id, type: message.type, line, bytes, timeoutMs: wait, signal };
      this.#waiting.add(new WaitingRequest(request, this.#waiting, this.#host, resolve, reject));
      if (this.#link) this.#link.send(line);
      else this.#reconnectLater(CLIENT_RECONNECT_START_MS);
    });
  }

  async #connect(): Promise<void> {
    const link = await LineLink.open(this.#options.path, this.#host, {
      message: (message) => this.#received(message),
      lost: () => this.#lost(link),
    });
    if (this.#end.signal.aborted) return link.end();
    this.#link = link;
    this.#waiting.newConnection();
  }

  #received(answer: Message): void {
    const waiting = this.#waiting.asked(answer);
    if (!waiting) return;
    if (waiting.repeated && isForTheMoment(answer)) {
      this.#host.timer(CLIENT_RECONNECT_START_MS, () => {
        if (this.#waiting.has(waiting.id)) this.#link?.send(waiting.line);
      });
      return;
    }
    waiting.answer(answer);
  }

  #lost(link: LineLink): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    if (this.#end.signal.aborted || this.#waiting.size === 0) return;
    this.#reconnectLater(CLIENT_RECONNECT_START_MS);
    this.#onConnection("lost");
  }

  #reconnectLater(delayMs: number): void {
    if (this.#reconnect) return;
    this.#reconnect = this.#host.timer(delayMs, () => {
      this.#reconnect = undefined;
      // Each request has its own timeout; when none is left no connection is needed.
      if (this.#end.signal.aborted || this.#link || this.#waiting.size === 0) return;
      this.#connect().then(
        () => this.#repeat(),
        () => this.#reconnectLater(Math.min(delayMs * 2, CLIENT_RECONNECT_MS_MAX)),
      );
    });
  }

  #repeat(): void {
    if (!this.#link) return;
    for (const waiting of this.#waiting) {
      waiting.repeated = true;
      this.#link.send(waiting.line);
    }
    this.#onConnection("back");
  }

  /** Ends the connection; waiting requests fail with CLOSED. */
  async close(): Promise<void> {
    this.#end.abort();
    this.#reconnect?.cancel();
    for (const waiting of [...this.#waiting]) waiting.fail(closedError(waiting));
    this.#link?.end();
    this.#link = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Why a message cannot be sent: `JSON.stringify` would replace impure values silently. */
function refusalOf(message: Message): string | undefined {
  const checked = checkMessage(message);
  if (checked.kind === "refused") return checked.message;
  if (message.kind === "command" || message.kind === "query") return undefined;
  return `${message.kind} ${message.type} has no answer; emit events, and send commands and queries`;
}

function dataOf(answer: Message): Json {
  if (answer.kind === "reply") return answer.data;
  throw failureFrom(answer.data as ErrorData);
}

/**
 * Temporary errors of a repeated request: the kernel has not noticed the loss of the earlier connection (409), or it is
 * starting or stopping (503). In both cases no handler ran; an answer of a handler is not `refused`.
 */
function isForTheMoment(answer: Message): boolean {
  if (answer.kind !== "error" || answer.metadata["refused"] !== true) return false;
  const { code } = answer.data as ErrorData;
  return code === 409 || code === 503;
}

/** An earlier request may have taken effect; a later one was not sent. */
function closedError(waiting?: WaitingRequest): Failure {
  const when = waiting ? `was closed while ${waiting.type} waited for its answer (id ${waiting.id})` : "is closed";
  return new Failure(503, `the client ${when}; connect a new one`, { reason: "CLOSED", retryable: false });
}
