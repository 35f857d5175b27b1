/**
 * Events for clients that ask for them (the explicit mechanism that RFC 0032 §13.5 leaves open):
 *
 *     Sys.Subscribe   {types?, topics?, from?} -> {subscription}   events written to this connection only, in journal order
 *     Sys.Unsubscribe {subscription}           -> {removed}
 *
 * Each event carries its journal id (`metadata.journalId`): who lost the connection goes on from there with `from`. The journal is
 * read no faster than the client reads, so a slow one costs no memory; one that stops reading altogether is let go, with an error
 * that says where to go on. So is one that has missed events which are not in the journal any more. However much of the journal is not wanted, others get in between. SPEC: L1, N12.
 */
import { EventsGone } from "../bus/bus-error.ts";
import type { Host, Timer } from "../host/host.ts";
import { STREAM_BURST_EVENTS, STREAM_NAMES_MAX, STREAM_STALLED_MS, STREAMS_MAX } from "../limits.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { type ErrorData, errorData, Failure, thrownText } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { error } from "../message/lineage.ts";
import { checkTopicPattern, matchesTopic } from "../message/topic-pattern.ts";
import type { EventJournal, JournaledEvent } from "./event-journal.ts";
import type { Connection } from "./inbound.ts";

interface Wanted {
  readonly types: ReadonlySet<string>;
  readonly topics: readonly string[];
  readonly from: number | undefined;
}

type Next = IteratorResult<JournaledEvent, unknown>;

interface Stream {
  readonly id: string;
  readonly request: Pick<Message, "type" | "metadata">;
  readonly connection: Connection;
  readonly wanted: Wanted;
  readonly abort: AbortController;
}

export class EventStreams {
  readonly #host: Host;
  readonly #journal: EventJournal | undefined;
  readonly #streams = new Map<Connection, Map<string, Stream>>();

  constructor({ host, journal }: { host: Host; journal: EventJournal | undefined }) {
    this.#host = host;
    this.#journal = journal;
  }

  get size(): number {
    let size = 0;
    for (const streams of this.#streams.values()) size += streams.size;
    return size;
  }

  /** Answers `Sys.Subscribe`; throws a `Failure` with the reason where it cannot. Events follow the answer. */
  subscribe(request: Message, connection: Connection): Json {
    // Nor will it ever: whoever takes a 503 for an invitation to come again would come for ever.
    if (!this.#journal?.follow) throw new Failure(404, "this kernel keeps no journal that could be followed");
    const wanted = readWanted(request.data);
    const streams = this.#streams.get(connection) ?? new Map<string, Stream>();
    if (streams.size >= STREAMS_MAX) throw new Failure(503, `a connection has at most ${STREAMS_MAX} subscriptions`);
    const { type, metadata } = request;
    const stream = {
      id: this.#host.id(),
      request: { type, metadata },
      connection,
      wanted,
      abort: new AbortController(),
    };
    this.#streams.set(connection, streams.set(stream.id, stream));
    const follow = { after: wanted.from, signal: stream.abort.signal };
    const events = this.#journal.follow(follow)[Symbol.asyncIterator]();
    // Asked for now, so that what comes after our answer is not missed.
    this.#pump(stream, events, events.next()).catch((thrown: unknown) => {
      if (!(thrown instanceof EventsGone))
        return this.#fail(stream, errorData(503, `the journal cannot be read: ${thrownText(thrown)}`));
      const { firstId, lastId, message } = thrown;
      const gone = { ...errorData(410, message), firstId, lastId };
      this.#fail(stream, gone);
    });
    return { subscription: stream.id };
  }

  /** Answers `Sys.Unsubscribe`; only a connection's own can be ended. */
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

  async #pump(stream: Stream, events: AsyncIterator<JournaledEvent>, first: Promise<Next>): Promise<void> {
    // Awaited below; failing before that, it would end the process.
    first.catch(() => undefined);
    // The answer goes first: it is delivered in the turn that this was called in.
    await this.#host.yield();
    let looked = 0;
    for (let next = await first; !next.done; next = await events.next()) {
      if (++looked % STREAM_BURST_EVENTS === 0) await this.#host.yield();
      if (stream.abort.signal.aborted) return;
      const { id, topic, message } = next.value;
      if (!wants(stream.wanted, message.type, topic)) continue;
      if (!(await this.#room(stream))) {
        // Not from the last one sent: there may be none, and what came after that was looked at and is not wanted.
        const reason = `too slow: nothing was read for ${STREAM_STALLED_MS} ms; subscribe again with from ${id - 1}`;
        return this.#fail(stream, errorData(503, reason));
      }
      if (stream.abort.signal.aborted) return;
      const metadata = { ...message.metadata, journalId: id, subscription: stream.id };
      stream.connection.stream({ ...message, metadata });
    }
  }

  /** Waits until the client has taken what it was given; false when it does not. */
  #room({ connection, abort }: Stream): boolean | Promise<boolean> {
    if (connection.hasRoom || abort.signal.aborted) return true;
    let timer: Timer | undefined;
    const stalled = new Promise<boolean>((resolve) => {
      timer = this.#host.timer(STREAM_STALLED_MS, () => resolve(false), { keepAlive: false });
    });
    return Promise.race([connection.whenRoom().then(() => true), stalled]).finally(() => timer?.cancel());
  }

  #fail(stream: Stream, reason: ErrorData): void {
    if (stream.abort.signal.aborted) return;
    this.#end(stream);
    // A second word on the same request, after its reply: it is how a stream ends early.
    const failure = error(this.#host, stream.request, reason);
    const metadata: JsonObject = { ...failure.metadata, subscription: stream.id } as JsonObject;
    stream.connection.stream({ ...failure, metadata: metadata as Message["metadata"] });
  }

  #end(stream: Stream): void {
    stream.abort.abort();
    const streams = this.#streams.get(stream.connection);
    streams?.delete(stream.id);
    if (streams?.size === 0) this.#streams.delete(stream.connection);
  }
}

function wants({ types, topics }: Wanted, type: string, topic: string): boolean {
  if (types.size === 0 && topics.length === 0) return true;
  return types.has(type) || topics.some((pattern) => matchesTopic(pattern, topic));
}

function readWanted(data: Json): Wanted {
  if (data !== null && !isJsonObject(data))
    throw new Failure(422, "data: must be an object like {types, topics, from}");
  const { types = [], topics = [], from } = (data ?? {}) as { types?: unknown; topics?: unknown; from?: unknown };
  if (!isNames(types))
    throw new Failure(422, `data.types: must be a list of at most ${STREAM_NAMES_MAX} message types`);
  if (!isNames(topics))
    throw new Failure(422, `data.topics: must be a list of at most ${STREAM_NAMES_MAX} topics or patterns`);
  const strange = types.find((type) => !isMessageType(type));
  if (strange !== undefined) throw new Failure(422, `data.types: ${JSON.stringify(strange)} is not a message type`);
  for (const topic of topics) {
    try {
      checkTopicPattern(topic);
    } catch (thrown) {
      throw new Failure(422, `data.topics: ${thrownText(thrown)}`);
    }
  }
  if (from !== undefined && !(Number.isSafeInteger(from) && (from as number) >= 0)) {
    throw new Failure(422, "data.from: must be a journal id; events after it are sent");
  }
  return { types: new Set(types), topics, from: from as number | undefined };
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= STREAM_NAMES_MAX && value.every((name) => typeof name === "string");
}
