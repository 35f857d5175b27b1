/**
 * A capability: its description, its inbound and outbound messages, and how to start its actor (RFC 0032 §10). Actors
 * are shaped like Workers: the loop knows only their `postMessage` and message events.
 */
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import { show } from "../message/problem.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { JournalEntry } from "../store/journal.ts";
import type { Attempt, WorkSpace } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { WorkBoard } from "../work/work-board.ts";
import type { DeliveryOptions } from "./event-journal.ts";
import type { Parcel } from "./parcel.ts";
import type { Failing, Posted } from "./pending-request.ts";

/** Carries an outbound message, an escaped error, or a message that could not be decoded. */
export interface ActorEvent {
  readonly type: string;
  readonly data?: unknown;
  readonly message?: string;
  readonly error?: unknown;
  /** The event whose handler emitted the message, if the actor knows it. */
  readonly parcel?: Parcel | undefined;
}

/** Listens to an actor. */
export type ActorListener = (event: ActorEvent) => void;

/**
 * The Worker surface. Either `addEventListener` or `onmessage` (with `onerror`, `onmessageerror`) is enough; both
 * deliver once. The `on` of an event emitter is heard too, so that a `Worker` of Node can be given as it is.
 */
export interface CapabilityActor {
  postMessage(message: Message): void;
  onmessage?: ActorListener | null;
  onerror?: ActorListener | null;
  onmessageerror?: ActorListener | null;
  addEventListener?(type: "message" | "error" | "messageerror", listener: ActorListener): void;
  /**
   * Takes a message in place of `postMessage`. An actor that has this method calls `parcel.ended()` once for every
   * event, when its handler has ended, or with a reason if it failed. Otherwise an event counts as handled when the
   * actor is idle, or when it was posted.
   */
  accept?(posted: Posted): void;
  /** Ends it; work under way may be lost. With `accept`, it is given the reason, for the parcels that it has. */
  terminate?(reason?: string): unknown;
  /** Messages accepted and not yet handled, where the actor can tell. */
  readonly mailboxLength?: number;
  /** What it has promised to do later, such as timers; it keeps a batch alive. */
  readonly scheduled?: number;
  /** Whether it handles a message now, by its id, and has asked a request that is not answered; where it can tell. */
  waitsFor?(request: string, message: string): boolean;
  /** Whether a message would wait until a message that it handles, by its id, has ended; where it can tell. */
  waitsBehind?(message: Message, handled: string): boolean;
  /**
   * Calls its code for a message that failed before its handler could be called; resolves with a text if that went
   * wrong.
   */
  readonly failedWork?: ((message: Message, failure: HandlerFailure, attempt: Attempt) => unknown) | undefined;
  failed?(message: Message, failure: HandlerFailure, kept?: Failing): Promise<string | undefined> | undefined;
  /** Whether it handles a message now, and has asked a request that is not answered; where it can tell. */
  readonly isAsking?: boolean;
  /** Whether it waits for the answer to a request of its own, where it can tell; otherwise it counts as waiting. */
  awaits?(request: string): boolean;
  /** Takes a message out of its mailbox; false if its handler has begun. */
  withdraw?(message: string): boolean;
  /** The ids of the messages that it was given and has not finished, where it can tell. */
  given?(): ReadonlySet<string>;
  /** Lists the running handler from now on, if it is in no mailbox of this process. */
  watch?(board: WorkBoard, name: string): void;
  /** Limits the time of each handler from now on, if it is in no mailbox of this process; 0: no limit. */
  limitTime?(host: Host, timeoutMs: number): void;
  /** Resolves when no message is being handled, where the actor can tell. */
  idle?(): Promise<void>;
}

/** Messages that an actor has relayed, by their ids; or all of one type that one request has caused. */
export interface Relayed {
  readonly ids: readonly string[];
  readonly causedBy?: { readonly request: string; readonly type: string };
}

