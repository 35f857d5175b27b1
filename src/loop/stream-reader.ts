/**
 * One reader of the journal for all event streams. A page is read once and given to every stream whose position lies in
 * it. Between two slices of work the host gets in; a slice is bounded for all streams together. SPEC: L1, N12, N16,
 * N17.
 *
 * ```
 *   following ──no room──> stalled ──room──> following          following ──gap, error──> ended
 *                             └──30 s──> ended
 * ```
 * Slices alternate between the stream nearest to the end of the journal and a sweep, which moves forward through the
 * positions and begins again at the lowest. The first keeps streams at the end current; the second lets streams that
 * are behind meet and go on together, so that all of them together read the journal at most twice.
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
import {
  covers,
  cursorOf,
  type JournalPosition,
  journalLaneOf,
  passedIn,
  passing,
  timeOf,
  union,
} from "../store/journal-position.ts";
import type { EventFeed, EventPage } from "./event-journal.ts";
import type { Connection } from "./pending-request.ts";
import { FilterIndex, type StreamFilter } from "./stream-filter.ts";

const SLICE_MS = STREAM_SLICE_MICROS / 1_000;

export interface EventStream {
  readonly id: string;
  readonly request: Pick<Message, "type" | "metadata">;
  readonly connection: Connection;
  readonly filter: StreamFilter;
  state: "following" | "stalled" | "ended";
  /** All rows up to here were looked at for this stream. */
  position: JournalPosition;
  /**
   * Whether rows that are gone after the position end it. A stream from the beginning takes the rows that there are.
   */
  readonly resumes: boolean;
}

interface GivenEvent {
  readonly id: number;
  readonly cursor: string;
  readonly message: Message;
}

/** A position, and the greatest id that it has passed. */
interface Place {
  readonly position: JournalPosition;
  readonly time: number;
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
  /** The end of the last short page, and the mark of the feed before it: no row is left to read after it. */
  #end: { readonly position: JournalPosition; readonly mark: number } | undefined;
  /** The greatest id that the sweep has passed. */
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
  #nextPosition(mark: number): JournalPosition | undefined {
    this.#isSweeping = !this.#isSweeping;
    const end = this.#end?.mark === mark ? this.#end.position : undefined;
    let [lowest, highest, swept]: (Place | undefined)[] = [];
    for (const { state, position } of this.#streams) {
      if (state !== "following" || (end !== undefined && covers(position, end))) continue;
      const time = timeOf(position);
      if (lowest === undefined || time < lowest.time) lowest = { position, time };
      if (highest === undefined || time > highest.time) highest = { position, time };
      if (time >= this.#sweepAt && (swept === undefined || time < swept.time)) swept = { position, time };
    }
    return (this.#isSweeping ? (swept ?? lowest) : highest)?.position;
  }

  /** Reads one page and gives it to the streams whose positions lie in it. */
  async #slice(position: JournalPosition, mark: number): Promise<void> {
    this.#beginSlice();
    let page: EventPage;
    const limit = this.#pageRows;
    try {
      page = await this.#feed.page(position, limit);
    } catch (thrown) {
      for (const stream of this.#at(position, position)) this.#fail(stream, unreadable(thrown));
      return;
    }
    this.#adjust(this.#host.monotonic() - this.#sliceBegan);
    if (position.history !== "" && page.end.history !== position.history) return this.#otherHistory(position, page.end);
    const members = this.#at(position, page.end);
    if (this.#isSweeping) this.#sweepAt = timeOf(page.end);
    await this.#distribute(page, position, members);
    for (const stream of members) if (stream.state === "following") stream.position = union(page.end, stream.position);
    if (page.isFull) return;
    if (this.#end?.mark !== mark || !covers(page.end, this.#end.position)) this.#end = { position: page.end, mark };
  }

  /** Streams that follow, have passed all before `from`, and have not passed `end`, or stand at `from`. */
  #at(from: JournalPosition, end: JournalPosition): Set<EventStream> {
    const found = new Set<EventStream>();
    for (const stream of this.#streams) {
      const { state, position } = stream;
      if (state !== "following" || !covers(position, from)) continue;
      if (!covers(position, end) || covers(from, position)) found.add(stream);
    }
    return found;
  }

  async #distribute(page: EventPage, position: JournalPosition, members: Set<EventStream>): Promise<void> {
    const { history } = page.end;
    let passed = position;
    let gone = 0;
    const skipGone = (at: number) => {
      for (; page.gone[gone]?.before === at; gone++) {
        const { lane, through } = page.gone[gone]!;
        this.#gone(members, passed, { lane, through, history });
        passed = passing(passed, history, lane, through);
      }
    };
    for (const [at, row] of page.rows.entries()) {
      skipGone(at);
      const before = passed;
      passed = passing(passed, history, journalLaneOf(row), row.id);
      if (!row.message) continue;
      const cursor = cursorOf(passed);
      for (const stream of this.#index.wanting(row.message.type, row.topic)) {
        if (!members.has(stream) || passedIn(stream.position, journalLaneOf(row)) >= row.id) continue;
        const own = covers(passed, stream.position) ? cursor : cursorOf(union(passed, stream.position));
        // A stream that has stalled, and has room again before the page is over, begins a page of its own.
        if (!this.#give(stream, before, { id: row.id, cursor: own, message: row.message })) members.delete(stream);
        if (this.#isSliceOver) await this.#nextSlice();
      }
      if (this.#isSliceOver) await this.#nextSlice();
    }
    skipGone(page.rows.length);
  }

  /** False if the stream takes no more of this page. `before` is the position before the event. */
  #give(stream: EventStream, before: JournalPosition, event: GivenEvent): boolean {
    if (stream.state !== "following") return false;
    if (!stream.connection.hasRoom) {
      this.#stall(stream, before);
      return false;
    }
    this.#sliceEvents++;
    const { id, cursor, message } = event;
    const metadata = { ...message.metadata, journalId: id, cursor, subscription: stream.id };
    this.#write(stream, { ...message, metadata });
    return true;
  }

  /** Rows are gone that a stream has not been given. */
  #gone(
    members: ReadonlySet<EventStream>,
    passed: JournalPosition,
    { lane, through, history }: { readonly lane: number; readonly through: number; readonly history: string },
  ): void {
    for (const stream of members) {
      if (!stream.resumes || stream.state !== "following" || passedIn(stream.position, lane) >= through) continue;
      const from = union(passed, stream.position);
      this.#missed(stream, from, passing(from, history, lane, through));
    }
  }

  /** The data have another history: events may be missing, or come a second time. */
  #otherHistory(position: JournalPosition, end: JournalPosition): void {
    for (const stream of this.#at(position, position)) {
      if (stream.resumes) this.#missed(stream, stream.position, end);
      else stream.position = end;
    }
  }

  #missed(stream: EventStream, after: JournalPosition, onFrom: JournalPosition): void {
    const { message, cursor } = new EventsGone(after, onFrom);
    this.#fail(stream, errorData(410, message, { data: { cursor } }));
  }

  /** The client has not read its events. The stream continues before the event that it has no room for. */
  #stall(stream: EventStream, before: JournalPosition): void {
    stream.state = "stalled";
    stream.position = union(before, stream.position);
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
    const reason = `too slow: nothing was read for ${STREAM_STALLED_MS} ms; subscribe again with from ${cursorOf(stream.position)}`;
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
