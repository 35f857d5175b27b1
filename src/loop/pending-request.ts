/**
 * A request, the sender that gets its answer, and the actor that may give it.
 */
import type { Timer } from "../host/host.ts";
import type { Kind, Message, Metadata } from "../message/envelope.ts";
import type { ErrorData } from "../message/error-data.ts";
import type { Answerable, Lineage } from "../message/lineage.ts";
import { causedBy } from "../message/lineage.ts";
import type { Settlement } from "../store/journal.ts";
import type { Sender } from "../work/timer-row.ts";
import type { Parcel } from "./parcel.ts";

/** One client of an adapter. */
export interface Connection {
  readonly id: string;
  readonly adapter: string;
  /** The name of its holder, where the adapter knows it. */
  readonly principal?: string;
  /** The labels that it may receive: it reaches only capabilities whose clearance lies within. Undefined: all. */
  readonly clearance?: readonly string[];
  /**
   * An answer to one of its requests: each request gets one. `begunAt`: when the handler began, on the monotonic clock,
   * if the actor tells.
   */
  deliver(answer: Message, begunAt?: number): void;
  /** An event of this client is journaled, or was refused. */
  taken?(event: Message): void;
  /** An event it asked for, or the early end of a subscription. */
  stream(message: Message): void;
  /** Whether its output has room for more. */
  readonly hasRoom: boolean;
  /** Resolves when it has room again, or is gone. */
  whenRoom(): Promise<void>;
}

/** A supervised actor, as the sender and as the receiver of requests. */
export interface RequestingActor {
  readonly name: string;
  /** The origin of all its messages, as one object. */
  readonly origin: Origin;
  readonly capability: { readonly clearance?: readonly string[]; readonly idempotent?: boolean };
  /** Whether it handles a message now, and has asked a request that is not answered. */
  readonly isAsking: boolean;
  /** Whether an emission that is refused throws in the handler. */
  readonly hearsRefusals: boolean;
  /** Whether it waits for the answer to a request of its own. */
  awaits(request: string): boolean;
  /** Whether it has asked a request, and handles the message. */
  waitsFor(request: string, message: string): boolean;
  /** Whether a message would wait until a message that it handles has ended: all do if it handles one at a time. */
  waitsBehind(message: Message, handled: string): boolean;
  /** Takes a request back that it has not begun to handle; false if it has, or cannot tell. */
  withdraw(request: string): boolean;
  /** Puts a message into its mailbox; the reason if it is not taken. */
  post(posted: Posted): string | undefined;
  /** The ids of the messages that it was given and has not finished. */
  given(): ReadonlySet<string>;
  /** Delivers the answer to a request of the actor; false if it does not run. */
  answer(message: Message | Message<ErrorData>): boolean;
}

/** The sender of a message, which gets the answer. */
export type Origin =
  | { readonly kind: "adapter"; readonly connection: Connection }
  | { readonly kind: "actor"; readonly actor: RequestingActor }
  /** A caller in this process. */
  | { readonly kind: "caller"; answer(answer: Message): void }
  /** An actor that sends messages of others (the timer): no requester waits, and the authority is the sender's. */
  | { readonly kind: "relay"; readonly actor: RequestingActor; readonly sender?: Sender | undefined }
  /** The loop itself: no requester waits. */
  | { readonly kind: "nobody" };

export const NOBODY: Origin = { kind: "nobody" };

/** Whether a requester gets the answer. An actor that only sends does not, nor does a client that has set a timer. */
export function isAwaited({ metadata }: Pick<Message, "metadata">, origin: Origin): boolean {
  switch (origin.kind) {
    case "adapter":
    case "caller":
      return true;
    case "actor":
      return origin.actor.awaits(metadata.id);
    case "relay":
    case "nobody":
      return false;
  }
}

