/**
 * A live query over a connection of its own. When the connection is lost it connects again with the version of its last
 * answer, and is told the answer of then if that differs. SPEC: A31, W71.
 */
import { CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECT_START_MS } from "../limits.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { command } from "../message/lineage.ts";
import type { Source } from "./link.ts";
import { messagesOf, pause } from "./message-stream.ts";

export interface Watched {
  readonly type: string;
  readonly data: Json;
  readonly signal: AbortSignal;
}

export interface Listener {
  answer(value: Json): unknown;
  /** Told of a query that fails, and of a kernel that refuses it; the latter is the end. */
  failed(error: unknown): unknown;
}

/** Resolves when the signal or a refusal has ended it. Tells an answer only if it differs from the last one. */
export async function watch(source: Source, { type, data, signal }: Watched, listener: Listener): Promise<void> {
  let version: string | undefined;
  for (
    let pauseMs = CLIENT_RECONNECT_START_MS;
    !signal.aborted;
    pauseMs = Math.min(pauseMs * 2, CLIENT_RECONNECT_MS_MAX)
  ) {
    try {
      const request = command(source.host, "Sys.Watch", { type, data, ...(version === undefined ? {} : { version }) });
      for await (const message of messagesOf(source, request, signal)) {
        if (message.kind === "error" && isRefusal(message.metadata, message.data as ErrorData))
          return void listener.failed(failureFrom(message.data as ErrorData));
        if (message.kind === "error") {
          version = undefined;
          listener.failed(failureFrom(message.data as ErrorData));
        }
        if (message.kind !== "event") continue;
        pauseMs = CLIENT_RECONNECT_START_MS;
        const told = message.data as { readonly answer?: Json; readonly version: string; readonly same?: true };
        version = told.version;
        if (told.same !== true) listener.answer(told.answer ?? null);
      }
    } catch (error) {
      // The kernel may come back. A request that cannot be made at all, or whose token is refused, is the end.
      if (error instanceof Failure && (error.code === 422 || error.code === 401)) return void listener.failed(error);
    }
    if (!signal.aborted) await pause(source.host, pauseMs, signal);
  }
}

/** Whether the kernel did not begin to watch; a kernel that is full or about to end may take it later. */
function isRefusal(metadata: { readonly [key: string]: unknown }, { code }: ErrorData): boolean {
  return metadata["watch"] === undefined && code !== 503;
}
