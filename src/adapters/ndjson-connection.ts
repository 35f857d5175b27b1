/**
 * One NDJSON client (RFC 0032 §13): lines in, answers out. It writes replies and errors, and events only to a client that has asked
 * for them. Exactly one error per bad line, written by the connection itself. Backpressure both ways: a client that asks more
 * than it reads is not read from until it has caught up.
 *
 * ```
 *   open ──client ends its side──> draining ──last answer written──> closed
 *     └──connection lost, or a line not finished in time──────────────^
 * ```
 * SPEC: N. Deliberately not here: where the bytes come from (a socket, standard input), and what answers mean.
 */
import type { Host, Timer } from "../host/host.ts";
import { LARGE_LINE_BYTES, LARGE_LINES_BYTES_MAX, LINES_A_BURST_SHARED } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Connection } from "../loop/inbound.ts";
import type { Message, Refused } from "../message/envelope.ts";
import { type ErrorData, errorData, type SystemErrorCode } from "../message/error-data.ts";
import type { JsonLimits } from "../message/json.ts";
import { parseLineAt } from "../message/line.ts";
import { printLine } from "../message/line-print.ts";
import { type ConnectionLimits, connectionLimits } from "./connection-limits.ts";
import { FairShare } from "./fair-share.ts";
import { LineFramer, type LineSink } from "./line-framer.ts";
import type { OutputHolder, UnreadOutput } from "./unread-output.ts";

/** Characters that are worth a write before the slice of turns is over: the client can go to work while the rest is answered. */
const WRITTEN_EARLY = 16_384;
/** Bytes that come so long after the answers have left were waited for. What was there already is read within half of it. */
const WAITED_MS = 0.02;

/** The transport under a connection: a socket, or standard input and output. */
export interface ByteStream {
  write(text: string): void;
  /** Bytes handed over and not sent. */
  readonly buffered: number;
  pause(): void;
  resume(): void;
  /** Ends the connection after what is buffered. */
  end(): void;
  /** Ends both sides now; what is still buffered is lost. */
  cut(): void;
  /** Finds out whether the other side is gone altogether, or has only ended its own; `lost` follows if it is gone. */
  probe(): void;
}

