/**
 * Reasons of failures, for programs: `UPPER_SNAKE` words beside the numeric code. The kernel's list is closed; the
 * first reason of a code is the one that a failure of this code has unless it names another. Apps choose their own
 * words. SPEC: M41, M42.
 */
import { REASON_LENGTH_MAX } from "../limits.ts";

/** The kernel's reasons and their codes. */
export const KERNEL_REASONS = {
  BAD_REQUEST: 400,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  /** A request under this id waits for its answer. */
  ID_IN_USE: 409,
  /** The id was used for a different request. */
  ID_REUSED: 409,
  EXPIRED: 410,
  /** Older than the receipts that are kept: it is not known whether the request was handled. */
  TOO_OLD: 410,
  /** Handled, and its answer was erased with the data of a subject. */
  ERASED: 410,
  TOO_LARGE: 413,
  INVALID: 422,
  /** The query is no synchronous query of an app, so its reads are not tracked. */
  NOT_LIVE: 422,
  FAILED: 500,
  /** The process died during the handler, which is neither transactional nor idempotent. */
  INTERRUPTED: 500,
  UPSTREAM_FAILED: 502,
  UNAVAILABLE: 503,
  /** The kernel shuts down. */
  DRAINING: 503,
  /** No kernel listens at the address of the client. */
  NOT_REACHABLE: 503,
  /** The client was closed by its owner. */
  CLOSED: 503,
  TIMED_OUT: 504,
} as const;

/** The kernel's reasons; `REFUSED` is that of an app's own 4xx code without a reason. */
export type KernelReason = keyof typeof KERNEL_REASONS | "REFUSED";

const BY_CODE = new Map<number, KernelReason>();
for (const [reason, code] of Object.entries(KERNEL_REASONS))
  if (!BY_CODE.has(code)) BY_CODE.set(code, reason as KernelReason);

/** The reason of a failure that names none. */
export function reasonOf(code: number): KernelReason {
  return BY_CODE.get(code) ?? (code < 500 ? "REFUSED" : "FAILED");
}

const REASON = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;

export function isReason(value: unknown): value is string {
  return typeof value === "string" && value.length <= REASON_LENGTH_MAX && REASON.test(value);
}

/** Codes after which the same request, under the same id, can succeed later. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function isRetryable(code: number): boolean {
  return RETRYABLE.has(code);
}
