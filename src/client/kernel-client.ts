/**
 * A client of a kernel: sends commands, queries and events over a link and returns their answers. After a lost
 * connection it reconnects and repeats unanswered requests with the same ids. A transactional command still takes
 * effect once because of its receipt; a plain handler may run twice. SPEC: K30-K35.
 *
 * ```
 *   connected ──connection lost──> waiting ──connected again: unanswered requests are repeated──> connected
 *       └──────────── close() ───────┴──> closed
 * ```
 */
import { guarded } from "../host/hook.ts";
import type { Timer } from "../host/host.ts";
import { CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECT_START_MS, CLIENT_TIMEOUT_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, errorData, Failure, failureFrom, isFailure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { commandMessage, queryMessage } from "../message/lineage.ts";
import type { ClientLink, Source } from "./link.ts";
import type { ClientHost } from "./page-host.ts";
import { type EventSubscribeOptions, type StreamedEvent, subscribe } from "./subscription.ts";
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

/** Limits of the requests of a client. */
export interface RequestsOptions {
  /** Default timeout of a request; 30 s. */
  readonly timeoutMs?: number;
  /** Longer lines are not sent. Without it the kernel refuses long lines. */
  readonly lineBytesMax?: number;
  /** Called when the connection is lost while answers are due, and when it is restored. */
  readonly onConnection?: (state: "lost" | "back") => void;
}

/** The state of the connection, and how many requests wait for their answers. */
export interface Status {
  /** `refused`: the kernel does not take the token; the next request tries again. */
  readonly connection: "connecting" | "connected" | "away" | "refused" | "closed";
  readonly waiting: number;
}

/** Options of one request. */
export interface RequestOptions {
  readonly timeoutMs?: number;
  /** Stops waiting. The kernel continues its work. */
  readonly signal?: AbortSignal;
}

type RefusalOf = (message: Message) => string | undefined;

/** Sends requests over a link, and repeats them after a lost connection. */
export class KernelClient<Types extends Exchanges = AnyExchanges> implements AsyncDisposable {
  readonly #options: RequestsOptions;
  readonly #source: Source;
  readonly #refusalOf: RefusalOf;
  readonly #host: ClientHost;
  readonly #onConnection: (state: "lost" | "back") => void;
  readonly #waiting = new WaitingRequests(() => this.#statusChanged());
  readonly #statusListeners = new Set<() => void>();
  #connection: Status["connection"] = "connecting";
  #status: Status | undefined;
  #link: ClientLink | undefined;
  #reconnect: Timer | undefined;
  #isConnecting = false;
  /** It stays connected while no request waits. */
  #keeps = false;
  readonly #end = new AbortController();

  /** `refusalOf` tells why a message cannot be sent: `JSON.stringify` would replace values that are not JSON. */
  constructor(source: Source, options: RequestsOptions, refusalOf: RefusalOf) {
    this.#refusalOf = refusalOf;
    this.#source = source;
    this.#options = options;
    this.#host = source.host;
    this.#onConnection = guarded(this.#host, options.onConnection ?? (() => undefined));
  }

  /** Fails with NOT_REACHABLE if no kernel listens now. */
  connect(): Promise<void> {
    return this.#connect();
  }

  /** Connects now, and tries again until it succeeds or the kernel refuses. */
  begin(): void {
    this.#keeps = true;
    this.#reconnectLater(0);
  }

  /** Sends a command and returns the data of its reply; an error answer is thrown as `Failure`. */
  async command<Type extends keyof Types & string>(
    type: Type,
    data: Types[Type]["input"],
    options?: RequestOptions,
  ): Promise<Types[Type]["output"]> {
    return dataOf(await this.request(commandMessage(this.#host, type, data as Json), options));
  }

  async query<Type extends keyof Types & string>(
    type: Type,
    data: Types[Type]["input"],
    options?: RequestOptions,
  ): Promise<Types[Type]["output"]> {
    return dataOf(await this.request(queryMessage(this.#host, type, data as Json), options));
  }

  /** Publishes an event; resolves with its id in the journal once it is durable. */
  async emit(type: string, data: Json, options?: RequestOptions): Promise<number> {
    const answer = await this.request(commandMessage(this.#host, "Journal.Publish", { type, data }), options);
    return (dataOf(answer) as { id: number }).id;
  }

  /** Events of the journal as they arrive, until the iteration, the signal or the client ends it. */
  subscribe(options: EventSubscribeOptions = {}): AsyncGenerator<StreamedEvent, void> {
    const signal = options.signal ? AbortSignal.any([options.signal, this.#end.signal]) : this.#end.signal;
    return subscribe(this.#source, { ...options, signal });
  }

  /**
   * Sends a whole message and returns the whole answer, a reply or an error. The same message may be sent again later.
   */
  request(message: Message, { timeoutMs, signal }: RequestOptions = {}): Promise<Message> {
    const refusal = this.#refusalOf(message);
    if (refusal !== undefined) return Promise.reject(new Failure(422, refusal));
    const { id } = message.metadata;
    // The kernel would refuse it too, and the answer could not be distinguished from that to the first.
    if (this.#waiting.has(id)) {
      const inUse = errorData(409, `request id ${id} is in use: this client waits for its answer already`, {
        reason: "ID_IN_USE",
      });
      const metadata = { id: this.#host.id(), timestamp: this.#host.now(), causation: id };
      return Promise.resolve({ kind: "error", type: message.type, data: inUse, metadata });
    }
    const line = JSON.stringify(message);
    const bytes = this.#source.bytesOf(line);
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
    this.#isConnecting = true;
    try {
      const link = await this.#source.open({
        message: (message) => this.#received(message),
        lost: () => this.#lost(link),
      });
      if (this.#end.signal.aborted) return link.end();
      this.#link = link;
      this.#waiting.newConnection();
      this.#isNow("connected");
    } finally {
      this.#isConnecting = false;
    }
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

  #lost(link: ClientLink): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    if (this.#end.signal.aborted) return;
    this.#isNow("away");
    if (this.#isNeeded) this.#reconnectLater(CLIENT_RECONNECT_START_MS);
    if (this.#waiting.size > 0) this.#onConnection("lost");
  }

  /** Each request has its own timeout; when none is left no connection is needed, unless the client keeps one. */
  get #isNeeded(): boolean {
    return !this.#end.signal.aborted && this.#link === undefined && (this.#keeps || this.#waiting.size > 0);
  }

  #reconnectLater(delayMs: number): void {
    if (this.#reconnect || this.#isConnecting) return;
    this.#reconnect = this.#host.timer(delayMs, () => {
      this.#reconnect = undefined;
      if (!this.#isNeeded) return;
      this.#connect().then(
        () => this.#repeat(),
        (error: unknown) => {
          if (isFailure(error, "UNAUTHENTICATED")) this.#refused(error);
          else if (this.#isNeeded) this.#reconnectLater(Math.min(delayMs * 2 + 1, CLIENT_RECONNECT_MS_MAX));
        },
      );
    });
  }

  /** The next request tries again: its token may be a new one. */
  #refused(failure: Failure): void {
    this.#isNow("refused");
    for (const waiting of [...this.#waiting]) waiting.fail(failure);
  }

  #isNow(connection: Status["connection"]): void {
    if (this.#connection === connection) return;
    this.#connection = connection;
    this.#statusChanged();
  }

  #statusChanged(): void {
    this.#status = undefined;
    for (const listener of [...this.#statusListeners]) listener();
  }

  #repeat(): void {
    if (!this.#link) return;
    const { size } = this.#waiting;
    for (const waiting of this.#waiting) {
      waiting.repeated = true;
      this.#link.send(waiting.line);
    }
    if (size > 0) this.#onConnection("back");
  }

  /** Ends the connection; waiting requests fail with CLOSED. */
  async close(): Promise<void> {
    this.#end.abort();
    this.#reconnect?.cancel();
    for (const waiting of [...this.#waiting]) waiting.fail(closedError(waiting));
    this.#link?.end();
    this.#link = undefined;
    this.#isNow("closed");
  }

  /** The same object until it changes. */
  get status(): Status {
    this.#status ??= { connection: this.#connection, waiting: this.#waiting.size };
    return this.#status;
  }

  /** Calls back when the status has changed, until the returned function is called. */
  onStatus(listener: () => unknown): () => void {
    const heard = guarded(this.#host, listener);
    this.#statusListeners.add(heard);
    return () => void this.#statusListeners.delete(heard);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
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
