/**
 * One NDJSON client (RFC 0032 §13): lines in, answers out. It writes replies and errors, and events only to a client
 * that has subscribed. Each bad line gets exactly one error from the connection itself. Backpressure works in both
 * directions: a client that requests more than it reads is paused until it has caught up.
 *
 * ```
 *   open ──client ends its side──> draining ──last answer written──> closed
 *     └──connection lost, or a line not finished in time──────────────^
 * ```
 * SPEC: N. Not here: the transport (a socket, standard input) and the meaning of answers.
 */

import type { Host, Timer } from "../host/host.ts";
import { Waiters } from "../host/waiters.ts";
import { LARGE_LINE_BYTES, LARGE_LINES_BYTES_MAX, LINES_A_BURST_SHARED } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Connection } from "../loop/pending-request.ts";
import type { Message, Refused } from "../message/envelope.ts";
import { type ErrorData, errorData, type SystemErrorCode } from "../message/error-data.ts";
import type { JsonLimits } from "../message/json.ts";
import { parseLineAt, printLine } from "../message/line.ts";
import { type ConnectionLimits, connectionLimits } from "./connection-limits.ts";
import { FairShare } from "./fair-share.ts";
import { LineFramer, type LineSink } from "./line-framer.ts";
import type { OutputHolder, UnreadOutput } from "./unread-output.ts";

/** Output of this length is written before the slice of turns ends, so that the client can start early. */
const WRITTEN_EARLY = 16_384;
/**
 * If bytes arrive later than this after the last answers, the connection was idle. Bytes already there are read within
 * half of it.
 */
const WAITED_MS = 0.02;

/** The transport under a connection: a socket, or standard input and output. */
export interface ByteStream {
  write(text: string): void;
  /** Bytes handed over and not sent. */
  readonly buffered: number;
  pause(): void;
  resume(): void;
  /** Ends the connection after the buffered output. */
  end(): void;
  /** Ends both sides now; buffered output is lost. */
  cut(): void;
  /** Detects whether the other side is gone or has only ended its own side; `lost` follows if it is gone. */
  probe(): void;
}

export interface NdjsonConnectionOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly stream: ByteStream;
  readonly adapter: string;
  /** The clearance of the client; without one it is unlimited. */
  readonly clearance?: readonly string[] | undefined;
  readonly closed: () => void;
  /** Shared by all connections that compete with each other. */
  readonly share?: FairShare;
  readonly limits?: ConnectionLimits;
  /** Shared by all connections whose unread output is limited in sum. */
  readonly output?: UnreadOutput;
  /** Checks each message against the authority of the client. */
  readonly admit?: (message: Message) => Message | Rejected;
}

/** A line that the connection refuses itself. */
export type Rejected = Omit<Refused, "code"> & { readonly code: SystemErrorCode };

export class NdjsonConnection implements Connection, LineSink, OutputHolder {
  readonly id: string;
  readonly adapter: string;
  readonly clearance?: readonly string[];
  state: "open" | "draining" | "closed" = "open";
  readonly #host: Host;
  readonly #loop: EventLoop;
  readonly #stream: ByteStream;
  readonly #framer: LineFramer;
  readonly #limits: ConnectionLimits;
  readonly #lineLimits: JsonLimits;
  readonly #closed: () => void;
  readonly #share: FairShare;
  readonly #output: UnreadOutput | undefined;
  readonly #admit: NdjsonConnectionOptions["admit"];
  /** Lines of the current burst, and the rest of them. */
  #burst = LINES_A_BURST_SHARED;
  #burstLeft = 0;
  /** The role of the next line: it begins a burst, continues one, or waits for a task because the burst is used up. */
  #nextLine: "begins" | "goes on" | "waits" = "begins";
  /** Whether the connection was idle before the last bytes. */
  #waited = false;
  /** Whether the whole last burst was answered while it was routed: its handlers do not wait. */
  #isQuick = false;
  /** When answers were last written. */
  #answeredAt = 0;
  /** When bytes were last received or sent. */
  #activeAt: number;
  /** Answers of this slice of turns that are not written yet. */
  #outgoing = "";
  /** Unanswered requests in the loop, and events that are not journaled yet. */
  #inFlight = 0;
  /** Bytes of the large ones among them, by id, and their sum. */
  readonly #large = new Map<string, number>();
  #largeBytes = 0;
  #paused = false;
  /** Received and not processed, because the client has too many requests open or earlier ones are answered first. */
  readonly #unread: Uint8Array[] = [];
  /** The input has ended after the buffered chunks. */
  #inputOver = false;
  #ended = false;
  #lineTimer: Timer | undefined;
  /** The line of the timer, as counted by the framer. */
  #timedLine = 0;
  readonly #roomWaiters = new Waiters();

