/**
 * `connect<typeof app>()`: the calls of an app from another process, over the kernel's socket, with the types of the
 * app and nothing of its code. SPEC: A31.
 */
import type { AppEvent, Caller, CallOptions, EventsOptions, Live, Result } from "../app/caller.ts";
import { LiveValues } from "../app/live-values.ts";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { Client, type ClientOptions } from "./client.ts";
import { watch } from "./watch.ts";

/** A kernel in another process, typed by its apps. */
export interface Connected<A> extends Caller<A>, AsyncDisposable {
  close(): Promise<void>;
}

/**
 * Connects to the kernel of an app: `await using shop = await connect<typeof app>({ path: ".millrace/kernel.sock" })`.
 */
export async function connect<A>(options: ClientOptions): Promise<Connected<A>> {
  const connected: unknown = new Connection(await Client.connect(options), options);
  return connected as Connected<A>;
}

class Connection implements AsyncDisposable {
  readonly #client: Client;
  readonly #path: string;
  readonly #host: Host;
  readonly #end = new AbortController();

  constructor(client: Client, { path, host = systemHost() }: ClientOptions) {
    this.#client = client;
    this.#path = path;
    this.#host = host;
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
      const source = { path: this.#path, host: this.#host };
      void watch(source, { type, data: data as Json, signal }, { answer: listener, failed: onError });
      return () => stopped.abort();
    });
  }

  async *events(
    names: string | readonly string[],
    options: EventsOptions = {},
  ): AsyncGenerator<AppEvent<string, Json>> {
    const types = typeof names === "string" ? [names] : names;
    for await (const { id, cursor, message } of this.#client.subscribe({ ...options, types }))
      yield { id, cursor, type: message.type, data: message.data };
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#client.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #ask(kind: "command" | "query", type: string, data: unknown, options: CallOptions = {}): Promise<Json> {
    const { id = this.#host.id(), ...waiting } = options;
    const metadata = { id, timestamp: this.#host.now() };
    const answer = await this.#client.request({ kind, type, data: (data ?? null) as Json, metadata }, waiting);
    if (answer.kind === "reply") return answer.data;
    throw failureFrom(answer.data as ErrorData);
  }
}
