/**
 * The calls of an app from another process, with the types of the app and nothing of its code. SPEC: A31, W62.
 */

import type { AppEvent, Caller, CallOptions, EventsOptions, Live, Result } from "../app/caller.ts";
import { LiveValues } from "../app/live-values.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { commandMessage } from "../message/lineage.ts";
import type { KernelClient, Status } from "./kernel-client.ts";
import type { Source } from "./link.ts";
import { messagesOf, pauseOrAbort, reconnectMs } from "./message-stream.ts";
import type { EventSubscribeOptions } from "./subscription.ts";

/** A kernel in another process, typed by its apps. */
export interface Connected<A> extends Caller<A>, AsyncDisposable {
  /** The state of the connection; the same object until it changes. */
  readonly status: Status;
  /** Calls back when the status has changed, until the returned function is called. */
  onStatus(listener: () => unknown): () => void;
  close(): Promise<void>;
}

export class AppConnection implements AsyncDisposable {
  readonly #client: KernelClient;
  readonly #source: Source & { close?(): void };
  readonly #end = new AbortController();

  constructor(client: KernelClient, source: Source & { close?(): void }) {
    this.#client = client;
    this.#source = source;
  }

  get status(): Status {
    return this.#client.status;
  }

  onStatus(listener: () => unknown): () => void {
    return this.#client.onStatus(listener);
  }

  command(type: string, data?: unknown, options?: CallOptions): Promise<Json> {
    return this.#ask("command", type, data, options);
  }

  async safeCommand(type: string, data?: unknown, options?: CallOptions): Promise<Result<Json, Failure>> {
    try {
      return { ok: true, value: await this.command(type, data, options) };
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return { ok: false, failure };
    }
  }

  query(type: string, data?: unknown, options?: CallOptions): Promise<Json> {
    return this.#ask("query", type, data, options);
  }

  live(type: string, data: unknown = null): Live<Json> {
    return new LiveValues((listener, onError) => {
      const stopped = new AbortController();
      const signal = AbortSignal.any([stopped.signal, this.#end.signal]);
      void watch(this.#source, { type, data: data as Json, signal }, { answer: listener, failed: onError });
      return () => stopped.abort();
    });
  }

  events(
    names: string | readonly string[],
    options: EventsOptions = {},
  ): AsyncIterableIterator<AppEvent<string, Json>> {
    const types = typeof names === "string" ? [names] : names;
    const end = new AbortController();
    const signal = options.signal === undefined ? end.signal : AbortSignal.any([options.signal, end.signal]);
    const events = this.#follow({ ...options, types, signal });
    // Subscribed at once: events after this call are not missed, however late the iteration begins.
    let first: Promise<IteratorResult<AppEvent<string, Json>, void>> | undefined = events.next();
    first.catch(() => undefined);
    return {
      next() {
        const next = first ?? events.next();
        first = undefined;
        return next;
      },
      return() {
        end.abort();
        return events.return();
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async *#follow(options: EventSubscribeOptions): AsyncGenerator<AppEvent<string, Json>, void> {
    for await (const { id, cursor, message } of this.#client.subscribe(options))
      yield { id, cursor, type: message.type, data: message.data };
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#client.close();
    this.#source.close?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #ask(kind: "command" | "query", type: string, data: unknown, options: CallOptions = {}): Promise<Json> {
    const { host } = this.#source;
    const { id = host.id(), ...waiting } = options;
    const metadata = { id, timestamp: host.now() };
    const answer = await this.#client.request({ kind, type, data: (data ?? null) as Json, metadata }, waiting);
    if (answer.kind === "reply") return answer.data;
    throw failureFrom(answer.data as ErrorData);
  }
}

interface Watched {
  readonly type: string;
  readonly data: Json;
  readonly signal: AbortSignal;
}

interface Listener {
  answer(value: Json): unknown;
  /** Told of a query that fails, and of a kernel that refuses it; the latter is the end. */
  failed(error: unknown): unknown;
}

/**
 * A live query over a connection of its own. When the connection is lost it connects again with the version of its last
 * answer, and is told the answer of then if that differs. SPEC: A31, W71.
 *
 * Resolves when the signal or a refusal has ended it. Tells an answer only if it differs from the last one.
 */
async function watch(source: Source, { type, data, signal }: Watched, listener: Listener): Promise<void> {
  let version: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const request = commandMessage(source.host, "Sys.Watch", {
        type,
        data,
        ...(version === undefined ? {} : { version }),
      });
      for await (const message of messagesOf(source, request, signal)) {
        if (message.kind === "error" && isRefusal(message.metadata, message.data as ErrorData))
          return void listener.failed(failureFrom(message.data as ErrorData));
        if (message.kind === "error") {
          version = undefined;
          listener.failed(failureFrom(message.data as ErrorData));
        }
        if (message.kind !== "event") continue;
        failures = 0;
        const told = message.data as { readonly answer?: Json; readonly version: string; readonly same?: true };
        version = told.version;
        if (told.same !== true) listener.answer(told.answer ?? null);
      }
    } catch (error) {
      // The kernel may come back. A request that cannot be made at all, or whose token is refused, is the end.
      if (error instanceof Failure && (error.code === 422 || error.code === 401)) return void listener.failed(error);
    }
    if (!signal.aborted) await pauseOrAbort(source.host, reconnectMs(++failures), signal);
  }
}

/** Whether the kernel did not begin to watch; a kernel that is full or about to end may take it later. */
function isRefusal(metadata: { readonly [key: string]: unknown }, { code }: ErrorData): boolean {
  return metadata["watch"] === undefined && code !== 503;
}
