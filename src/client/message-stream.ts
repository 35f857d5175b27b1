/**
 * One connection that asks once and then hears messages until it ends: the events of a journal, the answers of a live
 * query. Messages that the program does not take hold the connection up, not the memory. SPEC: K35.
 */
import type { Host } from "../host/host.ts";
import { CLIENT_EVENTS_WAITING_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { LineLink } from "./line-link.ts";

export interface Source {
  readonly path: string;
  readonly host: Host;
}

/** Ends with the connection, or with the signal. */
export async function* messagesOf(
  { path, host }: Source,
  request: Message,
  signal: AbortSignal | undefined,
): AsyncGenerator<Message, void> {
  const arrived: Message[] = [];
  let lost = false;
  let wake: () => void = () => undefined;
  const link = await LineLink.open(path, host, {
    message: (message) => {
      if (arrived.push(message) >= CLIENT_EVENTS_WAITING_MAX) link.pause();
      wake();
    },
    lost: () => {
      lost = true;
      wake();
    },
  });
  const aborted = () => wake();
  signal?.addEventListener("abort", aborted);
  link.send(JSON.stringify(request));
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
export function pause(host: Host, ms: number, signal: AbortSignal | undefined): Promise<void> {
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
