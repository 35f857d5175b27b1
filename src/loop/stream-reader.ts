/**
 * One reader of the journal for all event streams. A page is read once and given to every stream whose position lies in it.
 * Between two slices of work the host gets in; a slice is bounded for all streams together. SPEC: L1, N12, N16, N17.
 *
 * ```
 *   following ──no room──> stalled ──room──> following          following ──gap, error──> ended
 *                             └──30 s──> ended
 * ```
 * Slices alternate between the stream nearest to the end of the journal and a sweep, which moves forward through the
 * positions and begins again at the lowest. The first keeps streams at the end current; the second lets streams that are
 * behind meet and go on together, so that all of them together read the journal at most twice.
 */
import { EventsGone } from "../bus/bus-error.ts";
import type { Host, Timer } from "../host/host.ts";
import {
  STREAM_LOOKS_MAX,
  STREAM_PAGE_ROWS_MAX,
  STREAM_PAGE_ROWS_MIN,
  STREAM_SLICE_EVENTS_MAX,
  STREAM_SLICE_MICROS,
  STREAM_STALLED_MS,
} from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, errorData, thrownText } from "../message/error-data.ts";
import type { EventFeed, EventPage, JournaledRow } from "./event-journal.ts";
import type { Connection } from "./inbound.ts";
import { FilterIndex, type StreamFilter } from "./stream-filter.ts";

const SLICE_MS = STREAM_SLICE_MICROS / 1_000;

export interface EventStream {
  readonly id: string;
  readonly request: Pick<Message, "type" | "metadata">;
  readonly connection: Connection;
  readonly filter: StreamFilter;
  state: "following" | "stalled" | "ended";
  /** The last row that was looked at for this stream. */
  position: number;
  /** Whether rows that are gone after the position end it. A stream from the beginning takes the rows that there are. */
  readonly resumes: boolean;
}

interface ReaderParts {
  readonly host: Host;
  readonly feed: EventFeed;
  /** Writes to the client of a stream. */
  readonly write: (stream: EventStream, message: Message) => void;
  /** Ends a stream early, with the reason. */
  readonly fail: (stream: EventStream, reason: ErrorData) => void;
}

export class StreamReader {
  readonly #host: Host;
  readonly #feed: EventFeed;
  readonly #write: ReaderParts["write"];
  readonly #fail: ReaderParts["fail"];
  /** Streams that follow or are stalled. */
  readonly #streams = new Set<EventStream>();
  readonly #index = new FilterIndex<EventStream>();
  /** Where the last short page ended, and the mark of the feed before it: from there on nothing is left to read. */
  #end: { readonly position: number; readonly mark: number } | undefined;
  #sweepAt = 0;
  #isSweeping = false;
  #pageRows = STREAM_PAGE_ROWS_MAX;
  /** Ends the wait for growth. */
  #wake = new AbortController();
  #running = false;
  /** Of the present slice: when it began, and the work done. */
  #sliceBegan = 0;
  #sliceEvents = 0;

  constructor({ host, feed, write, fail }: ReaderParts) {
    this.#host = host;
    this.#feed = feed;
    this.#write = write;
    this.#fail = fail;
  }

  join(stream: EventStream): void {
    this.#streams.add(stream);
    this.#index.add(stream);
    this.#goOn();
  }

  leave(stream: EventStream): void {
    if (!this.#streams.delete(stream)) return;
    this.#index.delete(stream);
    this.#wake.abort();
  }

  #goOn(): void {
    this.#wake.abort();
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    try {
      await this.#follow();
    } catch (thrown) {
      for (const stream of [...this.#streams]) this.#fail(stream, unreadable(thrown));
    }
    this.#running = false;
  }

  async #follow(): Promise<void> {
    while (this.#streams.size > 0) {
      const { mark } = this.#feed;
      const position = this.#nextPosition(mark);
      if (position === undefined) await this.#growth(mark);
      else {
        await this.#slice(position, mark);
        await this.#host.yield();
      }
    }
  }

  async #growth(mark: number): Promise<void> {
    this.#wake = new AbortController();
    const { signal } = this.#wake;
    await this.#feed.grown(mark, signal);
    // After the poll interval the journal may have grown without a signal.
    if (!signal.aborted) this.#end = undefined;
  }

  /** Where to read next; undefined when all streams that have room are at the end. */
  #nextPosition(mark: number): number | undefined {
    this.#isSweeping = !this.#isSweeping;
    const end = this.#end?.mark === mark ? this.#end.position : Number.POSITIVE_INFINITY;
    let [lowest, highest, swept]: (number | undefined)[] = [];
    for (const { state, position } of this.#streams) {
      if (state !== "following" || position >= end) continue;
      if (lowest === undefined || position < lowest) lowest = position;
      if (highest === undefined || position > highest) highest = position;
      if (position >= this.#sweepAt && (swept === undefined || position < swept)) swept = position;
    }
    return this.#isSweeping ? (swept ?? lowest) : highest;
  }