export interface NdjsonConnectionOptions {
  readonly host: Host;
  readonly loop: EventLoop;
  readonly stream: ByteStream;
  readonly adapter: string;
  /** What the client may be told; without one, everything. */
  readonly clearance?: readonly string[] | undefined;
  readonly closed: () => void;
  /** One for all connections that compete with each other. */
  readonly share?: FairShare;
  readonly limits?: ConnectionLimits;
  /** One for all connections whose unread output is bounded in sum. */
  readonly output?: UnreadOutput;
}

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
  /** Lines that may be taken in this burst, and those that still may. */
  #burst = LINES_A_BURST_SHARED;
  #burstLeft = 0;
  /** What the next line does: it begins a burst, or goes on with one; or it waits for a task to begin one, because the burst is used up. */
  #nextLine: "begins" | "goes on" | "waits" = "begins";
  /** Whether the last bytes had to be waited for, with nothing else to do. */
  #waited = false;
  /** Whether all of the last burst was answered when it was routed: its handlers wait for nothing. */
  #isQuick = false;
  /** When answers were last written. */
  #answeredAt = 0;
  /** When bytes last came or went. */
  #activeAt: number;
  /** Answers of this slice of turns that are not written yet. */
  #outgoing = "";
  /** Requests that were handed to the loop and not answered, and events that are not journaled. */
  #inFlight = 0;
  /** Bytes of those among them that are large, by id, and their sum. */
  readonly #large = new Map<string, number>();
  #largeBytes = 0;
  #paused = false;
  /** Read and not looked at, because the client is owed too much or what came before is to be answered first. */
  readonly #unread: Uint8Array[] = [];
  /** Nothing comes after what is here. */
  #inputOver = false;
  #ended = false;
  #lineTimer: Timer | undefined;
  /** The line that the timer is for, as the framer counts them. */
  #timedLine = 0;
  #roomWaiters: (() => void)[] = [];

  constructor(options: NdjsonConnectionOptions) {
    this.#host = options.host;
    this.#loop = options.loop;
    this.#stream = options.stream;
    this.#closed = options.closed;
    this.#share = options.share ?? new FairShare();
    this.#output = options.output;
    this.#activeAt = options.host.monotonic();
    this.adapter = options.adapter;
    if (options.clearance !== undefined) this.clearance = options.clearance;
    this.id = options.host.id();
    this.#limits = options.limits ?? connectionLimits();
    const { lineBytesMax: bytesMax, depthMax, keysMax } = this.#limits;
    this.#lineLimits = { bytesMax, depthMax, keysMax };
    this.#framer = new LineFramer(this, bytesMax);
  }

  // In -----------------------------------------------------------------------------------------------------------------------

  /** The bytes may be kept for a while: the stream must not write into them again. */
  data(chunk: Uint8Array): void {
    if (this.state !== "open") return;
    this.#activeAt = this.#host.monotonic();
    // What the transport had under way when it was paused comes after what is already here.
    if (this.#unread.push(chunk) === 1) {
      this.#waited = this.#isResting && this.#activeAt - this.#answeredAt > WAITED_MS;
      this.#take(chunk);
    }
    this.#balance();
    this.#watchLine();
  }

  /** Whether there was nothing to do before these bytes, and they are likely to be answered at once as well. */
  get #isResting(): boolean {
    return this.#nextLine === "begins" && this.#isQuick;
  }

  /** Takes lines of the first chunk that is here. */
  #take(chunk: Uint8Array): void {
    const taken = this.#framer.push(chunk);
    if (taken < chunk.length) this.#unread[0] = chunk.subarray(taken);
    else this.#unread.shift();
  }

  /** The client will send nothing more; what it has sent is still taken, and it gets what it is owed. */
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
    // Somebody who has gone altogether looks the same at first; what he waits for would stay open.
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
      const { message } = checked;
      if (message.kind === "command" || message.kind === "query" || message.kind === "event")
        this.#begin(message, end - start);
      this.#loop.receiveChecked(message, this);
    }
    this.#spend();
  }

  #begin({ metadata: { id } }: Message, bytes: number): void {
    this.#inFlight++;
    // An id that is in use is refused; the first one still counts.
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

  /** What the burst has brought was routed; if that was all, the next bytes begin another, and no task has to. */
  readonly #routed = (): void => {
    this.#isQuick = this.#inFlight === 0;
    if (this.#nextLine === "goes on" && this.#unread.length === 0) this.#nextLine = "begins";
  };

  /** The burst is used up and lines are left: they come behind the turns for what it brought. */
  #beginNextBurst(): void {
    this.#nextLine = "waits";
    this.#host.task(this.#nextBurst);
  }

  readonly #nextBurst = (): void => {
    this.#nextLine = "begins";
    this.#balance();
    this.#watchLine();
  };

  /** A line that was begun must end in time, or a slow client holds its buffer for ever. */
  #watchLine(): void {
    // While we do not read, the client cannot finish anything; and another line has its own time.
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

  // Out ----------------------------------------------------------------------------------------------------------------------

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
    return new Promise((resolve) => {
      this.#roomWaiters.push(resolve);
    });
  }

  #tellRoom(): void {
    if (this.hasRoom) for (const resolve of this.#roomWaiters.splice(0)) resolve();
  }

  #send(message: Message | Message<ErrorData>): void {
    if (this.state === "closed" || this.#ended) return;
    if (this.#outgoing === "") this.#loop.atSliceEnd(this.#flush);
    this.#outgoing += printLine(message);
    if (this.#outgoing.length >= WRITTEN_EARLY) this.#write();
  }

  /** Everything that waits to be written goes out now. */
  readonly #flush = (): void => {
    if (this.state === "closed" || this.#ended) return;
    this.#write();
    this.#answeredAt = this.#host.monotonic();
    this.#activeAt = this.#answeredAt;
    this.#balance();
    this.#finishIfDone();
  };

  /** Only that: it may be called while lines are taken, which is no time to take more. */
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

  /** Stops reading from a client that is owed too much, and starts again when it has caught up. */
  #balance(): void {
    for (let chunk = this.#unread[0]; chunk && this.state === "open" && this.wantsMore; chunk = this.#unread[0])
      this.#take(chunk);
    const isLeft = this.#unread.length > 0;
    if (this.#inputOver && !isLeft && this.state === "open") return this.#allTaken();
    // Below nothing where a line has turned out too long by what came after the last of them.
    if (isLeft && this.#burstLeft <= 0 && this.#nextLine === "goes on") this.#beginNextBurst();
    // With as many requests in flight as may be and nothing more to read, it goes on listening, and so it does between two bursts until
    // another chunk has come: stopping and starting again every time would cost more than the one chunk that can still come.
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

  /** Bytes that the client has not taken. */
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
    // No more events either: our side has ended.
    this.#loop.disconnect(this);
    this.#stream.end();
  }

  /** Milliseconds without a request, a stream or output that the client has not read; 0 while there is one. */
  get idleMs(): number {
    if (this.state !== "open" || !this.isIdle || this.#framer.inLine || this.#unread.length > 0) return 0;
    return this.#loop.streams.has(this) ? 0 : this.#host.monotonic() - this.#activeAt;
  }

  /** Ends a connection that is idle, with the reason as its last line. */
  dismiss(reason: string): void {
    this.#refuse({ code: 503, message: reason });
    this.close();
  }

  /** Ends the connection now. The client does not read, so that the reason goes to the observers. */
  drop(reason: string): void {
    if (this.state === "closed") return;
    this.#loop.observations.tell("Sys.Overload", { adapter: this.adapter, code: 503, reason });
    this.#stream.cut();
    this.lost();
  }

  /** Reads nothing more; what was asked is still answered. */
  stopReading(): void {
    if (this.state !== "open") return;
    this.state = "draining";
    this.#lineTimer?.cancel();
    this.#unread.length = 0;
    this.#stream.pause();
  }

  /** Shuts down: what is ready is written, what is still owed is answered with 503, then the connection ends. */
  close(): void {
    if (this.state === "closed") return;
    this.stopReading();
    this.#loop.abandon(this, "the kernel is shutting down");
    this.#flush();
    this.#end();
  }
}
