/**
 * One link that asks once and then gets messages until it ends: the events of a journal, the answers of a live query.
 * Messages that the program does not read pause the link; they do not fill the memory. SPEC: K35.
 */

import { backoffMs } from "../host/backoff.ts";
import { CLIENT_EVENTS_WAITING_MAX, CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECT_START_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import type { LinkEvents, Source } from "./link.ts";
import type { ClientHost } from "./page-host.ts";

/** Ends with the connection, or with the signal. */
export async function* messagesOf(
  source: Source,
  request: Message,
  signal: AbortSignal | undefined,
): AsyncGenerator<Message, void> {
  const arrived: Message[] = [];
  let lost = false;
  let wake: () => void = () => undefined;
  const events: LinkEvents = {
    message: (message) => {
      if (arrived.push(message) >= CLIENT_EVENTS_WAITING_MAX) link.pause();
      wake();
    },
    lost: () => {
      lost = true;
      wake();
    },
  };
  const link = await source.open(events, request);
  const aborted = () => wake();
  signal?.addEventListener("abort", aborted);
  try {
    while (!signal?.aborted) {
      const message = arrived.shift();
      if (message) {
        yield message;
        continue;
      }
      if (lost) return;
      link.resume();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    signal?.removeEventListener("abort", aborted);
    link.end();
  }
}

/** Waits, or until the signal. */
/** The wait after so many failures in a row. */
export function reconnectMs(failures: number): number {
  return backoffMs(failures, { startMs: CLIENT_RECONNECT_START_MS, maxMs: CLIENT_RECONNECT_MS_MAX });
}

export function pauseOrAbort(host: ClientHost, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = host.timer(ms, end);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}
