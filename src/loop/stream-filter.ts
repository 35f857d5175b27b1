/**
 * The filters of event streams: reading one from a `Sys.Subscribe`, and an index that finds the streams of an event.
 */
import { STREAM_MATCHES_REMEMBERED_MAX, STREAM_NAMES_MAX } from "../limits.ts";
import { isMessageType } from "../message/envelope.ts";
import { Failure, thrownText } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { checkTopicPattern, isWildcard, matchesTopic } from "../message/topic-pattern.ts";
import { type JournalPosition, positionOf } from "../store/journal-position.ts";

/** The events of a stream; without types and topics, all events. */
export interface StreamFilter {
  readonly types: ReadonlySet<string>;
  /** Topics and patterns. */
  readonly topics: ReadonlySet<string>;
}

interface Filtered {
  readonly filter: StreamFilter;
}

export class FilterIndex<Stream extends Filtered> {
  readonly #unfiltered = new Set<Stream>();
  readonly #byType = new Map<string, Set<Stream>>();
  readonly #byTopic = new Map<string, Set<Stream>>();
  readonly #byPattern = new Map<string, Set<Stream>>();
  /** The patterns that match a topic; cleared whenever a pattern is added. */
  readonly #matches = new Map<string, readonly string[]>();
  /** Topics and patterns in `#matches` together. */
  #remembered = 0;
  /** Grows by one for each pattern and each stream that was looked at: the measure of work. */
  looks = 0;

  add(stream: Stream): void {
    const { types, topics } = stream.filter;
    if (types.size + topics.size === 0) this.#unfiltered.add(stream);
    for (const type of types) put(this.#byType, type, stream);
    for (const topic of topics) {
      if (!isWildcard(topic)) put(this.#byTopic, topic, stream);
      else if (put(this.#byPattern, topic, stream)) this.#forgetMatches();
    }
  }

  delete(stream: Stream): void {
    const { types, topics } = stream.filter;
    this.#unfiltered.delete(stream);
    for (const type of types) take(this.#byType, type, stream);
    // A match that names a pattern without streams finds none: it may stay.
    for (const topic of topics) take(isWildcard(topic) ? this.#byPattern : this.#byTopic, topic, stream);
  }

  /** The streams that want an event, each once. */
  wanting(type: string, topic: string): ReadonlySet<Stream> {
    const found = new Set<Stream>(this.#unfiltered);
    for (const stream of this.#byType.get(type) ?? []) found.add(stream);
    for (const stream of this.#byTopic.get(topic) ?? []) found.add(stream);
    for (const pattern of this.#patternsFor(topic)) {
      this.looks++;
      for (const stream of this.#byPattern.get(pattern) ?? []) found.add(stream);
    }
    this.looks += found.size;
    return found;
  }

  #patternsFor(topic: string): readonly string[] {
    if (this.#byPattern.size === 0) return [];
    const known = this.#matches.get(topic);
    if (known) return known;
    this.looks += this.#byPattern.size;
    const matching = [...this.#byPattern.keys()].filter((pattern) => matchesTopic(pattern, topic));
    if (this.#remembered + matching.length >= STREAM_MATCHES_REMEMBERED_MAX) this.#forgetMatches();
    this.#remembered += matching.length + 1;
    this.#matches.set(topic, matching);
    return matching;
  }

  #forgetMatches(): void {
    this.#matches.clear();
    this.#remembered = 0;
  }
}

/** True where the name is new. */
function put<Stream>(index: Map<string, Set<Stream>>, name: string, stream: Stream): boolean {
  const streams = index.get(name);
  streams?.add(stream);
  if (!streams) index.set(name, new Set([stream]));
  return streams === undefined;
}

function take<Stream>(index: Map<string, Set<Stream>>, name: string, stream: Stream): void {
  const streams = index.get(name);
  streams?.delete(stream);
  if (streams?.size === 0) index.delete(name);
}

export interface StreamRequest {
  readonly filter: StreamFilter;
  readonly from: JournalPosition | undefined;
}

/** Reads the data of a `Sys.Subscribe`; throws a `Failure` for data that is not valid. */
export function readStreamRequest(data: Json): StreamRequest {
  if (data !== null && !isJsonObject(data))
    throw new Failure(422, "data: must be an object like {types, topics, from}");
  const { types = [], topics = [], from } = (data ?? {}) as { types?: unknown; topics?: unknown; from?: unknown };
  if (!isNames(types))
    throw new Failure(422, `data.types: must be a list of at most ${STREAM_NAMES_MAX} message types`);
  if (!isNames(topics))
    throw new Failure(422, `data.topics: must be a list of at most ${STREAM_NAMES_MAX} topics or patterns`);
  const strange = types.find((type) => !isMessageType(type));
  if (strange !== undefined) throw new Failure(422, `data.types: ${JSON.stringify(strange)} is not a message type`);
  for (const topic of topics) checkPattern(topic);
  const position = typeof from === "string" ? positionOf(from) : undefined;
  if (from !== undefined && position === undefined)
    throw new Failure(422, 'data.from: must be the cursor of an event, or "start"; events after it are sent');
  return { filter: { types: new Set(types), topics: new Set(topics) }, from: position };
}

function checkPattern(topic: string): void {
  try {
    checkTopicPattern(topic);
  } catch (thrown) {
    throw new Failure(422, `data.topics: ${thrownText(thrown)}`);
  }
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= STREAM_NAMES_MAX && value.every((name) => typeof name === "string");
}
