/**
 * Live queries of clients: the answer of a query, and again whenever it differs.
 *
 *     Sys.Watch   {type, data?, version?} -> {watch}   `Sys.Answer` {watch, answer, version} follows, to this
 *                                                      connection only; {watch, version, same} where the client has it
 *     Sys.Unwatch {watch}                 -> {removed}
 *
 * A connection that does not keep up gets the newest answer once it has room, and not those between. SPEC: A28, A31,
 * W70-W73.
 */
import type { Host } from "../host/host.ts";
import { LIVE_QUERIES_ALL_MAX, LIVE_QUERIES_MAX } from "../limits.ts";
import { canonicalJson } from "../message/canonical-json.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { causedBy, error, eventMessage } from "../message/lineage.ts";
import type { Connection } from "./pending-request.ts";
import { type LiveOutcome, type LiveReader, SharedQuery, type WatchedQuery, type WatchQuery } from "./shared-query.ts";

export interface LiveQueriesParts {
  readonly host: Host;
  readonly watchQuery: WatchQuery | undefined;
  /** Whether a capability handles a query of this type. */
  hasQuery(type: string): boolean;
}

export class LiveQueries {
  readonly #parts: LiveQueriesParts;
  readonly #host: Host;
  /** By type, data and clearance. */
  readonly #queries = new Map<string, SharedQuery>();
  readonly #watches = new Map<Connection, Map<string, Watch>>();
  #size = 0;

  constructor(parts: LiveQueriesParts) {
    this.#parts = parts;
    this.#host = parts.host;
  }

  /** Watches of all connections, and the effects that run for them. */
  get counts(): { readonly watches: number; readonly queries: number } {
    return { watches: this.#size, queries: this.#queries.size };
  }

  /** Answers `Sys.Watch`. The first answer of the query follows. */
  watch(request: Message, connection: Connection): Json {
    const { version, ...asked } = readWatchRequest(request.data);
    const watches = this.#watches.get(connection) ?? new Map<string, Watch>();
    if (watches.size >= LIVE_QUERIES_MAX)
      throw new Failure(503, `a connection has at most ${LIVE_QUERIES_MAX} live queries; end one with Sys.Unwatch`);
    if (this.#size >= LIVE_QUERIES_ALL_MAX)
      throw new Failure(503, `this kernel has ${LIVE_QUERIES_ALL_MAX} live queries, its limit; watch again later`);
    const { clearance } = connection;
    const query: WatchedQuery = clearance === undefined ? asked : { ...asked, clearance };
    const key = canonicalJson([query.type, query.data, clearance === undefined ? null : [...clearance].sort()]);
    const shared = this.#shared(key, query);
    const watch = new Watch({ host: this.#host, request, connection, shared, version, ended: () => this.#end(watch) });
    shared.readers.add(watch);
    this.#watches.set(connection, watches.set(watch.id, watch));
    this.#size++;
    watch.begin(() => {
      if (shared.readers.delete(watch) && shared.readers.size === 0) {
        this.#queries.delete(key);
        shared.end();
      }
    });
    return { watch: watch.id };
  }

  #shared(key: string, query: WatchedQuery): SharedQuery {
    const known = this.#queries.get(key);
    if (known !== undefined) return known;
    const { watchQuery, hasQuery } = this.#parts;
    const made = watchQuery && SharedQuery.of(this.#host, query, watchQuery);
    if (made === undefined) throw hasQuery(query.type) ? notLive(query.type) : noQuery(query.type);
    this.#queries.set(key, made);
    return made;
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

  #end(watch: Watch): void {
    const watches = this.#watches.get(watch.connection);
    if (watches?.delete(watch.id) !== true) return;
    if (watches.size === 0) this.#watches.delete(watch.connection);
    this.#size--;
    watch.end();
  }
}

interface WatchParts {
  readonly host: Host;
  readonly request: Message;
  readonly connection: Connection;
  readonly shared: SharedQuery;
  /** The version that the client has. */
  readonly version: string | undefined;
  /** The connection has failed. */
  readonly ended: () => void;
}

/** The live query of one client. It keeps no answer: it writes the newest one of the shared query. */
class Watch implements LiveReader {
  readonly id: string;
  readonly connection: Connection;
  readonly #parts: WatchParts;
  #state: "opening" | "idle" | "waiting for room" | "ended" = "opening";
  #written: LiveOutcome | undefined;
  /** The version of the client. */
  #version: string | undefined;
  #leave: () => void = () => undefined;

  constructor(parts: WatchParts) {
    this.id = parts.host.id();
    this.connection = parts.connection;
    this.#parts = parts;
    this.#version = parts.version;
  }

  /** Writes the first answer after the reply to the request. `leave` is called at the end. */
  begin(leave: () => void): void {
    this.#leave = leave;
    void this.#parts.host.yield().then(() => {
      if (this.#state !== "opening") return;
      this.#state = "idle";
      this.hear();
    });
  }

  end(): void {
    this.#state = "ended";
    this.#leave();
  }

  hear(): void {
    const { shared, connection, host, ended } = this.#parts;
    const { outcome } = shared;
    if (this.#state !== "idle" || outcome === undefined || outcome === this.#written) return;
    if (!connection.hasRoom) return this.#wait();
    const isFirst = this.#written === undefined;
    this.#written = outcome;
    const isKnown = "version" in outcome && outcome.version === this.#version;
    if (isKnown && !isFirst) return;
    this.#version = "version" in outcome ? outcome.version : undefined;
    try {
      connection.stream(this.#message(outcome, isKnown));
    } catch (thrown) {
      ended();
      host.report(thrown, `live query of ${connection.adapter}`);
    }
  }

  #wait(): void {
    this.#state = "waiting for room";
    void this.connection.whenRoom().then(() => {
      if (this.#state !== "waiting for room") return;
      this.#state = "idle";
      this.hear();
    });
  }

  #message(outcome: LiveOutcome, isKnown: boolean): Message {
    const { host, request } = this.#parts;
    const { id: watch } = this;
    if ("error" in outcome) {
      const told = error(host, request, outcome.error);
      return { ...told, metadata: { ...told.metadata, watch } };
    }
    const { answer, version } = outcome;
    const data: Json = isKnown ? { watch, version, same: true } : { watch, answer, version };
    return eventMessage(host, "Sys.Answer", data, causedBy(request));
  }
}

function notLive(type: string): Failure {
  const reason = "its handler is no synchronous query of an app, so its reads are not tracked; ask it as a query";
  return new Failure(422, `${type} cannot be live: ${reason}`, { reason: "NOT_LIVE" });
}

/** No app has the query. */
export function noQuery(type: string): Failure {
  return new Failure(404, `no app of this kernel has the query ${type}`);
}

function readWatchRequest(given: Json): { readonly type: string; readonly data: Json; readonly version?: string } {
  const { type, data = null, version } = (isJsonObject(given) ? given : {}) as { [name: string]: Json | undefined };
  if (typeof type !== "string" || !isMessageType(type))
    throw new Failure(422, "data.type: must be the name of a query, like Shop.Sum");
  if (version !== undefined && typeof version !== "string")
    throw new Failure(422, "data.version: must be the version of the last answer");
  return { type, data, ...(version === undefined ? {} : { version }) };
}
