/**
 * An actor in this process: a buffered mailbox, worked off one message at a time in the order they came (RFC 0032 §10.3, §10.4).
 * `postMessage` only buffers. What its handler returns becomes the reply, what it throws the error; it may emit events
 * and ask other capabilities. An answer to what it asked goes past the mailbox: an actor waits for nobody but others.
 */

import { Fifo } from "../host/fifo.ts";
import type { Host } from "../host/host.ts";
import { DISPATCH_BURST_MS, MAILBOX_BURST_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { causationOf } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom, fromError } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { causedBy, command, error, event, type Lineage, query, reply } from "../message/lineage.ts";
import { withClearance } from "../store/clearance.ts";
import { isRefusal, type Label, labelOf } from "../store/label.ts";
import { Cancellation } from "../work/cancellation.ts";
import { type Cancellable, endOf, type HandlerWait, isThenable } from "../work/handler-call.ts";
import type { Sender } from "../work/timer-row.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { WorkError } from "../work/work-error.ts";
import type { ActorEvent, ActorListener, CapabilityActor, Posted } from "./capability.ts";
import type { Parcel } from "./parcel.ts";
import type { PendingRequest } from "./pending-table.ts";

const TERMINATED = "the actor was terminated";

/** The functions of a handler's context. */
export interface HandlerContext {
  /** Publishes an event caused by the message that is being handled. */
  emit(type: string, data: Json): void;
  /**
   * Sends a command to whoever handles it, and waits for the answer; a failure is thrown as `Failure`. So is that an actor would wait for
   * itself, alone or in a circle of others.
   */
  command(type: string, data: Json): Promise<Json>;
  query(type: string, data: Json): Promise<Json>;
  /** Puts any message into the loop, as the actor's own, and waits for nothing. */
  send(message: Message): void;
  /**
   * Calls code that reads within the clearance of the capability. Until its first `await` a handler does so anyway; after one, plain reads
   * are the program's own again, which knows everything: `await context.within(() => cell.pull())`.
   */
  within<T>(code: () => T): T;
  /** Aborted when the handler has timed out: its answer is 504 by then, and the actor goes on with the next message. */
  readonly signal: AbortSignal;
  readonly host: Host;
}

/** Handled, and the answer follows later: the actor goes on to the next message meanwhile. */
export class AnswerLater {
  readonly answer: Promise<Json | undefined>;

  constructor(answer: Promise<Json | undefined>) {
    this.answer = answer;
  }
}

export type HandlerResult = Json | undefined | AnswerLater;

export type MessageHandler = (
  message: Message,
  context: Handling,
  /** The pending request of the message, if the loop has passed it on. */
  request?: PendingRequest,
) => HandlerResult | Promise<HandlerResult>;

/** Carries a message whose envelope was made here: only its data is a handler's, and has to be looked at. */
export class MadeMessageEvent implements ActorEvent {
  readonly type = "message";
  readonly data: Message<Json | ErrorData>;
  /** Of an answer: its request, if the actor was given that. */
  readonly request: PendingRequest | undefined;
  readonly parcel: Parcel | undefined;
  /** Set by the listener if the message is not routed. */
  declare refused?: Failure;
  /** What was thrown, of an error answer: for whoever reads the logs. It does not leave the process. */
  declare thrown?: unknown;
  /** Of a message that is relayed: its authority. */
  declare sender?: Sender | undefined;

  constructor(message: Message<Json | ErrorData>, request?: PendingRequest, parcel?: Parcel) {
    this.data = message;
    this.request = request;
    this.parcel = parcel;
  }
}

/** Carries a message that a handler has made by itself, through `send`. */
export class SentMessageEvent implements ActorEvent {
  readonly type = "message";
  readonly data: Message;
  readonly parcel: Parcel | undefined;
  declare refused?: Failure;

  constructor(message: Message, parcel: Parcel | undefined) {
    this.data = message;
    this.parcel = parcel;
  }
}

