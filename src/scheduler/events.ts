/**
 * Streams (Scheduler v2 §7.5, §7.6): their records, handlers and queues of sends. Sends enter here; `dispatch.ts` runs
 * their handlers, and `send-answers.ts` reports their outcomes. There is one queue per space. SPEC: I4, I10, I11.
 */
import type { Host } from "../host/host.ts";
import { CLOSED_STREAMS_MAX, SENDS_BURST, SENDS_WAITING_MAX } from "../limits.ts";
import { periodOf } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { admitFrozen } from "../store/admit.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { AttemptLineage, Launch } from "../work/lineage.ts";
import type { WorkBoard } from "../work/work-board.ts";
import type { Attempts } from "./attempts.ts";
import type { Dispatch, HandlerLoader } from "./dispatch.ts";
import { callerEventId, EventStem, originHash } from "./event-id.ts";
import { SendHandling } from "./handling.ts";
import type { RollbackListener } from "./invalidation.ts";
import type { NodeAddress } from "./node.ts";
import type { Runner } from "./runner.ts";
import { Send, type SendOptions, SendQueue, type Sent, StreamRecord, type Wait } from "./send.ts";
import type { SendAnswers } from "./send-answers.ts";
import { type SendHandler, StreamError, type StreamHandlerOptions } from "./stream-handler.ts";

/** A queue as operators see it. */
export interface QueueSnapshot {
  readonly space: string;
  /** Also sends that wait for the next attempt of their handler. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Streams without a handler, and how many of their sends wait outside of the queue. */
  readonly unhandled: readonly { readonly stream: string; readonly sends: number }[];
  /** The stream of the head, and the reason for its wait. */
  readonly head?: { readonly stream: string; readonly id: string; readonly waitsFor?: Wait["kind"] };
}

export class Events implements RollbackListener {
  readonly #runner: Runner;
  readonly #attempts: Attempts;
  readonly #dispatch: Dispatch;
  readonly #answers: SendAnswers;
  readonly #work: { wake(): void };
  readonly #host: Host;
  readonly #queues = new Map<Replica, SendQueue>();
  /** By address. The record holds the document, so there is one record per link. */
  readonly #streams = new Map<NodeAddress, StreamRecord>();
  /** Closed streams, oldest first. */
  readonly #closed = new Set<StreamRecord>();
  /** Sends of plain code and of nodes. */
  #sends = 0;
  /** Sends under a label, by its names: their number must not show in the ids of other sends. */
  readonly #labelledSends = new Map<string, number>();
  /** All spaces are closed: no send is handled any more. */
  #isClosed = false;

  constructor(parts: {
    host: Host;
    runner: Runner;
    attempts: Attempts;
    dispatch: Dispatch;
    answers: SendAnswers;
    work: { wake(): void };
  }) {
    this.#host = parts.host;
    this.#runner = parts.runner;
    this.#attempts = parts.attempts;
    this.#dispatch = parts.dispatch;
    this.#answers = parts.answers;
    this.#work = parts.work;
  }

  set handlerLoader(loader: HandlerLoader | undefined) {
    this.#dispatch.handlerLoader = loader;
  }

  set board(board: WorkBoard | undefined) {
    this.#dispatch.board = board;
  }

  // Streams
  // --------------------------------------------------------------------------------------------------------------

  stream(address: NodeAddress): StreamRecord {
    let stream = this.#streams.get(address);
    if (stream === undefined) {
      stream = new StreamRecord(address, this.#queue(address.home.replica), this.#host);
      this.#streams.set(address, stream);
    }
    return stream;
  }

  #queue(replica: Replica): SendQueue {
    let queue = this.#queues.get(replica);
    if (queue === undefined) {
      queue = new SendQueue(replica);
      queue.closed = this.#isClosed;
      this.#queues.set(replica, queue);
    }
    return queue;
  }

