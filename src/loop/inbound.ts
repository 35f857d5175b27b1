/** A message in a lane, and its origin, which decides where the answer goes and which actor may give it. */
import type { Message } from "../message/envelope.ts";
import type { Sending } from "./parcel.ts";
import type { Origin, PendingRequest } from "./pending-request.ts";

export interface SentMessage {
  readonly message: Message;
  readonly origin: Origin;
}

/** All have one shape: every message that is routed is read from one. */
export interface Inbound extends SentMessage {
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

/** The lanes a message can be put into; microtasks are the loop's own (RFC 0032 §8.1). */
export type LaneName = "system" | "user";

/**
 * The lane of a message whose sender did not choose one: `Sys.*` goes to the system lane (§8.2). `Syscall.*` is not
 * `Sys.*`.
 */
export function laneOf(type: string): LaneName {
  return type.startsWith("Sys.") ? "system" : "user";
}

/** Whether an error refuses the request, rather than reports a failure. */
export function isRefusalCode(code: number): boolean {
  return code >= 400 && code < 500;
}