export interface MailboxOptions {
  readonly clearance?: readonly string[] | undefined;
  /** How long a handler is waited for; 0, unless given, for ever. */
  readonly timeoutMs?: number;
  /** The capability, as `board` lists it. */
  readonly name?: string;
  /** Lists the handlers that run. */
  readonly board?: WorkBoard | undefined;
}

export class MailboxActor implements CapabilityActor {
  onmessage: ActorListener | null = null;
  readonly #host: Host;
  readonly #handle: MessageHandler;
  readonly #clearance: Label | undefined;
  readonly #timeoutMs: number;
  readonly #name: string;
  readonly #board: WorkBoard | undefined;
  #listeners: readonly ActorListener[] = [];
  readonly #mailbox = new Fifo<Posted>();
  /** What is being handled; the others wait behind it. */
  #handling: Posted | undefined;
  /** Messages that are handled and whose answer is not out. */
  #owed = 0;
  #terminated = false;
  /** Messages handled in the present burst. */
  #inBurst = 0;
  /** When the present burst must let the host in. */
  #burstUntil = 0;
  /** What it has asked others, by request id. */
  readonly #asked = new Map<string, { resolve: (data: Json) => void; reject: (failure: Failure) => void }>();
  #idleWaiters: (() => void)[] = [];

  constructor(host: Host, handle: MessageHandler, options: MailboxOptions = {}) {
    const { clearance, timeoutMs = 0, name = "", board } = options;
    this.#host = host;
    this.#handle = handle;
    this.#timeoutMs = timeoutMs;
    this.#name = name;
    this.#board = board;
    this.#clearance = clearance === undefined ? undefined : labelOf(clearance);
  }

  get mailboxLength(): number {
    return this.#terminated ? 0 : this.#mailbox.length + this.#owed + (this.#handling ? 1 : 0);
  }

  postMessage(message: Message): void {
    this.accept({ message, request: undefined, parcel: undefined });
  }