/** How many of them were withdrawn, and how many are being handled, or are with a worker or another process. */
export interface Withdrawn {
  readonly withdrawn: number;
  readonly underway: number;
}

/** Facts and functions for a spawned actor. */
export interface SpawnContext {
  readonly host: Host;
  /** The capability's name. */
  readonly name: string;
  /** The topic under which events of a type are journaled; the type itself unless given. */
  readonly topicOf?: (type: string) => string;
  /**
   * Sends a commit that appends events, so that this process handles them without reading them back; plainly sent
   * unless given.
   */
  readonly commitWith?: (entries: JournalEntry[], commit: () => Promise<CommitOutcome>) => Promise<CommitOutcome>;
  /** Lists the handlers that run, if the kernel keeps a board. */
  readonly board?: WorkBoard;
  /** Takes relayed messages back before their handlers begin; for capabilities that relay. */
  readonly withdraw?: (which: Relayed) => Promise<Withdrawn>;
  /** Notes in the journal that a command has failed, or was refused, and resolves when that is durable or cannot be. */
  readonly noteFailed?: (message: Message, error: unknown, as?: "failed" | "refused") => Promise<void>;
}

/** A schema that can validate and describe itself (Standard Schema with JSON Schema; zod 4 is one). */
export interface MessageSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>;
    readonly jsonSchema?: {
      readonly input: (options: { target: string }) => unknown;
      /** Optional: it throws for schemas that transform, which no router can look into. */
      readonly output?: (options: { target: string }) => unknown;
    };
  };
}

export type SchemaResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/**
 * Which commands the loop journals before their handler is called. `"before"`: all. `"unawaited"`: those that no
 * requester waits for; a transactional handler journals the others in its own commit. `false`: none, so a crash loses
 * them.
 */
export type Durability = "before" | "unawaited" | false;

/** Reports a misspelt value, which would lose commands unnoticed until a crash. */
export function durabilityProblem(durable: unknown): string | undefined {
  if (durable === undefined || durable === "before" || durable === "unawaited" || durable === false) return undefined;
  return `durable: must be "before", "unawaited" or false, got ${show(durable)}; leave it out for the default`;
}

/** How events are delivered to a capability. */
export interface EventDeliveries extends Omit<DeliveryOptions, "onFailed"> {
  /** Whether its actor handles failures (`failed`, `failedWork`). */
  readonly hasOnFailed: boolean;
}

/** An actor as the loop runs it: the messages that it takes and sends, and how it starts. */
export interface Capability {
  readonly description: string;
  /** A union of messages that it takes: each branch with a literal kind (command or query) and a literal type. */
  readonly inbound: MessageSchema;
  /** A union of messages that it gives: its replies and events. Errors need not be declared. */
  readonly outbound: MessageSchema;
  /** Types of events it wants. */
  readonly subscribes?: readonly string[];
  /** Emits messages on behalf of others (a timer): any type, and it does not wait for the answers. */
  readonly relays?: boolean;
  /** The labels that it may read, and that its answers may carry; undefined: all (decision 0010). */
  readonly clearance?: readonly string[];
  /** Acts on the kernel itself, such as its end: closed to connections with a clearance. */
  readonly operates?: boolean;
  /**
   * Its commands may run twice: after a crash, a command that was under way runs again. Otherwise it fails as
   * `interrupted`.
   */
  readonly idempotent?: boolean;
  /** The space of a transactional capability: the writes of its event handlers and the delivery are one commit. */
  readonly work?: WorkSpace;
  /** Which of its commands are durable before their handler is called; `"before"` by default. */
  readonly durable?: Durability;
  /** The time of a handler in a Worker: 300,000 ms unless given; 0: no limit. An actor in this process has its own. */
  readonly timeoutMs?: number;
  /** How the journal delivers events to it. */
  readonly deliveries?: EventDeliveries;
  spawn(context: SpawnContext): CapabilityActor;
}
