/** What goes wrong between a client and its kernel. An answer of kind error is a `Failure` instead: the kernel was there. */
export type ClientErrorCode =
  /** Nobody listens on the socket. */
  | "NOT_REACHABLE"
  /** No answer in time. Whether a command took effect is not known; the same id asks again. */
  | "TIMED_OUT"
  /** The request does not fit a line. */
  | "TOO_LONG"
  /** The client was closed, by its owner. */
  | "CLOSED";

export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly code: ClientErrorCode;

  constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
