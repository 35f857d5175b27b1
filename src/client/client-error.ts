/**
 * Errors between a client and its kernel. An error answer of the kernel is a `Failure` instead.
 */
import { CodedError } from "../message/coded-error.ts";

export type ClientErrorCode =
  /** No kernel listens on the socket. */
  | "NOT_REACHABLE"
  /** No answer in time. It is unknown whether a command took effect; a repeat with the same id is safe. */
  | "TIMED_OUT"
  /** The request does not fit a line. */
  | "TOO_LONG"
  /** The client was closed by its owner. */
  | "CLOSED";

export class ClientError extends CodedError<ClientErrorCode> {
  override readonly name = "ClientError";
}
