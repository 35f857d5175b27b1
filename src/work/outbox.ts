/**
 * The transactional outbox of one entry point: messages of a handler become rows of its commit. Events and commands are
 * journal rows, `pending` for the bus; messages for later are timer rows of the due table. SPEC: U70-U72, U76.
 *
 * The id of a message follows from its invocation and its key or place, and carries the time of the first attempt. So
 * the attempts at one invocation make the same ids, and an invocation that waited for long makes no ids that the store
 * takes for too old (S101).
 */
import { ERASE_SUBJECT_LENGTH_MIN, TIMER_DELAY_MS_MAX, TX_MESSAGES_MAX } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import { ID_LENGTH_MAX, isMessageType, type Message } from "../message/envelope.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { cloneData } from "../message/json-copy.ts";
import { causedBy, type Lineage, MessageTypeError } from "../message/lineage.ts";
import { problemText, show, within } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import type { Transaction } from "../store/transaction.ts";
import type { Attempt } from "./attempt.ts";
import { nextSlot, type Schedule, scheduleProblem } from "./schedule.ts";
import { armed, messageIdOf, TIMER_KIND, type TimerData } from "./timer-row.ts";
import { WorkError } from "./work-error.ts";

/** Options of `tx.send` and `tx.emit`. */
export interface MessageOptions {
  /** Names the message within its invocation: its id does not depend on the order in which messages are sent. */
  readonly key?: string;
  /** When it is sent, in milliseconds since 1970; with the commit unless given. */
  readonly at?: number;
  /** The same, in milliseconds from now. */
  readonly delayMs?: number;
}

/** Rules of an entry point for the messages of its handlers. */
export interface OutboxRules {
  /** Publishes them: the capability, subscriber or stream. */
  readonly source: string;
  /** The topic of an event of a type; the type itself unless given. */
  readonly topicOf?: ((type: string) => string) | undefined;
  /** The type of an event of a topic; throws if it is no topic. */
  readonly typeOf?: ((topic: string) => string) | undefined;
  /** Why a message may not be sent. */
  readonly problemOf?: ((message: Message, topic: string) => string | undefined) | undefined;
  /** Starts pieces of patterns; undefined where there are none. */
  readonly space?: object | undefined;
  /** Asks on behalf of a handler; undefined without a kernel. */
  readonly requester?: (() => Requester | undefined) | undefined;
}

/** Sends requests, and waits for their answers. An error is thrown as `Failure`. */
export interface Requester {
  ask(request: Message): Promise<Json>;
}

/** A timer of a space, by its name: set again it is replaced. */
export type TxTimerOptions = {
  /** Names the timer in its space. */
  readonly name: string;
  /** The message that is sent when it fires. */
  readonly send: {
    readonly type: string;
    /** `null` unless given. */
    readonly data?: Json;
    /** A command unless given. */
    readonly kind?: "command" | "event";
  };
} & (
  | { readonly at: number }
  | { readonly delayMs: number }
  | { readonly everyMs: number }
  | { readonly cron: string; readonly timezone?: string }
);

const PENDING = { status: "pending" } as const;
/** The last moment that a JavaScript date can name. */
const AT_MAX = 8_640_000_000_000_000;

export class Outbox {
  readonly #rules: OutboxRules;

  constructor(rules: OutboxRules) {
    this.#rules = rules;
  }

