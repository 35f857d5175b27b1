/** The one handler of a stream, and its options. */
import type { Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Attempt, AttemptKind } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { Retry } from "../work/retry-policy.ts";

/** Handles one event; its result becomes the receipt's value. */
export type SendHandler = (value: Json, attempt: Attempt) => unknown;

export interface StreamHandlerOptions {
  /** For people; the function's own name by default. */
  readonly name?: string;
  /**
   * Reads the documents that the handler will read, so that they are up to date before it runs; its writes are dropped.
   */
  readonly preflight?: (value: Json) => unknown;
  /** Fetches data from elsewhere before the handler runs. The handler runs even if it fails. */
  readonly presync?: (value: Json) => Promise<unknown>;
  /** The labels that the handler may read; undefined: all. */
  readonly clearance?: readonly string[];
  /** An asynchronous handler that takes longer has failed: 300,000 ms unless given; 0 for ever. */
  readonly timeoutMs?: number;
  /** How often a handler that throws or times out is tried; once unless given. */
  readonly retry?: Retry;
  /** Called in an attempt of its own when a send has failed for good by a throw or a timeout. */
  readonly onFailed?: (failure: HandlerFailure, attempt: Attempt, value: Json) => unknown;
}

export interface RegisteredHandler extends StreamHandlerOptions {
  readonly name: string;
  readonly run: SendHandler;
  /** Created by its first attempt. */
  kind?: AttemptKind;
}

/** The codes of `StreamError`. */
export type StreamErrorCode =
  /** The stream has a handler already. */
  | "STREAM_HANDLED"
  /** A computation tried to send. */
  | "STREAM_SEND_IN_COMPUTATION"
  /** Options of a send that contradict each other. */
  | "STREAM_MISUSE";

/** Wrong use of a stream. */
export class StreamError extends MillraceError<StreamErrorCode> {
  override readonly name = "StreamError";
}
