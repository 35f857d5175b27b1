/**
 * An open kernel as the program of an app sees it: typed calls, live queries and events. The parts below it (`bus`,
 * `space`, `loop`) are those of the `Kernel`. SPEC: A23-A29.
 */
import type { AppEvent, Caller, CallOptions, EventsOptions, Live, Result } from "../app/caller.ts";
import { LiveValues } from "../app/live-values.ts";
import type { Host } from "../host/host.ts";
import { noQuery } from "../loop/live-queries.ts";
import { whenItStands } from "../message/dropped.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Kernel } from "./kernel.ts";
import type { KernelHealth } from "./kernel-options.ts";

/** An open kernel, typed by its apps. */
export interface AppKernel<A> extends Caller<A>, Pick<OpenKernel, Life>, AsyncDisposable {}

type Life = "kernel" | "socketPath" | "health" | "idle" | "close" | "closed";

/** The same without the types of an app: `Caller` describes its calls. */
export class OpenKernel implements AsyncDisposable {
  /** The kernel: `bus`, `space`, `loop`, `request`, and the untyped `command` and `query`. */
  readonly kernel: Kernel;
  readonly #host: Host;

  constructor(kernel: Kernel, host: Host) {
    this.kernel = kernel;
    this.#host = host;
  }

  command(type: string, data: unknown = null, options?: CallOptions): Promise<Json> {
    return this.#ask("command", type, data as Json, options);
  }

  async safeCommand(type: string, data?: unknown, options?: CallOptions): Promise<Result<Json, Failure>> {
    try {
      return { ok: true, value: await this.command(type, data, options) };
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return { ok: false, failure };
    }
  }

  query(type: string, data: unknown = null, options?: CallOptions): Promise<Json> {
    return this.#ask("query", type, data as Json, options);
  }

  live(name: string, data: unknown = null): Live<Json> {
    return new LiveValues((listener, failed) => {
      const answer = (value: unknown) => listener((value ?? null) as Json);
      const stop = this.kernel.apps.watch({ type: name, data: data as Json }, { answer, failed });
      if (stop === undefined) throw noQuery(name);
      return stop;
    });
  }

  events(names: string | readonly string[], options: EventsOptions = {}): AsyncGenerator<AppEvent<string, Json>> {
    // Asked for at once: events after this call are not missed, however late the iteration begins.
    const from = options.from === undefined ? this.kernel.endCursor() : Promise.resolve(options.from);
    from.catch(() => undefined);
    return this.#follow(names, from, options.signal);
  }

  async *#follow(
    names: string | readonly string[],
    from: Promise<string>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<AppEvent<string, Json>> {
    const wanted = new Set(typeof names === "string" ? [names] : names);
    const follow = { from: await from, follow: true, ...(signal ? { signal } : {}) };
    for await (const { id, cursor, message } of this.kernel.bus.tail(follow)) {
      if (message?.kind !== "event" || !wanted.has(message.type)) continue;
      yield { id, cursor, type: message.type, data: message.data };
    }
  }

  // The call --------------------------------------------------------------------------------------------------------

  async #ask(kind: "command" | "query", type: string, data: Json, options: CallOptions | undefined): Promise<Json> {
    if (options === undefined) return this.kernel[kind](type, data);
    const { id = this.#host.id(), signal, timeoutMs } = options;
    signal?.throwIfAborted();
    const message = { kind, type, data, metadata: { id, timestamp: this.#host.now() } };
    const standing = this.kernel.space.scheduler.parts.runner.standing();
    const answered = whenItStands(standing, () => this.kernel.request(message)).then((answer) => {
      if (answer.kind === "reply") return answer.data;
      throw failureFrom(answer.data as ErrorData);
    });
    return this.#within(answered, { type, id, signal, timeoutMs });
  }

  /** Stops waiting on the signal, or after the time. */
  #within<T>(
    answered: Promise<T>,
    call: { type: string; id: string; signal: AbortSignal | undefined; timeoutMs: number | undefined },
  ): Promise<T> {
    const { type, id, signal, timeoutMs } = call;
    if (signal === undefined && timeoutMs === undefined) return answered;
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal?.reason);
      const late = () => reject(new Failure(504, `no answer to ${type} within ${timeoutMs} ms (id ${id})`));
      const timer = timeoutMs === undefined ? undefined : this.#host.timer(timeoutMs, late);
      signal?.addEventListener("abort", stop, { once: true });
      answered.then(resolve, reject).finally(() => {
        timer?.cancel();
        signal?.removeEventListener("abort", stop);
      });
    });
  }

  // Life ------------------------------------------------------------------------------------------------------------

  /** The socket that other processes connect to, if it was opened with one. */
  get socketPath(): string | undefined {
    return this.kernel.socketPath;
  }

  health(): KernelHealth {
    return this.kernel.health();
  }

  /** Resolves when no work is left: messages, events, computations and commits. */
  idle(): Promise<void> {
    return this.kernel.idle();
  }

  close(options?: { readonly graceMs?: number }): Promise<void> {
    return this.kernel.close(options);
  }

  closed(): Promise<void> {
    return this.kernel.closed();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kernel.close();
  }
}