  constructor(options: NdjsonConnectionOptions) {
    this.#host = options.host;
    this.#loop = options.loop;
    this.#stream = options.stream;
    this.#closed = options.closed;
    this.#share = options.share ?? new FairShare();
    this.#output = options.output;
    this.#admit = options.admit;
    this.#activeAt = options.host.monotonic();
    this.adapter = options.adapter;
    if (options.clearance !== undefined) this.clearance = options.clearance;
    this.id = options.host.id();
    this.#limits = options.limits ?? connectionLimits();
    const { lineBytesMax: bytesMax, depthMax, keysMax } = this.#limits;
    this.#lineLimits = { bytesMax, depthMax, keysMax };
    this.#framer = new LineFramer(this, bytesMax);
  }

  // In ---------------------------------------------------------------------------------------------------------------

  /** The bytes may be kept for a while: the stream must not overwrite them. */
  data(chunk: Uint8Array): void {
    if (this.state !== "open") return;
    this.#activeAt = this.#host.monotonic();
    // Chunks that arrive after a pause come after those already buffered.
    if (this.#unread.push(chunk) === 1) {
      this.#waited = this.#isResting && this.#activeAt - this.#answeredAt > WAITED_MS;
      this.#take(chunk);
    }
    this.#balance();
    this.#watchLine();
  }

