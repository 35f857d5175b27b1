/** A message in a lane, and its origin, which decides where the answer goes and which actor may give it. */
import type { Message } from "../message/envelope.ts";
import type { Sender } from "../work/timer-row.ts";
import type { Sending } from "./parcel.ts";
import type { PendingRequest } from "./pending-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

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

/** The sender of a message, which gets the answer. */
export type Origin =
  | { readonly kind: "adapter"; readonly connection: Connection }
  | { readonly kind: "actor"; readonly actor: SupervisedActor }
  /** A caller in this process. */
  | { readonly kind: "caller"; answer(answer: Message): void }
  /** An actor that sends messages of others (the timer): no requester waits, and the authority is the sender's. */
  | { readonly kind: "relay"; readonly actor: SupervisedActor; readonly sender?: Sender | undefined }
  /** The loop itself: no requester waits. */
  | { readonly kind: "nobody" };

export interface Sent {
  readonly message: Message;
  readonly origin: Origin;
}

/** All have one shape: every message that is routed is read from one. */
export interface Inbound extends Sent {
  /** Of a request: the loop has made its id, so it is in no other use. */
  readonly isNew: boolean;
  /** Of an answer: its request, if the actor was given that. */
  readonly request: PendingRequest | undefined;
  /** Of a message that the handler of an event sent: the event's parcel waits for it. */
  readonly sending: Sending | undefined;
}

export function inbound(message: Message, origin: Origin, request?: PendingRequest, sending?: Sending): Inbound {
  return { message, origin, isNew: false, request, sending };
}

export const NOBODY: Origin = { kind: "nobody" };

/** The lanes a message can be put into; microtasks are the loop's own (RFC 0032 §8.1). */
export type LaneName = "system" | "user";

/**
 * The lane of a message whose sender did not choose one: `Sys.*` goes to the system lane (§8.2). `Syscall.*` is not
 * `Sys.*`.
 */
export function laneOf(type: string): LaneName {
  return type.startsWith("Sys.") ? "system" : "user";
}

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

/** Whether an error refuses the request, rather than reports a failure. */
export function isRefusalCode(code: number): boolean {
  return code >= 400 && code < 500;
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
