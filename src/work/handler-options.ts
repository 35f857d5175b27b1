/**
 * The options of handlers, the same at every entry point, and their one check. Each entry point adds its own options
 * and the arguments of its handlers. SPEC: U100-U112.
 */
import { DISPATCH_CONCURRENCY_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { type Retry, retryProblem } from "./retry-policy.ts";

/** Why an invocation has failed for good. */
export interface HandlerFailure {
  /**
   * `died`: the process died with the message so often that it is not tried again. `not-committed`: the commit was
   * refused.
   */
  readonly kind: "threw" | "timeout" | "not-committed" | "died";
  readonly message: string;
  /** The value that the handler threw, if it did. */
  readonly thrown?: unknown;
  /** How often the handler was tried. */
  readonly attempts: number;
}

/** `Given` are the arguments of `serialBy`, `Tx` is the context of `onFailed`, and `Data` its third argument. */
export interface HandlerOptions<Given extends readonly unknown[] = never, Tx = never, Data = never> {
  /** How often a failed invocation is tried: a number of attempts in all, or a policy. Once unless given. */
  readonly retry?: Retry;
  /** A handler that takes longer has failed: 300,000 ms unless given; 0 for ever. */
  readonly timeoutMs?: number;
  /** How many invocations run at once. */
  readonly concurrency?: number;
  /** Invocations with the same key run one after the other, in their order; those of different keys side by side. */
  readonly serialBy?: (...given: Given) => string;
  /** Called once an invocation has failed for good, before that is recorded: its commit carries the failed status. */
  readonly onFailed?: (failure: HandlerFailure, tx: Tx, data: Data) => unknown;
}

export const KNOWN_HANDLER_OPTIONS: Readonly<Record<keyof HandlerOptions, true>> = {
  ...{ retry: true, timeoutMs: true, concurrency: true, serialBy: true, onFailed: true },
};

/** The first mistake in the options of a handler, as a sentence; options outside of `known` are mistakes too. */
export function handlerOptionsProblem(
  options: { readonly [option in keyof HandlerOptions]?: unknown },
  known?: Readonly<Record<string, true>>,
): string | undefined {
  const { retry, timeoutMs, concurrency, serialBy, onFailed } = options;
  const unknown = known === undefined ? undefined : unknownOption(options, known);
  if (unknown !== undefined) return unknown;
  if (retry !== undefined) {
    const problem = retryProblem(retry);
    if (problem !== undefined) return problem;
  }
  if (timeoutMs !== undefined && !isTime(timeoutMs))
    return `timeoutMs: must be 0, for ever, to 100 years, got ${show(timeoutMs)}`;
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && (concurrency as number) >= 1))
    return `concurrency must be a whole number of at least 1 (${DISPATCH_CONCURRENCY_MAX} is usual), got ${show(concurrency)}`;
  if (serialBy !== undefined && typeof serialBy !== "function")
    return `serialBy must be a function that gives the key, got ${show(serialBy)}`;
  if (onFailed !== undefined && typeof onFailed !== "function")
    return `onFailed must be a function of the failure, got ${show(onFailed)}`;
  return undefined;
}

function isTime(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= TIMER_DELAY_MS_MAX;
}
