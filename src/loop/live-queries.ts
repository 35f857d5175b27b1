/**
 * Live queries of clients: the answer of a query, and again whenever it differs.
 *
 *     Sys.Watch   {type, data?} -> {watch}     `Sys.Answer` {watch, answer} follows, to this connection only
 *     Sys.Unwatch {watch}       -> {removed}
 *
 * A connection that does not keep up gets the newest answer once it has room, and not those between. SPEC: A28, A31.
 */
import type { Host } from "../host/host.ts";
import { STREAMS_ALL_MAX, STREAMS_MAX } from "../limits.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { Failure, fromError } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { cloneData } from "../message/json-copy.ts";
import { causedBy, error, event } from "../message/lineage.ts";
import { problemText } from "../message/problem.ts";
import type { Connection } from "./inbound.ts";

/** Hears of the answers of one query. */
export interface Watcher {
  answer(value: unknown): void;
  failed(error: unknown): void;
}

/** Starts to report a query's answers; the returned function ends it. Throws a `Failure` if there is no such query. */
export type WatchQuery = (type: string, data: Json, watcher: Watcher) => () => void;

interface Watch {
  readonly id: string;
  readonly request: Message;
  readonly connection: Connection;
  /** Undefined until the query runs. */
  stop: (() => void) | undefined;
  /** The message that waits for room. */
  newest: Message | undefined;
  state: "idle" | "writing" | "ended";
}

export class LiveQueries {
  readonly #host: Host;
  readonly #watchQuery: WatchQuery | undefined;
  readonly #watches = new Map<Connection, Map<string, Watch>>();
  #size = 0;

  constructor({ host, watchQuery }: { host: Host; watchQuery: WatchQuery | undefined }) {
    this.#host = host;
    this.#watchQuery = watchQuery;
  }

  /** Answers `Sys.Watch`. The first answer of the query follows. */
  watch(request: Message, connection: Connection): Json {
    const { type, data } = readWatchRequest(request.data);
    const watchQuery = this.#watchQuery;
    if (watchQuery === undefined) throw new Failure(404, "this kernel has no apps with queries");
    const watches = this.#watches.get(connection) ?? new Map<string, Watch>();
    if (watches.size >= STREAMS_MAX)
      throw new Failure(503, `a connection has at most ${STREAMS_MAX} live queries; end one with Sys.Unwatch`);
    if (this.#size >= STREAMS_ALL_MAX)
      throw new Failure(503, `this kernel has ${STREAMS_ALL_MAX} live queries, its limit; watch again later`);
    const id = this.#host.id();
    const watch: Watch = { id, request, connection, stop: undefined, newest: undefined, state: "idle" };
    watch.stop = watchQuery(type, data, {
      answer: (value) => this.#tell(watch, this.#answer(watch, value)),
      failed: (thrown) => this.#tell(watch, this.#error(watch, thrown)),
    });
    this.#watches.set(connection, watches.set(id, watch));
    this.#size++;
    return { watch: id };
  }

  /** Answers `Sys.Unwatch`; a connection can end its own only. */
  unwatch(request: Message, connection: Connection): Json {
    const { watch: id } = (isJsonObject(request.data) ? request.data : {}) as { watch?: unknown };
    if (typeof id !== "string") throw new Failure(422, "data.watch: must be the id of a live query");
    const watch = this.#watches.get(connection)?.get(id);
    if (watch) this.#end(watch);
    return { removed: watch !== undefined };
  }

  disconnect(connection: Connection): void {
    for (const watch of [...(this.#watches.get(connection)?.values() ?? [])]) this.#end(watch);
  }

  close(): void {
    for (const connection of [...this.#watches.keys()]) this.disconnect(connection);
  }

  #answer(watch: Watch, value: unknown): Message {
    const copy = cloneData(value ?? null);
    if (copy.kind === "impure")
      return this.#error(watch, new Failure(500, `the answer is not JSON: ${problemText(copy.problem)}`));
    return event(this.#host, "Sys.Answer", { watch: watch.id, answer: copy.value }, causedBy(watch.request));
  }

  #error({ id, request }: Watch, thrown: unknown): Message {
    const answer = error(this.#host, request, fromError(thrown));
    return { ...answer, metadata: { ...answer.metadata, watch: id } };
  }

  #tell(watch: Watch, message: Message): void {
    watch.newest = message;
    if (watch.state === "idle") void this.#write(watch);
  }

  /** Writes the newest message, after the reply to the request and whenever there is room. */
  async #write(watch: Watch): Promise<void> {
    const { connection } = watch;
    watch.state = "writing";
    await this.#host.yield();
    while (watch.newest !== undefined && !isEnded(watch)) {
      if (!connection.hasRoom) {
        await connection.whenRoom();
        continue;
      }
      const message = watch.newest;
      watch.newest = undefined;
      try {
        connection.stream(message);
      } catch (thrown) {
        this.#end(watch);
        this.#host.report(thrown, `live query of ${connection.adapter}`);
      }
    }
    if (!isEnded(watch)) watch.state = "idle";
  }

  #end(watch: Watch): void {
    if (isEnded(watch)) return;
    watch.state = "ended";
    watch.stop?.();
    this.#size--;
    const watches = this.#watches.get(watch.connection);
    watches?.delete(watch.id);
    if (watches?.size === 0) this.#watches.delete(watch.connection);
  }
}

/** A function, because the state changes while a method waits. */
function isEnded({ state }: Watch): boolean {
  return state === "ended";
}

function readWatchRequest(given: Json): { readonly type: string; readonly data: Json } {
  const { type, data = null } = (isJsonObject(given) ? given : {}) as { type?: Json; data?: Json };
  if (typeof type !== "string" || !isMessageType(type))
    throw new Failure(422, "data.type: must be the name of a query, like Shop.Sum");
  return { type, data };
}