  /** The answer names the request again; a parcel ends with its handler. */
  accept(posted: Posted): void {
    if (this.#terminated) return posted.parcel?.ended(TERMINATED);
    if (this.#answered(posted.message)) return;
    this.#mailbox.push(posted);
    if (this.#handling || this.#mailbox.length > 1) return;
    this.#host.microtask(this.#begin);
  }

  addEventListener(type: string, listener: ActorListener): void {
    if (type === "message" && !this.#listeners.includes(listener)) this.#listeners = [...this.#listeners, listener];
  }

  terminate(reason = TERMINATED): void {
    this.#terminated = true;
    const left = [...this.#mailbox, ...(this.#handling ? [this.#handling] : [])];
    this.#mailbox.clear();
    for (const { parcel } of left) parcel?.ended(reason);
    for (const { reject } of this.#asked.values()) reject(new Failure(503, TERMINATED));
    this.#asked.clear();
    this.#checkIdle();
  }

  idle(): Promise<void> {
    if (this.mailboxLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  waitsFor(request: string, message: string): boolean {
    return this.#handling?.message.metadata.id === message && this.#asked.has(request);
  }

  awaits(request: string): boolean {
    return this.#asked.has(request);
  }

  get isAsking(): boolean {
    return this.#asked.size > 0 && this.#handling !== undefined;
  }

  given(): ReadonlySet<string> {
    const ids = new Set([...this.#mailbox].map(({ message }) => message.metadata.id));
    return this.#handling === undefined ? ids : ids.add(this.#handling.message.metadata.id);
  }

  withdraw(message: string): boolean {
    const waiting = [...this.#mailbox];
    const left = waiting.filter((given) => given.message.metadata.id !== message);
    if (left.length === waiting.length) return false;
    this.#mailbox.clear();
    for (const given of left) this.#mailbox.push(given);
    this.#checkIdle();
    return true;
  }

  #answered(message: Message): boolean {
    if (message.kind !== "reply" && message.kind !== "error") return false;
    const id = causationOf(message) ?? "";
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (!asked) return true;
    if (message.kind === "reply") asked.resolve(message.data);
    else asked.reject(failureFrom(message.data as ErrorData));
    return true;
  }

  readonly #begin = (): void => {
    this.#inBurst = 0;
    this.#next();
  };

  /** Handles the first message; synchronous handlers follow each other without a promise, for as long as a burst may last. */
  #next(): void {
    while (!this.#handling && !this.#terminated && this.#mailbox.length > 0) {
      if (this.#isBurstOver()) return this.#host.task(this.#begin);
      const given = this.#mailbox.shift() as Posted;
      const { message } = given;
      this.#handling = given;
      if (given.request?.handling !== undefined) given.request.begunAt = this.#host.monotonic();
      let result: HandlerResult | Promise<HandlerResult>;
      const handling = new Handling(this, this.#host, given);
      try {
        result =
          this.#clearance === undefined
            ? this.#handle(message, handling, given.request)
            : this.within(() => this.#handle(message, handling, given.request));
      } catch (thrown) {
        this.#failed(given, thrown);
        continue;
      }
      if (isThenable(result)) {
        return this.#await(given, handling, result);
      }
      this.#finished(given, result);
    }
    this.#checkIdle();
  }

  /** A handler that takes too long is left behind: its caller is told, and the mailbox goes on. */
  #await(given: Posted, handling: Handling, result: PromiseLike<HandlerResult>): void {
    const { message } = given;
    const entryPoint = message.kind === "command" || message.kind === "query" ? message.kind : "event";
    const wait: HandlerWait = {
      ...{ host: this.#host, timeoutMs: this.#timeoutMs, cancellable: handling, keepAlive: false },
      ...{ board: this.#board, entryPoint, handler: this.#name, message },
    };
    void endOf(result, wait).then((end) => {
      if (end.kind === "returned") this.#finished(given, end.value as HandlerResult);
      else this.#failed(given, end.kind === "threw" ? end.error : new Failure(504, end.error.message));
      this.#next();
    });
  }

  /** Counts a message. The clock runs from the second one on: most bursts are of one, and need not look at it. */
  #isBurstOver(): boolean {
    const before = this.#inBurst++;
    if (before === 0) return false;
    const now = this.#host.monotonic();
    if (before === 1) this.#burstUntil = now + DISPATCH_BURST_MS;
    return before >= MAILBOX_BURST_MAX || now >= this.#burstUntil;
  }

  #checkIdle(): void {
    if (this.#idleWaiters.length > 0 && this.mailboxLength === 0)
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #finished(given: Posted, data: HandlerResult): void {
    this.#handling = undefined;
    if (data instanceof AnswerLater) return this.#answerLater(given, data);
    this.#reply(given, data);
    given.parcel?.ended();
  }

  #answerLater(given: Posted, { answer }: AnswerLater): void {
    this.#owed++;
    answer.then(
      (data) => {
        this.#owed--;
        this.#reply(given, data);
        given.parcel?.ended();
        this.#checkIdle();
      },
      (thrown: unknown) => {
        this.#owed--;
        this.#fail(given, thrown);
        this.#checkIdle();
      },
    );
  }

  #reply({ message, request }: Posted, data: Json | undefined): void {
    if (message.kind !== "command" && message.kind !== "query") return;
    this.#tell(new MadeMessageEvent(reply(this.#host, message, data ?? null), request));
  }

  #failed(given: Posted, thrown: unknown): void {
    this.#handling = undefined;
    this.#fail(given, thrown);
  }

  /** The loop reports the fault of an event's handler: no requester waits for its outcome. */
  #fail({ message, request, parcel }: Posted, thrown: unknown): void {
    // A refusal for want of clearance is an answer, not a fault.
    const told = isRefusal(thrown) ? new Failure(403, thrown.message) : thrown;
    const data = fromError(told);
    const said = new MadeMessageEvent(error(this.#host, message, data), request, parcel);
    said.thrown = told;
    this.#tell(said);
    parcel?.ended(data.message);
  }

  /** Emits a request; resolves with the data of its reply, and rejects with a `Failure`. */
  ask(request: Message, parcel?: Parcel): Promise<Json> {
    return this.#ask(new MadeMessageEvent(request, undefined, parcel));
  }

  /** Emits a message of another sender; likewise. An event is answered when it is in the journal. */
  relay(message: Message, sender: Sender | undefined): Promise<Json> {
    const said = new MadeMessageEvent(message);
    said.sender = sender;
    return this.#ask(said);
  }

  #ask(said: MadeMessageEvent): Promise<Json> {
    const { id } = said.data.metadata;
    const answer = new Promise<Json>((resolve, reject) => {
      if (this.#terminated) return reject(new Failure(503, TERMINATED));
      this.#asked.set(id, { resolve, reject });
      this.#tell(said);
      const { refused } = said;
      if (refused === undefined) return;
      this.#asked.delete(id);
      reject(refused);
    });
    // Who does not wait for an answer does not hear it; a rejection that nobody awaits would end the process, and everybody else.
    answer.catch(() => undefined);
    return answer;
  }

  /** Emits an event that one of the makers has made; throws where it would reach nobody, so that its handler hears of it. */
  emit(message: Message, parcel?: Parcel): void {
    const said = new MadeMessageEvent(message, undefined, parcel);
    this.#tell(said);
    if (said.refused !== undefined) throw said.refused;
  }

  /** Emits a message that a handler has made. An event that is refused throws; of a request the actor gets an error as its answer. */
  send(message: Message, parcel?: Parcel): void {
    const said = new SentMessageEvent(message, parcel);
    this.#tell(said);
    if (said.refused !== undefined && message?.kind === "event") throw said.refused;
  }

  /** Calls code that may know what the capability may. */
  within<T>(code: () => T): T {
    return withClearance(this.#clearance, code);
  }

  #tell(event: ActorEvent): void {
    if (this.#terminated) return;
    this.onmessage?.(event);
    for (const listener of this.#listeners) listener(event);
  }
}

/** What one handling may do. Its functions are made when they are asked for: most handlers only return. */
export class Handling implements HandlerContext, Cancellable {
  readonly host: Host;
  readonly #actor: MailboxActor;
  readonly #posted: Posted;
  #cancellation: Cancellation | undefined;
  /** Told when the handler has timed out: the attempt that it makes. */
  attempt: Cancellable | undefined;

  constructor(actor: MailboxActor, host: Host, posted: Posted) {
    this.host = host;
    this.#actor = actor;
    this.#posted = posted;
  }

  get signal(): AbortSignal {
    this.#cancellation ??= new Cancellation();
    return this.#cancellation.signal;
  }

  cancel(reason: Error): void {
    this.#cancellation ??= new Cancellation();
    this.#cancellation.cancel(reason);
    this.attempt?.cancel(reason);
  }

  /** Of an event that the journal delivers. */
  get parcel(): Parcel | undefined {
    return this.#posted.parcel;
  }

  /** The parcel of the message. A handler that was left behind sends no more. */
  get #open(): Parcel | undefined {
    const reason = this.#cancellation?.reason;
    if (reason === undefined) return this.#posted.parcel;
    throw new WorkError(
      "WORK_OVER",
      `${this.#posted.message.type}: ${reason.message}, and what it sends now is refused`,
    );
  }

  get emit(): HandlerContext["emit"] {
    return (type, data) => this.#actor.emit(event(this.host, type, data, this.#cause), this.#open);
  }

  get command(): HandlerContext["command"] {
    return (type, data) => this.#actor.ask(command(this.host, type, data, this.#cause), this.#open);
  }

  get query(): HandlerContext["query"] {
    return (type, data) => this.#actor.ask(query(this.host, type, data, this.#cause), this.#open);
  }

  get send(): HandlerContext["send"] {
    return (message) => this.#actor.send(message, this.#open);
  }

  get #cause(): Lineage {
    return causedBy(this.#posted.message);
  }

  get within(): HandlerContext["within"] {
    return (code) => this.#actor.within(code);
  }
}
