/**
 * Errors as `application/problem+json` (RFC 9457). SPEC: W22.
 */
import { ERROR_MEANINGS, type ErrorData, fromError } from "../message/error-data.ts";
import { isReason, reasonOf } from "../message/reasons.ts";

/** Seconds after which a client may try a temporary error again. */
const RETRY_AFTER_S = 1;

export interface ProblemContext {
  /** The id of the request, if it had one. */
  readonly requestId?: string | undefined;
  /** Whether the kernel refused the request: no handler ran. */
  readonly refused?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

export function problemResponse(error: ErrorData, { requestId, refused, headers }: ProblemContext = {}): Response {
  const reason = isReason(error.reason) ? error.reason : reasonOf(error.code);
  const status = statusOf(error.code, reason);
  const isTemporary = reason === "ID_IN_USE" || error.retryable === true || status === 429 || status === 503;
  const { code, message, data, cause, errors } = error;
  const problem = {
    type: `/v1/problems/${reason.toLowerCase().replaceAll("_", "-")}`,
    title: titleOf(code, reason),
    status,
    detail: message,
    ...(requestId === undefined ? {} : { instance: `/v1/requests/${encodeURIComponent(requestId)}` }),
    ...{ code, reason },
    ...(data === undefined ? {} : { data }),
    ...(cause === undefined ? {} : { cause }),
    ...(errors === undefined ? {} : { errors }),
    ...(refused === true ? { refused } : {}),
    ...(isTemporary ? { retryAfterMs: RETRY_AFTER_S * 1_000 } : {}),
  };
  return new Response(JSON.stringify(problem), {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(isTemporary ? { "retry-after": String(RETRY_AFTER_S) } : {}),
      ...headers,
    },
  });
}

/** The response to a thrown value. */
export function problemOf(thrown: unknown, context?: ProblemContext): Response {
  return problemResponse(fromError(thrown), context);
}

/** An id that was used for another request is a fault of the request, and no conflict that ends by itself. */
function statusOf(code: number, reason: string): number {
  return reason === "ID_REUSED" ? 422 : code;
}

function titleOf(code: number, reason: string): string {
  const meaning: string | undefined = ERROR_MEANINGS[code as keyof typeof ERROR_MEANINGS];
  if (meaning !== undefined && reason === reasonOf(code)) return meaning;
  const words = reason.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
