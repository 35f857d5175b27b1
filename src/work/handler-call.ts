/**
 * The call of a handler, at every entry point: it returns, throws, or takes too long. SPEC: U30-U36, J62.
 *
 * A handler that returns no thenable costs no promise. A function cannot be stopped, only left behind: when its time is
 * over, its `Cancellable` ends its transaction and aborts its signal, and its later end is ignored.
 */
import { asyncContext } from "../host/async-context.ts";
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import type { WorkBoard, WorkFacts } from "./work-board.ts";

/** How a call ended. */
export type HandlerEnd =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "timeout"; readonly error: Error };

/** How long a handler is waited for, and where it is listed meanwhile. */
export interface HandlerWait extends WorkFacts {
  readonly host: Host;
  readonly cancellable: Cancellable;
  /** Lists the handler until it ends. */
  readonly board: WorkBoard | undefined;
  readonly message: Pick<Message, "type"> & { readonly metadata: Pick<Message["metadata"], "id"> };
  /** Whether the process stays alive for the timeout; true unless given. */
  readonly keepAlive?: boolean;
}

/** Told when the time of a handler is over, before its end is given. */
export interface Cancellable {
  cancel(reason: Error): void;
}

/** Calls a handler with two arguments. Gives a promise only if the handler returned a thenable. */
export function callHandler<First, Second>(
  handler: (first: First, second: Second) => unknown,
  first: First,
  second: Second,
  wait?: HandlerWait,
): HandlerEnd | Promise<HandlerEnd> {
  let value: unknown;
  try {
    // The handler does not join the transaction of its caller.
    value =
      asyncContext.get() === undefined ? handler(first, second) : asyncContext.clear(() => handler(first, second));
  } catch (error) {
    return { kind: "threw", error };
  }
  return isThenable(value) ? endOf(value, wait) : { kind: "returned", value };
}

/** The end of a handler that returned a thenable. */
export function endOf(thenable: PromiseLike<unknown>, wait?: HandlerWait): Promise<HandlerEnd> {
  return new Promise((resolve) => {
    const work = wait?.board?.begin(wait, wait.message.metadata.id, wait.message.type);
    const expire = () => {
      const error = new Error(`the handler timed out after ${wait?.timeoutMs} ms`);
      if (work !== undefined) wait?.board?.leaveBehind(work);
      wait?.cancellable.cancel(error);
      resolve({ kind: "timeout", error });
    };
    const timer =
      wait === undefined || wait.timeoutMs === 0
        ? undefined
        : wait.host.timer(wait.timeoutMs, expire, { keepAlive: wait.keepAlive ?? true });
    const over = () => {
      timer?.cancel();
      if (work !== undefined) wait?.board?.end(work);
    };
    const threw = (error: unknown) => {
      over();
      resolve({ kind: "threw", error });
    };
    try {
      // `Promise.resolve` calls the `then` of a foreign thenable in a job of its own, and turns its throw into a
      // rejection.
      Promise.resolve(thenable).then((value) => {
        over();
        resolve({ kind: "returned", value });
      }, threw);
    } catch (error) {
      // The `constructor` of the promise throws.
      threw(error);
    }
  });
}

/**
 * Whether a value is a promise of any library. An object with a getter `then` that throws counts: awaiting it rejects.
 */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  try {
    return "then" in value && typeof value.then === "function";
  } catch {
    return true;
  }
}
