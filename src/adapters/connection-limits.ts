/**
 * Limits per client: defaults from `limits.ts`, each configurable per adapter. SPEC: N5, N8, N9, M9.
 */
import {
  DEPTH_MAX,
  LINE_BYTES_MAX,
  LINE_COMPLETE_MS,
  OBJECT_KEYS_MAX,
  REQUESTS_IN_FLIGHT_MAX,
  UNREAD_OUTPUT_BYTES_MAX,
} from "../limits.ts";
import { chosenLimits, requireTime } from "../loop/loop-limits.ts";

export interface ConnectionLimits {
  /** Bytes of one line, without its newline. */
  readonly lineBytesMax: number;
  /** Nested containers in one line, including the message itself. */
  readonly depthMax: number;
  /** Members of one object. */
  readonly keysMax: number;
  /** A started line must end within this time. */
  readonly lineCompleteMs: number;
  /** Requests without an answer. */
  readonly requestsInFlightMax: number;
  /** Bytes written and not read by the client. */
  readonly unreadOutputBytesMax: number;
}

const DEFAULTS: ConnectionLimits = {
  lineBytesMax: LINE_BYTES_MAX,
  depthMax: DEPTH_MAX,
  keysMax: OBJECT_KEYS_MAX,
  lineCompleteMs: LINE_COMPLETE_MS,
  requestsInFlightMax: REQUESTS_IN_FLIGHT_MAX,
  unreadOutputBytesMax: UNREAD_OUTPUT_BYTES_MAX,
};

export function connectionLimits(given: Partial<ConnectionLimits> = {}): ConnectionLimits {
  const limits = chosenLimits(DEFAULTS, given);
  requireTime("lineCompleteMs", limits.lineCompleteMs);
  return limits;
}
