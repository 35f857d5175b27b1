/**
 * Limits how long foreign code is waited for. JavaScript cannot end it: after its time it counts as failed,
 * its signal fires, and its later result is dropped. SPEC: X16.
 */
import type { Host } from "../host/host.ts";
import { ExtensionError } from "./extension-error.ts";

export interface TimeLimit {
  readonly host: Host;
  readonly limitMs: number;
  /** Names it when it is late: `initialize of inbox`. */
  readonly what: string;
  /** Ends the waiting as well. */
  readonly signal?: AbortSignal;
}

export async function withinTime<T>(
  { host, limitMs, what, signal }: TimeLimit,
  work: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    controller.abort(reason);
    reject(reason);
  };
  const abort = () => end(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  const timer = host.timer(limitMs, () => {
    end(new ExtensionError("EXTENSION_TIMED_OUT", `${what} took longer than ${limitMs} ms`));
  });
  // Begun in a promise, so that a synchronous throw is a rejection too.
  const working = Promise.resolve().then(() => {
    controller.signal.throwIfAborted();
    return work(controller.signal);
  });
  // The result is late, and not used.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, ended]);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", abort);
    ended.catch(() => undefined);
  }
}