  /** Whether the connection was idle before these bytes, and they are likely to be answered at once. */
  get #isResting(): boolean {
    return this.#nextLine === "begins" && this.#isQuick;
  }

  /** Takes lines of the first buffered chunk. */
  #take(chunk: Uint8Array): void {
    const taken = this.#framer.push(chunk);
    if (taken < chunk.length) this.#unread[0] = chunk.subarray(taken);
    else this.#unread.shift();
  }

  /** The client sends no more; its earlier lines are still processed, and it gets its answers. */
  ended(): void {
    if (this.state !== "open") return;
    this.#inputOver = true;
    if (this.#unread.length > 0) this.#stream.probe();
    else this.#allTaken();
  }

  #allTaken(): void {
    this.#framer.finish();
    this.#lineTimer?.cancel();
    this.state = "draining";
    // A client that is completely gone looks the same at first; its requests would stay open.
    if (this.#inFlight > 0) this.#stream.probe();
    this.#finishIfDone();
  }

  /** The connection is gone. */
  lost(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.#lineTimer?.cancel();
    this.#outgoing = "";
    this.#unread.length = 0;
    this.#output?.forget(this);
    this.#loop.disconnect(this);
    this.#tellRoom();
    this.#closed();
  }

  line(bytes: Uint8Array, start: number, end: number, text: string | undefined): void {
    const checked = parseLineAt(bytes, start, end, text, this.#lineLimits);
    if (checked.kind === "refused") this.#refuse(checked);
    else {
      const message = this.#admit === undefined ? checked.message : this.#admit(checked.message);
      if (message.kind === "refused") this.#refuse(message);
      else {
        if (message.kind === "command" || message.kind === "query" || message.kind === "event")
          this.#begin(message, end - start);
        this.#loop.receiveChecked(message, this);
      }
    }
    this.#spend();
  }

  #begin({ metadata: { id } }: Message, bytes: number): void {
    this.#inFlight++;
    // A request with an id in use is refused; the first one still counts.
    if (bytes <= LARGE_LINE_BYTES || this.#large.has(id)) return;
    this.#large.set(id, bytes);
    this.#largeBytes += bytes;
  }

  #over(id: string | null | undefined): void {
    this.#inFlight--;
    if (this.#large.size === 0 || typeof id !== "string") return;
    this.#largeBytes -= this.#large.get(id) ?? 0;
    this.#large.delete(id);
  }

  overlong(): void {
    const message = `line too long: the limit is ${this.#limits.lineBytesMax} bytes`;
    this.#refuse({ code: 413, message });
    this.#spend();
  }

  get wantsMore(): boolean {
    return (this.#burstLeft > 0 || this.#nextLine === "begins") && !this.#isFull;
  }

  /** Counts a line. */
  #spend(): void {
    if (this.#nextLine === "begins") {
      this.#burst = this.#share.burstFor(this, this.#burst - this.#burstLeft, this.#burst, this.#waited);
      this.#waited = false;
      this.#burstLeft = this.#burst;
      this.#nextLine = "goes on";
      this.#loop.atSliceEnd(this.#routed);
    }
    this.#burstLeft--;
  }

  /** The burst was routed; if no bytes are left, the next bytes begin another burst without a task. */
  readonly #routed = (): void => {
    this.#isQuick = this.#inFlight === 0;
    if (this.#nextLine === "goes on" && this.#unread.length === 0) this.#nextLine = "begins";
  };

  /** The burst is used up and lines are left: they come after the turns for this burst. */
  #beginNextBurst(): void {
    this.#nextLine = "waits";
    this.#host.task(this.#nextBurst);
  }

  readonly #nextBurst = (): void => {
    this.#nextLine = "begins";
    this.#balance();
    this.#watchLine();
  };

  /** A started line must end in time, or a slow client would hold its buffer for ever. */
  #watchLine(): void {
    // While reading is paused, the client cannot finish a line; and each line has its own time.
    const watching = this.#framer.inLine && !this.#paused && this.state === "open";
    if (!watching || this.#timedLine !== this.#framer.lines) {
      this.#lineTimer?.cancel();
      this.#lineTimer = undefined;
    }
    if (!watching) return;
    this.#timedLine = this.#framer.lines;
    const { lineCompleteMs } = this.#limits;
    this.#lineTimer ??= this.#host.timer(lineCompleteMs, () => this.#lineOverdue(), { keepAlive: false });
  }

  #lineOverdue(): void {
    const message = `a line was not finished within ${this.#limits.lineCompleteMs} ms`;
    this.#refuse({ code: 400, message });
    this.#flush();
    this.#stream.cut();
    this.lost();
  }

  // Out --------------------------------------------------------------------------------------------------------------

  deliver(answer: Message | Message<ErrorData>): void {
    this.#over(answer.metadata.causation);
    this.#send(answer);
  }

  taken(event: Message): void {
    const wasFull = this.#isFull;
    this.#over(event.metadata.id);
    if (wasFull || this.state === "draining") this.#loop.atSliceEnd(this.#flush);
  }

  stream(message: Message): void {
    this.#send(message);
  }

  get hasRoom(): boolean {
    return this.state === "closed" || this.#unsent < this.#limits.unreadOutputBytesMax;
  }

  whenRoom(): Promise<void> {
    if (this.hasRoom) return Promise.resolve();
    return this.#roomWaiters.wait();
  }

  #tellRoom(): void {
    if (this.hasRoom) this.#roomWaiters.release();
  }

  #send(message: Message | Message<ErrorData>): void {
    if (this.state === "closed" || this.#ended) return;
    if (this.#outgoing === "") this.#loop.atSliceEnd(this.#flush);
    this.#outgoing += printLine(message);
    if (this.#outgoing.length >= WRITTEN_EARLY) this.#write();
  }

  /** Writes all pending output now. */
  readonly #flush = (): void => {
    if (this.state === "closed" || this.#ended) return;
    this.#write();
    this.#answeredAt = this.#host.monotonic();
    this.#activeAt = this.#answeredAt;
    this.#balance();
    this.#finishIfDone();
  };

  /** Only writes: it may be called while lines are taken, when no more may be taken. */
  #write(): void {
    if (this.#outgoing === "") return;
    const text = this.#outgoing;
    this.#outgoing = "";
    this.#stream.write(text);
    this.#output?.note(this);
  }

  #refuse({ code, message, id, type, correlation }: Omit<Refused, "code" | "kind"> & { code: SystemErrorCode }): void {
    const metadata = {
      id: this.#host.id(),
      timestamp: this.#host.now(),
      ...(correlation === undefined ? {} : { correlation }),
      ...(id === undefined ? {} : { causation: id }),
    };
    this.#send({ kind: "error", type: type ?? "Validation.Failed", data: errorData(code, message), metadata });
  }

  /** The stream has room again. */
  drained(): void {
    if (this.state === "closed") return;
    this.#output?.note(this);
    this.#balance();
    this.#tellRoom();
    this.#finishIfDone();
  }

  /** Pauses reading from a client with too many open requests or unread output, and resumes when it has caught up. */
  #balance(): void {
    for (let chunk = this.#unread[0]; chunk && this.state === "open" && this.wantsMore; chunk = this.#unread[0])
      this.#take(chunk);
    const isLeft = this.#unread.length > 0;
    if (this.#inputOver && !isLeft && this.state === "open") return this.#allTaken();
    // Below 0 if a line turned out too long after the last of the burst.
    if (isLeft && this.#burstLeft <= 0 && this.#nextLine === "goes on") this.#beginNextBurst();
    // With the maximum of requests in flight and an empty buffer it keeps listening, and also between two bursts until
    // another chunk comes: pausing each time would cost more than one buffered chunk.
    const chunksMax = this.#nextLine === "waits" ? 1 : 0;
    const pause = this.#unread.length > chunksMax || this.#unsent >= this.#limits.unreadOutputBytesMax;
    if (pause === this.#paused || this.state !== "open") return;
    this.#paused = pause;
    if (pause) this.#stream.pause();
    else this.#stream.resume();
    this.#watchLine();
  }

  get #isFull(): boolean {
    if (this.#inFlight >= this.#limits.requestsInFlightMax || this.#largeBytes >= LARGE_LINES_BYTES_MAX) return true;
    return this.#unsent >= this.#limits.unreadOutputBytesMax;
  }

  get #unsent(): number {
    return this.#outgoing.length + this.#stream.buffered;
  }

  /** Bytes that the client has not read. */
  get frames(): number {
    return this.state === "closed" ? 0 : this.#unsent;
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.frames === 0;
  }

  #finishIfDone(): void {
    if (this.state !== "draining" || this.#inFlight > 0 || this.#outgoing !== "") return;
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    // Our side has ended, so events stop too.
    this.#loop.disconnect(this);
    this.#stream.end();
  }

  /** Milliseconds without a request, a subscription or unread output; 0 while there is one. */
  get idleMs(): number {
    if (this.state !== "open" || !this.isIdle || this.#framer.inLine || this.#unread.length > 0) return 0;
    return this.#loop.streams.has(this) ? 0 : this.#host.monotonic() - this.#activeAt;
  }

  /** Ends an idle connection, with the reason as its last line. */
  dismiss(reason: string): void {
    this.#refuse({ code: 503, message: reason });
    this.close();
  }

  /** Ends the connection now. The client does not read, so the reason goes to the observers. */
  drop(reason: string): void {
    if (this.state === "closed") return;
    this.#loop.observations.tell("Sys.Overload", { adapter: this.adapter, code: 503, reason });
    this.#stream.cut();
    this.lost();
  }

  /** Stops reading; earlier requests are still answered. */
  stopReading(): void {
    if (this.state !== "open") return;
    this.state = "draining";
    this.#lineTimer?.cancel();
    this.#unread.length = 0;
    this.#stream.pause();
  }

  /** Shuts down: writes the pending answers, answers open requests with 503, then ends the connection. */
  close(): void {
    if (this.state === "closed") return;
    this.stopReading();
    this.#loop.abandon(this, "the kernel is shutting down");
    this.#flush();
    this.#end();
  }
}
