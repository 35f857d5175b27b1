/** What goes wrong between a client and its kernel. An answer of kind error is a `Failure` instead: the kernel was there. */
import { CodedError } from "../message/coded-error.ts";

export type ClientErrorCode =
  /** Nobody listens on the socket. */
  | "NOT_REACHABLE"
  /** No answer in time. Whether a command took effect is not known; the same id asks again. */
  | "TIMED_OUT"
  /** The request does not fit a line. */
  | "TOO_LONG"
  /** The client was closed, by its owner. */
  | "CLOSED";

export class ClientError extends CodedError<ClientErrorCode> {
  override readonly name = "ClientError";
}