  /**
   * A rollback is seen at once, and the outcomes of its sends follow in a microtask. No send is dispatched in between,
   * because it would overtake them.
   */
  rolledBack(replica: Replica): void {
    const queue = this.#queues.get(replica);
    if (queue === undefined || queue.hasRollback) return;
    queue.hasRollback = true;
    this.#host.microtask(() => {
      queue.hasRollback = false;
      this.#work.wake();
    });
  }

  /** Registers the one handler of a stream; the returned function removes it. */
  addHandler(run: SendHandler, address: NodeAddress, options: StreamHandlerOptions = {}): () => void {
    const stream = this.stream(address);
    const handler = { ...options, name: options.name ?? (run.name || "a handler without a name"), run };
    stream.register(handler);
    this.#closed.delete(stream);
    if (stream.asideCount > 0) stream.queue.requeueAll(stream.takeAside());
    this.#work.wake();
    return () => {
      if (stream.handler === handler) stream.handler = undefined;
    };
  }

  /**
   * Closes a stream for good: queued sends are dropped at their turn, later ones at once. A queued send is not dropped
   * earlier, because its commit may have landed while only the answer is missing.
   */
  closeStream(address: NodeAddress, why: string): void {
    const stream = this.stream(address);
    if (stream.handler !== undefined) return;
    stream.closed = why;
    for (const send of stream.takeAside()) this.#answers.drop(stream.queue, send, "closed", why);
    this.#closed.add(stream);
    for (const oldest of this.#closed) {
      if (this.#closed.size <= CLOSED_STREAMS_MAX) break;
      this.#forget(oldest);
    }
    this.#work.wake();
  }

  /** Earlier sends to the stream keep its closed record; later ones find a stream without a handler. */
  #forget(stream: StreamRecord): void {
    this.#closed.delete(stream);
    this.#streams.delete(stream.address);
    stream.address.home.removeStream(stream.address);
  }

  // Sending
  // --------------------------------------------------------------------------------------------------------------

  send(stream: StreamRecord, value: unknown, options: SendOptions, standing?: Promise<boolean>): Sent {
    this.#requireSender(stream);
    const attempt = this.#attempts.current;
    const origin =
      options.origin === undefined ? attempt : this.#attempts.lineageOf(stream.queue.replica, options.origin);
    const { onOutcome } = options;
    const { label } = this.#attempts;
    const name = this.#nameOf(stream, options, label);
    const send = new Send({ name, stream, value: admitted(value, stream), origin, label, onOutcome });
    send.mayBeKnown = options.id !== undefined || options.eventId !== undefined;
    if (origin === undefined && standing !== undefined) void standing.then((stands) => this.#enqueueHeld(send, stands));
    else if (origin === undefined) this.#enqueue(send);
    else if (options.origin === undefined) origin.launch(this.#launchOf(send));
    else this.#enqueueLater(send, origin, attempt);
    return send;
  }

  #requireSender(stream: StreamRecord): void {
    const node = this.#runner.current?.node;
    if (node?.kind === "computation") {
      throw new StreamError(
        "STREAM_SEND_IN_COMPUTATION",
        `computation ${node.id} must not send to ${stream}: it may run any number of times; send from a handler, an effect or plain code`,
      );
    }
    if (this.#runner.active instanceof SendHandling && this.#runner.active.isPreflight) {
      throw new StreamError("STREAM_MISUSE", `a preflight only reads; send to ${stream} from the handler`);
    }
  }

  /** The event's id, or for plain code the number from which the id follows. */
  #nameOf(stream: StreamRecord, { id, session, eventId }: SendOptions, label: Label): string | number {
    const { current, active: attempt } = this.#runner;
    if (eventId !== undefined) {
      if (id === undefined && eventId !== "") return eventId;
      throw new StreamError(
        "STREAM_MISUSE",
        "give a send an `id` of your own or the `eventId` of an earlier send, not both",
      );
    }
    if (id !== undefined) return callerEventId(session ?? stream.queue.session, id, stream.link);
    // Sends of a node that runs during a handler's read belong to the node. A transaction of plain code has no id to
    // derive theirs from.
    if (attempt !== null && current === null && attempt.id !== undefined)
      return this.#mint(attempt.name, stream.link, ++attempt.sends);
    return label.length === 0 ? ++this.#sends : this.#labelledName(stream, label);
  }

  #labelledName({ queue, link }: StreamRecord, label: Label): string {
    const names = JSON.stringify(label);
    const number = (this.#labelledSends.get(names) ?? 0) + 1;
    this.#labelledSends.set(names, number);
    return this.#mint(`${queue.session} knowing ${names}`, link, number);
  }

  #mint(origin: string, link: string, number: number): string {
    return new EventStem(periodOf(this.#host.now()), originHash(origin, link)).id(number);
  }

  /** For an effect, after the state that it read was confirmed or rolled back. SPEC: R62. */
  #enqueueHeld(send: Send, stands: boolean): void {
    if (stands) this.#enqueue(send);
    else this.#cancel(send, "the effect that sent it had read state that was rolled back");
  }

  #enqueue(send: Send): void {
    const { queue, closed } = send.stream;
    if (closed !== undefined) return this.#answers.drop(queue, send, "closed", closed);
    if (queue.closed) return this.#answers.drop(queue, send, "closed", `space "${queue.replica.space}" is closed`);
    if (queue.isFull) {
      const message = `${SENDS_WAITING_MAX} sends of space "${queue.replica.space}" wait already; send it again later`;
      return this.#answers.refuse(queue, send, message);
    }
    queue.push(send);
    this.#work.wake();
  }

  // Lineage
  // --------------------------------------------------------------------------------------------------------------

  /** Ties work to the attempt that runs now; false if there is none. */
  launch(launch: Launch): boolean {
    const attempt = this.#attempts.current;
    attempt?.launch(launch);
    return attempt !== undefined;
  }

  #launchOf(send: Send): Launch {
    return {
      started: () => this.#enqueue(send),
      confirmed: () => this.#release(send),
      cancelled: (why) => this.#cancel(send, why),
    };
  }

  #release(send: Send): void {
    if (send.wait?.kind === "origin") send.wait = undefined;
    this.#work.wake();
  }

  /** A running or committing send is stopped by its own attempt. */
  #cancel(send: Send, why: string): void {
    if (send.state !== "committing" && send.state !== "over") {
      this.#answers.drop(send.stream.queue, send, "origin-failed", why);
    }
  }

  /**
   * Queues the send now, where it waits for the commit. If an attempt sent it, it is also cancelled with that attempt.
   */
  #enqueueLater(send: Send, origin: AttemptLineage, attempt: AttemptLineage | undefined): void {
    const launch = this.#launchOf(send);
    const enqueued = { ...launch, started: () => {} };
    origin.launch(enqueued);
    if (attempt === undefined) this.#enqueue(send);
    else attempt.launch({ ...launch, confirmed: () => {} });
  }

  // The pass
  // ---------------------------------------------------------------------------------------------------------------

  get hasSends(): boolean {
    // A fast path for every pass: most spaces have no streams.
    if (this.#queues.size === 0) return false;
    for (const { size, hasDue } of this.#queues.values()) if (size > 0 || hasDue) return true;
    return false;
  }

  /** Dispatches ready sends, a bounded number per queue; false if no queue moved. */
  step(): boolean {
    let moved = false;
    for (const queue of this.#queues.values()) {
      for (let sends = 0; sends < SENDS_BURST && this.#dispatch.advance(queue); sends++) moved = true;
    }
    return moved;
  }

  /** Whether no send is queued or running. Sends without a handler may wait forever and do not count. */
  get isIdle(): boolean {
    for (const { running, head } of this.#queues.values())
      if (running !== undefined || head !== undefined) return false;
    return true;
  }

  /** Drops the waiting sends of one space, or of all. */
  close(replica?: Replica): void {
    if (replica === undefined) this.#isClosed = true;
    for (const queue of this.#queues.values()) {
      if (replica !== undefined && queue.replica !== replica) continue;
      queue.closed = true;
      const aside = this.#asideOf(queue).flatMap((stream) => stream.takeAside());
      for (const send of [...aside, ...queue.resting(), ...queue.waiting()])
        this.#answers.drop(queue, send, "closed", "closed before it was handled");
    }
  }

  #asideOf(queue: SendQueue): StreamRecord[] {
    if (queue.aside === 0) return [];
    return [...this.#streams.values()].filter((stream) => stream.queue === queue && stream.asideCount > 0);
  }

  snapshot(): readonly QueueSnapshot[] {
    return [...this.#queues.values()].map((queue) => {
      const { replica, size, restingCount, inFlight, head } = queue;
      const waiting = size + restingCount;
      const unhandled = this.#asideOf(queue).map((stream) => ({ stream: String(stream), sends: stream.asideCount }));
      const basic = { space: replica.space, waiting, inFlight, unhandled };
      if (head === undefined) return basic;
      const shown = { stream: String(head.stream), id: head.id };
      return { ...basic, head: head.wait ? { ...shown, waitsFor: head.wait.kind } : shown };
    });
  }

  checkInvariants(): void {
    for (const queue of this.#queues.values()) queue.checkInvariants();
  }
}

/** The sent value, frozen, as every attempt gets it. */
function admitted(value: unknown, stream: StreamRecord): Json {
  try {
    return admitFrozen(value, undefined);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new StoreError(error.code, `cannot send to ${stream}: ${error.message}`, { cause: error });
  }
}