/** The sender of a message, for people. */
export function senderText(origin: Origin): string {
  switch (origin.kind) {
    case "adapter":
      return `a client of the ${origin.connection.adapter}`;
    case "actor":
    case "relay":
      return origin.actor.name;
    case "caller":
      return "the program";
    case "nobody":
      return "the kernel";
  }
}

/** A message whose failure may be settled by a commit of its handler. */
export interface Failing {
  /** The settlement that fails it; `isSettled` is set after the commit. */
  failing(error: string): Settlement | undefined;
  isSettled: boolean;
}

/** The journal's part in a request, which remains when the requester is gone and receives the outcome. */
export interface Kept extends Failing {
  /** Whether its actor has it. */
  readonly state: "kept" | "posted";
  /** The origin of the request, which the entry forgets when no requester waits. */
  readonly sentBy: Origin;
  /** Counts the deliveries of the journal from 1. */
  readonly attempt: number;
  /** Its handler has failed, and the journal delivers it again later. */
  retryLater(request: PendingRequest, reason: string, delayMs: number): void;
  ended(answer: Message | Message<ErrorData>, requester: Origin): void;
}

/**
 * The data that an answer needs, and its receiver. It shares no object with the actor, which may change its message.
 * The fields that consequences of the request carry are copied one by one, which costs less than a copy of the
 * metadata.
 */
export class PendingRequest implements Answerable {
  readonly kind: Kind;
  readonly type: string;
  readonly id: string;
  /** The causation of the request. */
  readonly cause: string | undefined;
  /** The receiver of the answer; for a journaled command, none after its requester has left. */
  origin: Origin;
  /** The actor it was dispatched to. */
  readonly actor: RequestingActor;
  /** The journal's part in it, where it has one. */
  readonly kept: Kept | undefined;
  timeout: Timer | undefined = undefined;
  /** Whether it is answered, or its requester is gone. */
  isOver = false;
  /** Its place in the ring of recent handlings; undefined without a ring. */
  handling: number | undefined = undefined;
  /** When its handler began, on the monotonic clock; undefined if the actor does not tell. */
  begunAt: number | undefined = undefined;
  /** Its index among the unlisted; -1 if it is listed. */
  place = -1;
  readonly #timestamp: number;
  /** The other metadata of its consequences; undefined for most requests. */
  readonly #carried: Omit<Lineage, "causation"> | undefined;

  constructor({ kind, type, metadata }: Message, origin: Origin, actor: RequestingActor, kept: Kept | undefined) {
    this.kind = kind;
    this.type = type;
    this.id = metadata.id;
    this.cause = metadata.causation ?? undefined;
    this.origin = origin;
    this.actor = actor;
    this.kept = kept;
    this.#timestamp = metadata.timestamp;
    this.#carried = carriedBy(metadata);
  }

  get metadata(): Metadata {
    return { ...this.#carried, id: this.id, timestamp: this.#timestamp };
  }
}

/**
 * The authority of a message that is sent later for this request. A timer that is set by a timer's message has none.
 */
export function senderOf(request: PendingRequest | undefined): Sender | undefined {
  const origin = request?.kept?.sentBy ?? request?.origin;
  switch (origin?.kind) {
    case "adapter":
      return { kind: "client", id: origin.connection.id };
    case "actor":
    case "caller":
      return { kind: "kernel" };
    default:
      return undefined;
  }
}

function carriedBy(metadata: Metadata): Omit<Lineage, "causation"> | undefined {
  const { correlation, traceparent, tracestate, label } = metadata;
  if (correlation === undefined && traceparent === undefined && tracestate === undefined && label === undefined)
    return undefined;
  const { causation: _, ...carried } = causedBy({ metadata });
  return carried;
}

/**
 * A message for an actor, with its entry in the pending table or, of an event that the journal delivers, its parcel.
 */
export interface Posted {
  readonly message: Message;
  readonly request: PendingRequest | undefined;
  readonly parcel: Parcel | undefined;
}