  /** Reads one page and gives it to the streams whose positions lie in it. */
  async #slice(position: number, mark: number): Promise<void> {
    this.#beginSlice();
    let page: EventPage;
    const limit = this.#pageRows;
    try {
      page = await this.#feed.page(position, limit);
    } catch (thrown) {
      for (const stream of this.#at(position, position + 1)) this.#fail(stream, unreadable(thrown));
      return;
    }
    this.#adjust(this.#host.monotonic() - this.#sliceBegan);
    const { rows, lastId } = page;
    const last = rows.at(-1)?.id ?? position;
    const members = this.#at(position, Math.max(last, position + 1));
    if (this.#isSweeping) this.#sweepAt = last;
    await this.#distribute(rows, position, members);
    for (const stream of members) if (stream.state === "following") stream.position = last;
    if (rows.length === limit) return;
    // No row shows this gap: everything up to the newest id is gone.
    if (last < lastId) this.#gone(members, last + 1, lastId);
    if (this.#end?.mark !== mark || last < this.#end.position) this.#end = { position: last, mark };
  }

  /** Streams that follow and whose position is at least `from` and below `before`. */
  #at(from: number, before: number): Set<EventStream> {
    const found = new Set<EventStream>();
    for (const stream of this.#streams)
      if (stream.state === "following" && stream.position >= from && stream.position < before) found.add(stream);
    return found;
  }

  async #distribute(rows: readonly JournaledRow[], position: number, members: Set<EventStream>): Promise<void> {
    let previous = position;
    for (const row of rows) {
      if (row.id > previous + 1) this.#gone(members, previous + 1, row.id - 1);
      previous = row.id;
      if (!row.message) continue;
      for (const stream of this.#index.wanting(row.message.type, row.topic)) {
        if (!members.has(stream) || stream.position >= row.id) continue;
        // A stream that has stalled, and has room again before the page is over, begins a page of its own.
        if (!this.#give(stream, row.id, row.message)) members.delete(stream);
        if (this.#isSliceOver) await this.#nextSlice();
      }
      if (this.#isSliceOver) await this.#nextSlice();
    }
  }

  /** False where the stream takes nothing more of this page. */
  #give(stream: EventStream, id: number, message: Message): boolean {
    if (stream.state !== "following") return false;
    if (!stream.connection.hasRoom) {
      this.#stall(stream, id);
      return false;
    }
    this.#sliceEvents++;
    const metadata = { ...message.metadata, journalId: id, subscription: stream.id };
    this.#write(stream, { ...message, metadata });
    return true;
  }

  /** Rows are gone that a stream has not been given. */
  #gone(members: ReadonlySet<EventStream>, firstId: number, lastId: number): void {
    for (const stream of members) {
      if (!stream.resumes || stream.state !== "following" || stream.position >= lastId) continue;
      const gone = new EventsGone(Math.max(firstId, stream.position + 1), lastId);
      const reason = { ...errorData(410, gone.message), firstId: gone.firstId, lastId };
      this.#fail(stream, reason);
    }
  }

  /** The client has not taken what it was given. The stream goes on before the event that it has no room for. */
  #stall(stream: EventStream, id: number): void {
    stream.state = "stalled";
    stream.position = id - 1;
    const timer: Timer = this.#host.timer(STREAM_STALLED_MS, () => this.#tooSlow(stream), { keepAlive: false });
    void stream.connection.whenRoom().then(() => {
      timer.cancel();
      if (stream.state !== "stalled") return;
      stream.state = "following";
      this.#goOn();
    });
  }

  #tooSlow(stream: EventStream): void {
    if (stream.state !== "stalled") return;
    const reason = `too slow: nothing was read for ${STREAM_STALLED_MS} ms; subscribe again with from ${stream.position}`;
    this.#fail(stream, errorData(503, reason));
  }

  // Slices ----------------------------------------------------------------------------------------------------------

  #beginSlice(): void {
    this.#sliceBegan = this.#host.monotonic();
    this.#sliceEvents = 0;
    this.#index.looks = 0;
  }

  get #isSliceOver(): boolean {
    if (this.#sliceEvents >= STREAM_SLICE_EVENTS_MAX || this.#index.looks >= STREAM_LOOKS_MAX) return true;
    return this.#host.monotonic() - this.#sliceBegan >= SLICE_MS;
  }

  async #nextSlice(): Promise<void> {
    await this.#host.yield();
    this.#beginSlice();
  }

  /** Rows differ in size: the next page is as long as fits the time. */
  #adjust(tookMs: number): void {
    if (tookMs > SLICE_MS / 2) this.#pageRows = Math.max(STREAM_PAGE_ROWS_MIN, this.#pageRows >> 1);
    else if (tookMs < SLICE_MS / 4) this.#pageRows = Math.min(STREAM_PAGE_ROWS_MAX, this.#pageRows * 2);
  }
}

export function unreadable(thrown: unknown): ErrorData {
  return errorData(503, `the journal cannot be read: ${thrownText(thrown)}`);
}
