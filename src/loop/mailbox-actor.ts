/**
 * An actor in this process: a bounded mailbox, whose messages are handled one at a time in order (RFC 0032 §10.3,
 * §10.4). `postMessage` only queues. The result of a handler becomes the reply, a throw becomes the error; the handler
 * may emit events and ask other capabilities. Answers to its own requests bypass the mailbox, so that an actor cannot
 * wait for itself.
 */

import type { Host, Timer } from "../host/host.ts";
import { Waiters } from "../host/waiters.ts";
import { DISPATCH_BURST_MS, MAILBOX_BURST_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { causationOf } from "../message/envelope.ts";
import { type ErrorData, errorText, Failure, failureFrom, fromError } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import {
  causedBy,
  commandMessage,
  error,
  eventMessage,
  type Lineage,
  queryMessage,
  reply,
} from "../message/lineage.ts";
import { withClearance } from "../store/clearance.ts";
import { isRefusal, type Label, labelOf } from "../store/label.ts";
import type { Attempt } from "../work/attempt.ts";
import { Cancellation } from "../work/cancellation.ts";
import { type Cancellable, callHandler, endOf, type HandlerWait, isThenable } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { type Retry, type RetryPolicy, retryDelayMs, retryPolicyOf, worthRetrying } from "../work/retry-policy.ts";
import type { Sender } from "../work/timer-row.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { WorkError } from "../work/work-error.ts";
import type { ActorEvent, ActorListener, CapabilityActor } from "./capability.ts";
import { isRefusalCode } from "./inbound.ts";
import { Mailbox, type OrderingKeyOf } from "./mailbox.ts";
import type { Parcel } from "./parcel.ts";
import type { Failing, PendingRequest, Posted } from "./pending-request.ts";
import { isAwaited } from "./pending-request.ts";

const TERMINATED = "the actor was terminated";

/** The functions of a handler's context. */
export interface CapabilityContext {
  /** Publishes an event caused by the message that is being handled. */
  emit(type: string, data: Json): void;
  /**
   * Sends a command and waits for the answer. Throws a `Failure` if it fails, or if the actor would wait for itself,
   * alone or in a circle of others.
   */
  command(type: string, data: Json): Promise<Json>;
  query(type: string, data: Json): Promise<Json>;
  /** Puts any message into the loop as the actor's own, without waiting. */
  send(message: Message): void;
  /**
   * Calls code that reads within the clearance of the capability. Until its first `await` a handler does so anyway;
   * after one, plain reads have no clearance: `await context.within(() => cell.pull())`.
   */
  within<T>(code: () => T): T;
  /**
   * Aborted when the handler has timed out: its answer is 504 by then, and the actor continues with the next message.
   */
  readonly signal: AbortSignal;
  readonly host: Host;
}

/** The handler has ended, and its answer follows later: the actor continues with the next message meanwhile. */
export class AnswerLater {
  readonly answer: Promise<Json | undefined>;
  /** The answer was given before: no handler runs for it. */
  readonly isReplayed: boolean;

  constructor(answer: Promise<Json | undefined>, isReplayed = false) {
    this.answer = answer;
    this.isReplayed = isReplayed;
  }
}

export type HandlerResult = Json | undefined | AnswerLater;

export type MessageHandler = (
  message: Message,
  context: MessageHandling,
  /** The pending request of the message, if the loop has passed it on. */
  request?: PendingRequest,
) => HandlerResult | Promise<HandlerResult>;

/** Carries a message whose envelope this package made: only its data must be checked. */
export class MadeMessageEvent implements ActorEvent {
  readonly type = "message";
  readonly data: Message<Json | ErrorData>;
  /** Of an answer: its request, if the actor was given that. */
  readonly request: PendingRequest | undefined;
  readonly parcel: Parcel | undefined;
  /** Set by the listener if the message is not routed. */
  declare refused?: Failure;
  /** The thrown value of an error answer, for logs. It does not leave the process. */
  declare thrown?: unknown;
  /** Of a message that is relayed: its authority. */
  declare sender?: Sender | undefined;

  constructor(message: Message<Json | ErrorData>, request?: PendingRequest, parcel?: Parcel) {
    this.data = message;
    this.request = request;
    this.parcel = parcel;
  }
}

/** Carries a message that a handler has made itself, through `send`. */
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

/** A handler has failed, and the message is handled again after a delay: no answer tells of it. */
export class FailedAttempt implements ActorEvent {
  readonly type = "message";
  /** The message that the handler was given. */
  readonly given: Message;
  readonly thrown: unknown;
  readonly delayMs: number;

  constructor(given: Message, thrown: unknown, delayMs: number) {
    this.given = given;
    this.thrown = thrown;
    this.delayMs = delayMs;
  }
}

/** Handles the failure of an event as part of an attempt. */
export type FailedWork = (message: Message, failure: HandlerFailure, attempt: Attempt) => unknown;

/** A message that has failed for good. */
export interface FailedMessage {
  readonly message: Message;
  readonly request: PendingRequest | undefined;
  /** Of the last attempt. Undefined if none was made: the process died with the message. */
  readonly handling: MessageHandling | undefined;
  readonly failure: HandlerFailure;
  /** Of a journaled command. */
  readonly kept: Failing | undefined;
  /** A context for code that handles the failure. */
  readonly context: MessageHandling;
}

export interface MailboxOptions {
  /** Called for each message that is put into the mailbox. */
  readonly posted?: ((message: Message) => void) | undefined;
  /**
   * How often a failed command is tried. While it waits for its next attempt, the actor goes on with other messages.
   */
  readonly retry?: Retry | undefined;
  /** How many messages are handled at once; 1 unless given. */
  readonly concurrency?: number | undefined;
  readonly serialBy?: OrderingKeyOf | undefined;
  /** How many messages of a key are handled at once; 1 of each other key. */
  readonly limits?: ReadonlyMap<string, number> | undefined;
  /** Called for a message that is not tried again, before its error leaves; returns a text to add to the error. */
  readonly failed?: ((failed: FailedMessage) => Promise<string | undefined> | undefined) | undefined;
  readonly failedWork?: FailedWork | undefined;
  readonly clearance?: readonly string[] | undefined;
  /** How long a handler may take; 0, the default, means no limit. */
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
  readonly #mailbox: Mailbox;
  readonly #retry: RetryPolicy;
  readonly #whenFailed: MailboxOptions["failed"];
  readonly #whenPosted: MailboxOptions["posted"];
  readonly failedWork: FailedWork | undefined;
  /** Attempts that messages have had, of those that were tried more than once here. */
  readonly #attempts = new Map<Posted, number>();
  /** Messages that wait for their next attempt. */
  readonly #retries = new Map<Posted, Timer>();
  /** Whether the next burst is queued. */
  #isQueued = false;
  /** Messages that are handled and whose answer is not out. */
  #owed = 0;
  #terminated = false;
  /** Messages handled in the present burst. */
  #inBurst = 0;
  /** When the present burst must let the host in. */
  #burstUntil = 0;
  /** Its open requests to others, by id. */
  readonly #asked = new Map<string, Asked>();
  readonly #idleWaiters = new Waiters();

  constructor(host: Host, handle: MessageHandler, options: MailboxOptions = {}) {
    const { clearance, timeoutMs = 0, name = "", board, concurrency = 1, serialBy, limits } = options;
    this.#host = host;
    this.#handle = handle;
    this.#timeoutMs = timeoutMs;
    this.#name = name;
    this.#board = board;
    this.#mailbox = new Mailbox(concurrency, serialBy, limits);
    this.#retry = retryPolicyOf(options.retry);
    this.#whenFailed = options.failed;
    this.#whenPosted = options.posted;
    this.failedWork = options.failedWork;
    this.#clearance = clearance === undefined ? undefined : labelOf(clearance);
  }

  get mailboxLength(): number {
    return this.#terminated ? 0 : this.#mailbox.length + this.#owed + this.#retries.size;
  }

  postMessage(message: Message): void {
    this.accept({ message, request: undefined, parcel: undefined });
  }

  /** The answer names the request again; a parcel ends with its handler. */
  accept(posted: Posted): void {
    if (this.#terminated) return posted.parcel?.ended(TERMINATED);
    if (this.#answered(posted.message)) return;
    this.#mailbox.push(posted);
    this.#whenPosted?.(posted.message);
    this.#queue();
  }

  #queue(): void {
    if (this.#isQueued || !this.#mailbox.hasPlace) return;
    this.#isQueued = true;
    this.#host.microtask(this.#begin);
  }

  addEventListener(type: string, listener: ActorListener): void {
    if (type === "message" && !this.#listeners.includes(listener)) this.#listeners = [...this.#listeners, listener];
  }

  terminate(reason = TERMINATED): void {
    this.#terminated = true;
    const left = [...this.#mailbox.remove(() => true), ...this.#mailbox.handled];
    for (const { parcel } of left) parcel?.ended(reason);
    for (const timer of this.#retries.values()) timer.cancel();
    this.#retries.clear();
    this.#attempts.clear();
    for (const { reject } of this.#asked.values()) reject(new Failure(503, TERMINATED));
    this.#asked.clear();
    this.#checkIdle();
  }

  idle(): Promise<void> {
    if (this.mailboxLength === 0) return Promise.resolve();
    return this.#idleWaiters.wait();
  }

  waitsFor(request: string, message: string): boolean {
    return this.#asked.has(request) && this.#mailbox.handles(message);
  }

  waitsBehind(request: Message, message: string): boolean {
    return this.#mailbox.waitsBehind(request, message);
  }

  awaits(request: string): boolean {
    return this.#asked.has(request);
  }

  /** An actor with a free place, or with a handler that has no open request, can continue by itself. */
  get isAsking(): boolean {
    if (this.#asked.size === 0 || this.#mailbox.hasPlace) return false;
    if (this.#mailbox.concurrency === 1) return true;
    const causes = new Set([...this.#asked.values()].map(({ cause }) => cause));
    return this.#mailbox.handled.every(({ message }) => causes.has(message.metadata.id));
  }

  given(): ReadonlySet<string> {
    return new Set([...this.#mailbox, ...this.#mailbox.handled].map(({ message }) => message.metadata.id));
  }

  withdraw(message: string): boolean {
    if (this.#mailbox.remove((given) => given.message.metadata.id === message).length === 0) return false;
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
    this.#isQueued = false;
    this.#inBurst = 0;
    this.#next();
  };

  /**
   * Handles messages while there is a place. Synchronous handlers follow each other without a promise, up to the length
   * of a burst.
   */
  #next(): void {
    const mailbox = this.#mailbox;
    while (mailbox.hasNext && !this.#terminated) {
      if (this.#isBurstOver()) {
        if (!this.#isQueued) this.#host.task(this.#begin);
        this.#isQueued = true;
        return;
      }
      const given = mailbox.next();
      if (given === undefined) break;
      const { message } = given;
      if (given.request?.handling !== undefined) given.request.begunAt = this.#host.monotonic();
      let result: HandlerResult | Promise<HandlerResult>;
      const handling = new MessageHandling(this, this.#host, given, this.#attemptOf(given));
      try {
        if (mailbox.keyProblem !== undefined) throw mailbox.keyProblem;
        result =
          this.#clearance === undefined
            ? this.#handle(message, handling, given.request)
            : this.within(() => this.#handle(message, handling, given.request));
      } catch (thrown) {
        this.#mailbox.ended(given);
        this.#fail(given, handling, "threw", thrown);
        continue;
      }
      if (isThenable(result)) this.#await(given, handling, result);
      else this.#finished(given, handling, result);
    }
    this.#checkIdle();
  }

  /** A handler that takes too long is abandoned: its caller is told, and the mailbox continues. */
  #await(given: Posted, handling: MessageHandling, result: PromiseLike<HandlerResult>): void {
    void endOf(result, this.#waitFor(given.message, handling)).then((end) => {
      if (end.kind === "returned") this.#finished(given, handling, end.value as HandlerResult);
      else {
        this.#mailbox.ended(given);
        const thrown = end.kind === "threw" ? end.error : new Failure(504, end.error.message);
        this.#fail(given, handling, end.kind, thrown);
      }
      this.#next();
    });
  }

  #waitFor(message: Message, handling: MessageHandling): HandlerWait {
    const entryPoint = message.kind === "command" || message.kind === "query" ? message.kind : "event";
    return {
      ...{ host: this.#host, timeoutMs: this.#timeoutMs, cancellable: handling, keepAlive: false },
      ...{ board: this.#board, entryPoint, handler: this.#name, message },
    };
  }

  /** Counts a message. The clock is read from the second one on, because most bursts have one message. */
  #isBurstOver(): boolean {
    const before = this.#inBurst++;
    if (before === 0) return false;
    const now = this.#host.monotonic();
    if (before === 1) this.#burstUntil = now + DISPATCH_BURST_MS;
    return before >= MAILBOX_BURST_MAX || now >= this.#burstUntil;
  }

  #checkIdle(): void {
    if (!this.#idleWaiters.isEmpty && this.mailboxLength === 0) this.#idleWaiters.release();
  }

  #finished(given: Posted, handling: MessageHandling, data: HandlerResult): void {
    this.#mailbox.ended(given);
    if (data instanceof AnswerLater) return this.#answerLater(given, handling, data);
    this.#reply(given, data);
    given.parcel?.ended();
  }

  #answerLater(given: Posted, handling: MessageHandling, { answer, isReplayed }: AnswerLater): void {
    this.#owed++;
    answer.then(
      (data) => {
        this.#owed--;
        this.#reply(given, data, isReplayed);
        given.parcel?.ended();
        this.#checkIdle();
      },
      (thrown: unknown) => {
        this.#owed--;
        this.#fail(given, handling, "threw", thrown);
        this.#checkIdle();
      },
    );
  }

  #reply(given: Posted, data: Json | undefined, isReplayed = false): void {
    const { message, request } = given;
    if (this.#attempts.size > 0) this.#attempts.delete(given);
    if (message.kind !== "command" && message.kind !== "query") return;
    const made = reply(this.#host, message, data ?? null);
    const answer = isReplayed ? { ...made, metadata: { ...made.metadata, replayed: true } } : made;
    this.#tell(new MadeMessageEvent(answer, request));
  }

  // Failures
  // ------------------------------------------------------------------------------------------------------------

  #attemptOf(given: Posted): number {
    return given.request?.kept?.attempt ?? (this.#attempts.size === 0 ? 1 : (this.#attempts.get(given) ?? 1));
  }

  /** Tries the message again later, or tells its failure. */
  #fail(given: Posted, handling: MessageHandling, kind: "threw" | "timeout", cause: unknown): void {
    // A refusal for want of clearance is an answer, not a fault.
    const thrown = isRefusal(cause) ? new Failure(403, cause.message) : cause;
    const isAnswer = isRefused(given, thrown);
    const again = isAnswer ? undefined : this.#retryIn(given, handling, kind === "timeout" ? undefined : thrown);
    if (typeof again === "number") return this.#again(given, handling, again, thrown);
    this.#attempts.delete(given);
    const message = again === undefined ? errorText(thrown) : `${errorText(thrown)}; ${again.problem}`;
    const failure: HandlerFailure = {
      kind,
      message,
      attempts: handling.attemptNumber,
      ...(kind === "threw" ? { thrown } : {}),
    };
    const told = { thrown, isTimeout: kind === "timeout", more: again?.problem };
    // The journal decides whether an event is tried again, and calls for its failure.
    const isOver = !isAnswer && given.parcel === undefined && !this.#terminated;
    const handled = isOver ? this.#failed({ ...given, handling, failure, kept: given.request?.kept }) : undefined;
    if (handled === undefined) return this.#tellFailure(given, told);
    this.#owed++;
    const tell = (problem: string | undefined) => {
      this.#owed--;
      this.#tellFailure(given, { ...told, more: problem ?? told.more });
      this.#checkIdle();
    };
    void handled.then(tell, (mistake: unknown) => tell(`onFailed failed: ${errorText(mistake)}`));
  }

  /** The delay before the next attempt; undefined if there is none, or a problem if the policy threw. */
  #retryIn(
    { message, request, parcel }: Posted,
    { attemptNumber }: MessageHandling,
    thrown: unknown,
  ): number | { problem: string } | undefined {
    const policy = this.#retry;
    if (policy.attempts === 1 || parcel !== undefined || message.kind === "query" || request?.isOver) return undefined;
    const worth = worthRetrying(policy, thrown);
    if (worth === "no") return undefined;
    if (worth !== "yes") return { problem: `retry.when threw: ${errorText(worth.thrown)}` };
    return retryDelayMs(policy, attemptNumber, this.#host);
  }

  /** A journaled command waits in the journal, any other message here, for as long as its requester does. */
  #again(given: Posted, { attemptNumber }: MessageHandling, delayMs: number, thrown: unknown): void {
    const { request } = given;
    this.#tell(new FailedAttempt(given.message, thrown, delayMs));
    if (request?.kept !== undefined) return request.kept.retryLater(request, errorText(thrown), delayMs);
    this.#attempts.set(given, attemptNumber + 1);
    const isKept = { keepAlive: request !== undefined };
    const begin = () => {
      this.#retries.delete(given);
      if (request?.isOver) this.#attempts.delete(given);
      else this.#mailbox.push(given);
      this.#queue();
      this.#checkIdle();
    };
    this.#retries.set(given, this.#host.timer(delayMs, begin, isKept));
  }

  /** Calls the code for messages that have failed for good. */
  #failed(failed: Omit<FailedMessage, "context">): Promise<string | undefined> | undefined {
    if (this.#whenFailed === undefined || failed.message.kind === "query") return undefined;
    const { message, request } = failed;
    const context = new MessageHandling(
      this,
      this.#host,
      { message, request, parcel: undefined },
      failed.failure.attempts,
    );
    return this.#whenFailed({ ...failed, context });
  }

  failed(message: Message, failure: HandlerFailure, kept?: Failing): Promise<string | undefined> | undefined {
    return this.#failed({ message, request: undefined, handling: undefined, failure, kept });
  }

  /** Calls `onFailed` of a capability, within its timeout and its clearance; returns a text if it fails. */
  async callFailed(message: Message, context: MessageHandling, code: () => unknown): Promise<string | undefined> {
    const end = await callHandler(() => this.within(code), undefined, undefined, this.#waitFor(message, context));
    return end.kind === "returned" ? undefined : `onFailed failed: ${errorText(end.error)}`;
  }

  /** The loop reports the fault of an event's handler: no requester waits for its outcome. */
  #tellFailure(
    { message, request, parcel }: Posted,
    { thrown, isTimeout, more }: { thrown: unknown; isTimeout: boolean; more: string | undefined },
  ): void {
    const plain = fromError(thrown);
    const data = more === undefined ? plain : { ...plain, message: `${plain.message}; ${more}` };
    const said = new MadeMessageEvent(error(this.#host, message, data), request, parcel);
    said.thrown = thrown;
    this.#tell(said);
    if (parcel === undefined) return;
    parcel.isTimeout = isTimeout;
    parcel.ended(errorText(thrown), isTimeout ? undefined : thrown);
  }

  /** Emits a request; resolves with the data of its reply, and rejects with a `Failure`. */
  ask(request: Message, parcel?: Parcel): Promise<Json> {
    return this.#ask(new MadeMessageEvent(request, undefined, parcel));
  }

  /** Emits a message of another sender, like `ask`. An event is answered when it is in the journal. */
  relay(message: Message, sender: Sender | undefined): Promise<Json> {
    const said = new MadeMessageEvent(message);
    said.sender = sender;
    return this.#ask(said);
  }

  #ask(said: MadeMessageEvent): Promise<Json> {
    const { id } = said.data.metadata;
    const answer = new Promise<Json>((resolve, reject) => {
      if (this.#terminated) return reject(new Failure(503, TERMINATED));
      this.#asked.set(id, { resolve, reject, cause: causationOf(said.data) });
      this.#tell(said);
      const { refused } = said;
      if (refused === undefined) return;
      this.#asked.delete(id);
      reject(refused);
    });
    // A sender that does not await the answer must not cause an unhandled rejection, which would end the process.
    answer.catch(() => undefined);
    return answer;
  }

  /** Emits an event with a made envelope; throws if it is refused, so that the handler is told. */
  emit(message: Message, parcel?: Parcel): void {
    const said = new MadeMessageEvent(message, undefined, parcel);
    this.#tell(said);
    if (said.refused !== undefined) throw said.refused;
  }

  /**
   * Emits a message that a handler has made. A refused event throws; for a refused request the actor gets an error as
   * its answer.
   */
  send(message: Message, parcel?: Parcel): void {
    const said = new SentMessageEvent(message, parcel);
    this.#tell(said);
    if (said.refused !== undefined && message?.kind === "event") throw said.refused;
  }

  /** Calls code within the clearance of the capability. */
  within<T>(code: () => T): T {
    return withClearance(this.#clearance, code);
  }

  #tell(eventMessage: ActorEvent): void {
    if (this.#terminated) return;
    this.onmessage?.(eventMessage);
    for (const listener of this.#listeners) listener(eventMessage);
  }
}

/** A request of the actor that is not answered. */
interface Asked {
  readonly resolve: (data: Json) => void;
  readonly reject: (failure: Failure) => void;
  /** The message whose handler has asked. */
  readonly cause: string | undefined;
}

/** A 4xx to a waiting requester is an answer. It is not tried again. */
function isRefused({ message, request }: Posted, thrown: unknown): boolean {
  return request !== undefined && isRefusalCode(fromError(thrown).code) && isAwaited(message, request.origin);
}

/** The context of one handling. Its functions are created on demand, because most handlers only return. */
export class MessageHandling implements CapabilityContext, Cancellable {
  readonly host: Host;
  readonly #actor: MailboxActor;
  readonly #posted: Posted;
  /** Counts the attempts at the message from 1. */
  readonly attemptNumber: number;
  #cancellation: Cancellation | undefined;
  /** The attempt of the handler, which is cancelled when it has timed out. */
  attempt: Cancellable | undefined;
  /** Whether the handler itself has failed, and its reads were valid; set by a transactional handler. */
  hasFailed = false;

  constructor(actor: MailboxActor, host: Host, posted: Posted, attempt: number) {
    this.attemptNumber = attempt;
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

  /** Calls `onFailed` with this context, within the timeout; returns a text if it fails. */
  callFailed(code: () => unknown): Promise<string | undefined> {
    return this.#actor.callFailed(this.#posted.message, this, code);
  }

  /** The parcel of an event that the journal delivers. */
  get parcel(): Parcel | undefined {
    return this.#posted.parcel;
  }

  /** The parcel of the message; throws for a handler that was abandoned after its timeout. */
  get #open(): Parcel | undefined {
    const reason = this.#cancellation?.reason;
    if (reason === undefined) return this.#posted.parcel;
    throw new WorkError(
      "WORK_OVER",
      `${this.#posted.message.type}: ${reason.message}, and its further messages are refused`,
    );
  }

  get emit(): CapabilityContext["emit"] {
    return (type, data) => this.#actor.emit(eventMessage(this.host, type, data, this.#cause), this.#open);
  }

  get command(): CapabilityContext["command"] {
    return (type, data) => this.#actor.ask(commandMessage(this.host, type, data, this.#cause), this.#open);
  }

  get query(): CapabilityContext["query"] {
    return (type, data) => this.#actor.ask(queryMessage(this.host, type, data, this.#cause), this.#open);
  }

  get send(): CapabilityContext["send"] {
    return (message) => this.#actor.send(message, this.#open);
  }

  get #cause(): Lineage {
    return causedBy(this.#posted.message);
  }

  get within(): CapabilityContext["within"] {
    return (code) => this.#actor.within(code);
  }
}
