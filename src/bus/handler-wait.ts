/**
 * Waiting for a handler: what it returned or threw, or that it took too long. SPEC: J62, J63.
 *
 * A handler cannot be stopped, only be left behind: its signal is aborted, and what it does later changes nothing here.
 */
import type { Host } from "../host/host.ts";
import { type ErrorData, fromError } from "../message/error-data.ts";
import { StoreError } from "../store/store.ts";

export type HandlerEnd =
  | { readonly kind: "returned"; readonly value: unknown }
  | {
      readonly kind: "failed";
      readonly error: string;
      /** As it was thrown; undefined where it took too long. */
      readonly thrown?: unknown;
      /** `stale`: it stood on something that has moved, and should simply be run again. */
      readonly reason: "threw" | "timeout" | "stale";
    };

/** What tells a handler that nobody waits for it any more. */
export interface Cancellable {
  cancel(reason: Error): void;
}

/** How long a handler is waited for. */
export interface HandlerWait {
  readonly host: Host;
  readonly timeoutMs: number;
}

/** Calls a handler with its event and `context`. A promise only where the handler gave one. */
export function callHandler<Given, Context extends Cancellable>(
  handler: (event: Given, context: Context) => unknown,
  event: Given,
  context: Context,
  wait: HandlerWait,
): HandlerEnd | Promise<HandlerEnd> {
  try {
    const returned = handler(event, context);
    return isThenable(returned) ? waitFor(returned, context, wait) : { kind: "returned", value: returned };
  } catch (error) {
    return handlerFailed(error);
  }
}

function handlerFailed(error: unknown): HandlerEnd {
  return { kind: "failed", error: errorText(error), thrown: error, reason: isStale(error) ? "stale" : "threw" };
}

function isStale(error: unknown): boolean {
  try {
    return error instanceof StoreError && error.code === "STORE_STALE";
  } catch {
    // Of a proxy that was revoked even the class cannot be asked for: it is none of ours.
    return false;
  }
}

/** An error as one line for the journal, with its causes. */
export function errorText(error: unknown): string {
  const texts: string[] = [];
  for (let link: ErrorData | undefined = fromError(error); link !== undefined; link = link.cause)
    texts.push(link.message);
  return texts.join(", because: ");
}

function waitFor(
  returned: PromiseLike<unknown>,
  context: Cancellable,
  { host, timeoutMs }: HandlerWait,
): Promise<HandlerEnd> {
  return new Promise((resolve) => {
    const timer = host.timer(timeoutMs, () => {
      const error = new Error(`the handler timed out after ${timeoutMs} ms`);
      context.cancel(error);
      resolve({ kind: "failed", error: error.message, reason: "timeout" });
    });
    const failed = (error: unknown) => {
      timer.cancel();
      resolve(handlerFailed(error));
    };
    try {
      returned.then((value) => {
        timer.cancel();
        resolve({ kind: "returned", value });
      }, failed);
    } catch (error) {
      // It is no promise of the language: its `then` is the handler's own code.
      failed(error);
    }
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
