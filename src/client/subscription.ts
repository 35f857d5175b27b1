/**
 * The events of a kernel's journal as an async iterable, over its own connection. After a lost connection it reconnects
 * and continues after the last event: each comes once and in order. Unconsumed events pause the connection instead of
 * filling memory. SPEC: K35.
 */
import { CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECT_START_MS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom, isFailure } from "../message/error-data.ts";
import { command } from "../message/lineage.ts";
import { messagesOf, pause, type Source } from "./message-stream.ts";

export interface SubscribeOptions {
  /** Types of events; all if neither types nor topics are given. */
  readonly types?: readonly string[];
  /** Topics or patterns, like `email.*`. */
  readonly topics?: readonly string[];
  /** Events after this journal id; default: new events only. */
  readonly from?: number;
  /**
   * Called with the ids after `from`, or after the last event, that were removed from the journal, before the iteration
   * continues without them. It is unknown whether they matched. Without it the iteration fails with a 410.
   */
  readonly onGone?: (ids: GoneIds) => void;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

/** First and last id, inclusive. */
export interface GoneIds {
  readonly firstId: number;
  readonly lastId: number;
}

export interface StreamedEvent {
  /** Its id in the journal, for `from`. */
  readonly id: number;
  readonly message: Message;
}

class Gone extends Failure {
  readonly ids: GoneIds;

  constructor(reason: string, ids: GoneIds) {
    super(410, reason);
    this.ids = ids;
  }
}

export async function* subscribe(source: Source, options: SubscribeOptions): AsyncGenerator<StreamedEvent, void> {
  const { signal } = options;
  let { from } = options;
  let pauseMs = CLIENT_RECONNECT_START_MS;
  for (let first = true; !signal?.aborted; first = false) {
    try {
      for await (const event of oneConnection(source, { ...options, ...(from === undefined ? {} : { from }) })) {
        from = event.id;
        pauseMs = CLIENT_RECONNECT_START_MS;
        yield event;
      }
    } catch (error) {
      if (error instanceof Gone && options.onGone) {
        options.onGone(error.ids);
        from = error.ids.lastId;
        continue;
      }
      // After the first connection, an unreachable kernel is expected to come back.
      if (first || !isFailure(error, "NOT_REACHABLE")) throw error;
    }
    await pause(source.host, pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, CLIENT_RECONNECT_MS_MAX);
  }
}

/** Ends with the connection, or when the kernel drops a slow reader. */
async function* oneConnection(
  source: Source,
  { types, topics, from, signal }: SubscribeOptions,
): AsyncGenerator<StreamedEvent, void> {
  const wanted = { ...(types && { types }), ...(topics && { topics }), ...(from === undefined ? {} : { from }) };
  for await (const message of messagesOf(source, command(source.host, "Sys.Subscribe", wanted), signal)) {
    if (message.kind === "event") yield { id: Number(message.metadata["journalId"]), message };
    else if (message.kind === "error") {
      const { code, message: reason, firstId, lastId } = message.data as ErrorData & Partial<GoneIds>;
      if (code === 503) return;
      if (firstId !== undefined && lastId !== undefined) throw new Gone(reason, { firstId, lastId });
      throw failureFrom(message.data as ErrorData);
    }
  }
}
