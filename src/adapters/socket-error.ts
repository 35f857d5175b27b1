/**
 * Errors when a socket is opened; the message has the remedy.
 */
import { MillraceError } from "../message/millrace-error.ts";

export type SocketErrorCode =
  /** A kernel listens on the path. */
  | "SOCKET_IN_USE"
  /** A file that is not a socket is at the path. */
  | "SOCKET_NOT_OURS"
  /** Other users may write to the folder. */
  | "SOCKET_UNSAFE"
  /** The system refused; the message has its reason. */
  | "SOCKET_FAILED";

/** The socket of a kernel cannot be opened. */
export class SocketError extends MillraceError<SocketErrorCode> {
  override readonly name = "SocketError";
}
