/**
 * The events of a kernel's journal as an async iterable, over its own connection. After a lost connection it reconnects
 * and continues after the last event: each comes once and in order. Unconsumed events pause the connection instead of
 * filling memory. SPEC: K35.
 */

import type { Message } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom, isFailure } from "../message/error-data.ts";
import { isJsonObject } from "../message/json.ts";
import { commandMessage } from "../message/lineage.ts";
import type { Source } from "./link.ts";
import { messagesOf, pauseOrAbort, reconnectMs } from "./message-stream.ts";

/** Which events `client.events` yields, and from where. */
export interface EventSubscribeOptions {
  /** Types of events; all if neither types nor topics are given. */
  readonly types?: readonly string[];
  /** Topics or patterns, like `email.*`. */
  readonly topics?: readonly string[];
  /** Events after this cursor, or all with `"start"`; default: new events only. */
  readonly from?: string;
  /**
   * Called if events after `from`, or after the last event, were removed from the journal, before the iteration
   * continues without them. It is unknown whether they matched. Without it the iteration fails with a 410.
   */
  readonly onGone?: (gone: GoneEvents) => void;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

/** Events that were removed from the journal. */
export interface GoneEvents {
  /** The iteration continues after this cursor. */
  readonly cursor: string;
}

/** An event of the journal, as `client.events` yields it. */
export interface StreamedEvent {
  /** Its id in the journal. */
  readonly id: number;
  /** For `from`, to continue after this event. */
  readonly cursor: string;
  readonly message: Message;
}

class Gone extends Failure {
  readonly events: GoneEvents;

  constructor(reason: string, events: GoneEvents) {
    super(410, reason);
    this.events = events;
  }
}

export async function* subscribe(source: Source, options: EventSubscribeOptions): AsyncGenerator<StreamedEvent, void> {
  const { signal } = options;
  let { from } = options;
  let failures = 0;
  for (let first = true; !signal?.aborted; first = false) {
    try {
      for await (const event of oneConnection(source, { ...options, ...(from === undefined ? {} : { from }) })) {
        from = event.cursor;
        failures = 0;
        yield event;
      }
    } catch (error) {
      if (error instanceof Gone && options.onGone) {
        options.onGone(error.events);
        from = error.events.cursor;
        continue;
      }
      // After the first connection, an unreachable kernel is expected to come back.
      if (first || !isFailure(error, "NOT_REACHABLE")) throw error;
    }
    await pauseOrAbort(source.host, reconnectMs(++failures), signal);
  }
}

/** Ends with the connection, or when the kernel drops a slow reader. */
async function* oneConnection(
  source: Source,
  { types, topics, from, signal }: EventSubscribeOptions,
): AsyncGenerator<StreamedEvent, void> {
  const wanted = { ...(types && { types }), ...(topics && { topics }), ...(from === undefined ? {} : { from }) };
  for await (const message of messagesOf(source, commandMessage(source.host, "Sys.Subscribe", wanted), signal)) {
    if (message.kind === "event") {
      const { journalId, cursor } = message.metadata;
      yield { id: Number(journalId), cursor: String(cursor), message };
    } else if (message.kind === "error") {
      const { code, message: reason, data } = message.data as ErrorData;
      if (code === 503) return;
      if (code === 410 && isJsonObject(data) && typeof data["cursor"] === "string")
        throw new Gone(reason, { cursor: data["cursor"] });
      throw failureFrom(message.data as ErrorData);
    }
  }
}
