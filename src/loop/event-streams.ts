/**
 * Events for clients that ask for them (the explicit mechanism that RFC 0032 §13.5 leaves open):
 *
 *     Sys.Subscribe   {types?, topics?, from?} -> {subscription}   events for this connection, in order
 *     Sys.Unsubscribe {subscription}           -> {removed}
 *
 * Each event carries its cursor (`metadata.cursor`): after a lost connection the client resumes there with `from`. A
 * client that stops reading loses the stream, with an error that names the place to go on; so does a client that missed
 * events which retention has removed. `StreamReader` reads the journal for all streams. SPEC: N12, N16-N18.
 */
import type { Host } from "../host/host.ts";
import { STREAM_NAMES_ALL_MAX, STREAMS_ALL_MAX, STREAMS_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, Failure } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { error } from "../message/lineage.ts";
import { JOURNAL_START, type JournalPosition } from "../store/journal-position.ts";
import type { EventFeed, EventJournal } from "./event-journal.ts";
import type { Connection } from "./pending-request.ts";
import { readStreamRequest, type StreamFilter } from "./stream-filter.ts";
import { type EventStream, StreamReader, unreadable } from "./stream-reader.ts";

export class EventStreams {
  readonly #host: Host;
  readonly #feed: EventFeed | undefined;
  readonly #reader: StreamReader | undefined;
  readonly #streams = new Map<Connection, Map<string, EventStream>>();
  #size = 0;
  /** Types and topics of all streams together. */
  #names = 0;

  constructor({ host, journal }: { host: Host; journal: EventJournal | undefined }) {
    this.#host = host;
    this.#feed = journal?.feed;
    const write = (stream: EventStream, message: Message) => this.#write(stream, message);
    const fail = (stream: EventStream, reason: ErrorData) => this.#fail(stream, reason);
    this.#reader = this.#feed && new StreamReader({ host, feed: this.#feed, write, fail });
  }

  get size(): number {
    return this.#size;
  }

  /** Whether a connection has streams. */
  has(connection: Connection): boolean {
    return this.#streams.has(connection);
  }

  /** Answers `Sys.Subscribe`; throws a `Failure` with the reason where it cannot. Events follow the answer. */
  subscribe(request: Message, connection: Connection): Json {
    // Not 503: a client that repeats a 503 later would repeat it for ever.
    if (!this.#feed || !this.#reader) throw new Failure(404, "this kernel keeps no journal that could be followed");
    const { filter, from } = readStreamRequest(request.data);
    const streams = this.#streams.get(connection) ?? new Map<string, EventStream>();
    this.#requirePlace(streams.size, this.#names + namesIn(filter));
    const { type, metadata } = request;
    const stream: EventStream = {
      ...{ id: this.#host.id(), request: { type, metadata }, connection, filter },
      ...{ state: "following", position: from ?? JOURNAL_START, resumes: from?.history !== "" },
    };
    this.#streams.set(connection, streams.set(stream.id, stream));
    this.#size++;
    this.#names += namesIn(filter);
    // Read now: events that come after the answer are sent.
    const position = from === undefined ? this.#feed.end() : Promise.resolve(from);
    this.#begin(stream, position, this.#reader).catch((thrown: unknown) => this.#fail(stream, unreadable(thrown)));
    return { subscription: stream.id };
  }

  #requirePlace(ofConnection: number, names: number): void {
    if (ofConnection >= STREAMS_MAX)
      throw new Failure(503, `a connection has at most ${STREAMS_MAX} subscriptions; end one with Sys.Unsubscribe`);
    if (this.#size >= STREAMS_ALL_MAX)
      throw new Failure(503, `this kernel has ${STREAMS_ALL_MAX} subscriptions, its limit; subscribe again later`);
    if (names > STREAM_NAMES_ALL_MAX)
      throw new Failure(
        503,
        `all subscriptions together name at most ${STREAM_NAMES_ALL_MAX} types and topics; name fewer, or use a pattern`,
      );
  }

  async #begin(stream: EventStream, position: Promise<JournalPosition>, reader: StreamReader): Promise<void> {
    // Awaited below; a rejection before that must not count as unhandled.
    position.catch(() => undefined);
    // The answer goes first: it is delivered in the turn that this was called in.
    await this.#host.yield();
    stream.position = await position;
    if (stream.state === "following") reader.join(stream);
  }

  /** Answers `Sys.Unsubscribe`; a connection can end its own subscriptions only. */
  unsubscribe(request: Message, connection: Connection): Json {
    const { subscription } = (isJsonObject(request.data) ? request.data : {}) as { subscription?: unknown };
    if (typeof subscription !== "string") throw new Failure(422, "data.subscription: must be the id of a subscription");
    const stream = this.#streams.get(connection)?.get(subscription);
    if (stream) this.#end(stream);
    return { removed: stream !== undefined };
  }

  disconnect(connection: Connection): void {
    for (const stream of [...(this.#streams.get(connection)?.values() ?? [])]) this.#end(stream);
  }

  close(): void {
    for (const connection of [...this.#streams.keys()]) this.disconnect(connection);
  }

  #fail(stream: EventStream, reason: ErrorData): void {
    if (stream.state === "ended") return;
    this.#end(stream);
    // A second answer to the same request, after its reply: so a stream ends early.
    const failure = error(this.#host, stream.request, reason);
    const metadata: JsonObject = { ...failure.metadata, subscription: stream.id } as JsonObject;
    this.#write(stream, { ...failure, metadata: metadata as Message["metadata"] });
  }

  /** An adapter that fails loses its stream; the others go on. */
  #write(stream: EventStream, message: Message): void {
    try {
      stream.connection.stream(message);
    } catch (thrown) {
      this.#end(stream);
      this.#host.report(thrown, `event stream of ${stream.connection.adapter}`);
    }
  }

  #end(stream: EventStream): void {
    if (stream.state === "ended") return;
    stream.state = "ended";
    this.#reader?.leave(stream);
    this.#size--;
    this.#names -= namesIn(stream.filter);
    const streams = this.#streams.get(stream.connection);
    streams?.delete(stream.id);
    if (streams?.size === 0) this.#streams.delete(stream.connection);
  }
}

function namesIn({ types, topics }: StreamFilter): number {
  return types.size + topics.size;
}