  /** The same, with another rule about messages. */
  restricted(problemOf: NonNullable<OutboxRules["problemOf"]>): Outbox {
    return new Outbox({ ...this.#rules, problemOf });
  }

  /** Where pieces are started. */
  get space(): object {
    const { source, space } = this.#rules;
    if (space === undefined) throw misuse(`${source} has no space to start a piece in`);
    return space;
  }

  get requester(): Requester {
    const { source, requester } = this.#rules;
    const found = requester?.();
    if (found === undefined) throw misuse(`${source} cannot ask: only a kernel has handlers of commands and queries`);
    return found;
  }

  /** Events are named by their type, or by a topic. */
  emit(attempt: Attempt, cause: Message | undefined, name: string, data: unknown, options?: MessageOptions): string {
    if (!isMessageType(name)) return this.publish(attempt, cause, name, data, options);
    return this.#put(
      attempt,
      cause,
      { kind: "event", type: name, topic: this.#rules.topicOf?.(name) ?? name },
      data,
      options,
    );
  }

  publish(
    attempt: Attempt,
    cause: Message | undefined,
    topic: string,
    data: unknown,
    options?: MessageOptions,
  ): string {
    const { typeOf = topicType } = this.#rules;
    return this.#put(attempt, cause, { kind: "event", type: typeOf(topic), topic }, data, options);
  }

  send(attempt: Attempt, cause: Message | undefined, type: string, data: unknown, options?: MessageOptions): string {
    if (!isMessageType(type)) throw new MessageTypeError(type);
    return this.#put(attempt, cause, { kind: "command", type, topic: type }, data, options);
  }

  /** A timer row of the commit, which replaces one of the same name. It fires once, or at the slots of its schedule. */
  setTimer(attempt: Attempt, cause: Message | undefined, options: TxTimerOptions): void {
    attempt.requireOpen();
    const { name, send, ...when } = options;
    requireName(name);
    const { kind = "command", type, data = null } = send;
    if (!isMessageType(type)) throw new MessageTypeError(type);
    const setting = attempt.messageId();
    const topic = kind === "event" ? (this.#rules.topicOf?.(type) ?? type) : type;
    const message = this.#message(attempt, cause, { kind, type, topic, id: setting }, data);
    const { transaction, now } = attempt;
    requireRoom(transaction, this.#rules.source);
    const { metadata, ...template } = message;
    const { id: _id, timestamp: _timestamp, ...lineage } = metadata;
    const timing = timingOf(when, now);
    const timer: TimerData = { lineage: lineage as JsonObject, template, request: setting, setting, ...timing.data };
    transaction.due.push(armed({ id: timerIdOf(attempt, name), dueAtMs: timing.dueAtMs, data: timer }));
  }

  /** The timer of this name does not fire again; a message that it has sent already is not taken back. */
  cancelTimer(attempt: Attempt, name: string): void {
    attempt.requireOpen();
    requireName(name);
    requireRoom(attempt.transaction, this.#rules.source);
    attempt.transaction.due.push({ op: "cancel", kind: TIMER_KIND, key: timerIdOf(attempt, name) });
  }

  /**
   * Asks the kernel to erase the data of a subject after the commit. It needs no declaration, since every kernel
   * handles it.
   */
  erase(attempt: Attempt, cause: Message | undefined, subject: string): string {
    if (typeof subject !== "string" || subject.length < ERASE_SUBJECT_LENGTH_MIN)
      throw misuse(`erase: needs a subject of at least ${ERASE_SUBJECT_LENGTH_MIN} characters, got ${show(subject)}`);
    return this.#put(attempt, cause, ERASE, { subject });
  }

  #put(
    attempt: Attempt,
    cause: Message | undefined,
    { kind, type, topic }: { readonly kind: "event" | "command"; readonly type: string; readonly topic: string },
    data: unknown,
    options: MessageOptions = NO_OPTIONS,
  ): string {
    attempt.requireOpen();
    const { transaction } = attempt;
    const { source } = this.#rules;
    const id = attempt.messageId(options.key);
    const message = this.#message(attempt, cause, { kind, type, topic, id }, data);
    requireRoom(transaction, source);
    const dueAtMs = dueAt(options, message.metadata.timestamp);
    if (dueAtMs === undefined) {
      transaction.entries.push({ message, topic, source, as: PENDING });
      return id;
    }
    const { id: _id, timestamp: _timestamp, ...lineage } = message.metadata;
    const template = { kind, type, data: message.data };
    transaction.due.push(armed({ id, dueAtMs, data: { lineage: lineage as JsonObject, template, request: id } }));
    return messageIdOf({ id });
  }

  /**
   * Made and checked now: the handler may change the data before the commit, and handlers of this process are given
   * this very copy.
   */
  #message<Kind extends "event" | "command">(
    attempt: Attempt,
    cause: Message | undefined,
    {
      kind,
      type,
      topic,
      id,
    }: { readonly kind: Kind; readonly type: string; readonly topic: string; readonly id: string },
    data: unknown,
  ): Message & { readonly kind: Kind } {
    const { source, problemOf } = this.#rules;
    const does = kind === "event" ? "emit" : "send";
    const copy = cloneData(data);
    if (copy.kind === "impure")
      throw misuse(`${source} does not ${does} this: ${problemText(within("data", copy.problem))}`);
    const metadata = { ...lineageOf(attempt, cause), id, timestamp: attempt.host.now() };
    const message = { kind, type, data: copy.value, metadata };
    const problem = type === ERASE.type ? undefined : problemOf?.(message, topic);
    if (problem !== undefined) throw misuse(`${source} does not ${does} this: ${problem}`);
    return message;
  }
}

/** Timers of one space share their names: any handler of the space can cancel one. */
function timerIdOf({ replica }: Attempt, name: string): string {
  return contentId(["timer of a space", replica.space, name]);
}

function requireName(name: unknown): void {
  if (typeof name === "string" && name !== "" && name.length <= ID_LENGTH_MAX) return;
  throw misuse(`name: a timer is named by 1 to ${ID_LENGTH_MAX} characters, got ${show(name)}`);
}

/** The first deadline of a timer, and the timing in its row. */
function timingOf(when: Omit<TxTimerOptions, "name" | "send">, nowMs: number) {
  const { at, delayMs, ...schedule } = when as MessageOptions & Schedule;
  const dueAtMs = dueAt({ ...(at === undefined ? {} : { at }), ...(delayMs === undefined ? {} : { delayMs }) }, nowMs);
  const isRepeated = Object.values(schedule).some((value) => value !== undefined);
  if (dueAtMs !== undefined && isRepeated) throw misuse("give one of at, delayMs, everyMs and cron");
  if (dueAtMs !== undefined) return { dueAtMs, data: {} };
  const problem = scheduleProblem(schedule);
  if (problem !== undefined) throw misuse(isRepeated ? problem : "needs one of at, delayMs, everyMs and cron");
  const slotMs = nextSlot(schedule, nowMs, nowMs);
  if (slotMs === undefined) throw misuse("cron: has no moment after now");
  return { dueAtMs: slotMs, data: { schedule, slotMs } };
}

const NO_OPTIONS: MessageOptions = {};
const ERASE = { kind: "command", type: "Kernel.Erase", topic: "Kernel.Erase" } as const;

function lineageOf({ id }: Attempt, cause: Message | undefined): Lineage {
  if (cause !== undefined) return causedBy(cause);
  return id === undefined ? {} : { causation: id };
}

function requireRoom({ extras }: Transaction, source: string): void {
  if (extras === undefined || extras.entries.length + extras.due.length < TX_MESSAGES_MAX) return;
  throw misuse(
    `${source} sends more than ${TX_MESSAGES_MAX} messages in one transaction; send a command to itself for the rest`,
  );
}

/** When a message is due; undefined for one that goes with the commit. */
export function dueAt({ at, delayMs }: MessageOptions, nowMs: number): number | undefined {
  if (at === undefined && delayMs === undefined) return undefined;
  if (at !== undefined && delayMs !== undefined) throw misuse("give either at or delayMs");
  if (delayMs !== undefined && !(typeof delayMs === "number" && delayMs >= 0))
    throw misuse(`delayMs: must be 0 to ${TIMER_DELAY_MS_MAX}, got ${show(delayMs)}`);
  if (at !== undefined && !(typeof at === "number" && Math.abs(at) <= AT_MAX))
    throw misuse(`at: must be milliseconds since 1970, got ${show(at)}`);
  // Whole milliseconds, upwards: never early.
  const dueAtMs = Math.ceil(at ?? nowMs + (delayMs as number));
  if (dueAtMs - nowMs <= TIMER_DELAY_MS_MAX) return dueAtMs;
  throw misuse(
    `${at === undefined ? "delayMs" : "at"}: comes due in ${dueAtMs - nowMs} ms; at most 100 years ahead are allowed`,
  );
}

function misuse(message: string): WorkError {
  return new WorkError("WORK_MISUSE", message);
}
