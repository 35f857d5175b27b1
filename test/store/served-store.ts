/**
 * Stores on a database server that can be lost: a primary and a standby, both memory stores. A line can be cut and
 * repaired, and the standby can take over. Until `stopCopying` the standby gets every commit that the primary gets;
 * after that it lacks the tail, as after a failover without synchronous copies.
 *
 * A store on a cut line parks its writes and refuses everything else, as the interface asks (`connection.ts`).
 */
import type { Host } from "../../src/host/host.ts";
import type { CommitRequest } from "../../src/store/commit.ts";
import type { StoreConnection } from "../../src/store/connection.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { refusalToPark } from "../../src/store/parking.ts";
import type { Rejection } from "../../src/store/rejection.ts";
import { type Store, type StoreChange, StoreError } from "../../src/store/store.ts";

const PARKED = new Set([
  "commit",
  "append",
  "settle",
  "changeDue",
  "declareConsumers",
  "requeue",
  "conclude",
  "closeLease",
]);
/** Not sent to the server. */
const LOCAL = new Set(["stats", "now", "close"]);
/** These answer with a rejection. */
const REJECTING = new Set(["commit", "append"]);

interface Parked {
  readonly bytes: number;
  readonly send: () => void;
}

export class Server {
  readonly #host: Host;
  readonly #lines: Line[] = [];
  /** The data that lines reach. */
  disk = new MemoryDisk();
  #standby: Store | undefined;
  readonly #standbyDisk = new MemoryDisk();

  constructor(host: Host) {
    this.#host = host;
    this.#standby = memoryStore({ host, disk: this.#standbyDisk });
  }

  connect(): Line {
    const line = new Line(this.#host, this);
    this.#lines.push(line);
    return line;
  }

  copy(request: CommitRequest): void {
    // The standby's own history begins when it takes over.
    void this.#standby?.commit({ ...request, history: undefined });
  }

  /** From now on the standby lacks new writes. */
  stopCopying(): void {
    this.#standby = undefined;
  }

  /** The standby takes over; every line goes to it. */
  failOver(): void {
    for (const line of this.#lines) line.cut();
    this.#standby = undefined;
    this.disk = this.#standbyDisk;
    for (const line of this.#lines) line.repair();
  }
}

export class Line {
  readonly store: Store;
  readonly #host: Host;
  readonly #server: Server;
  #inner: Store;
  #connection: StoreConnection;
  #parked: Parked[] = [];
  readonly #listeners = new Set<(change: StoreChange) => void>();
  #unwatch: () => void = () => {};

  constructor(host: Host, server: Server) {
    this.#host = host;
    this.#server = server;
    this.#inner = memoryStore({ host, disk: server.disk });
    this.#connection = this.#inner.connection;
    this.#follow();
    this.store = new Proxy(this.#inner, {
      get: (target, name) => {
        if (name === "connection") return this.#connection;
        if (name === "watch") return (listener: (change: StoreChange) => void) => this.#watch(listener);
        if (typeof Reflect.get(target, name) !== "function") return Reflect.get(target, name);
        return (...given: unknown[]) => this.#call(String(name), given);
      },
    });
  }

  cut(): void {
    if (this.#connection.state !== "connected") return;
    this.#unwatch();
    const { history } = this.#connection;
    this.#connection = { state: "away", history, sinceMs: this.#host.now(), reason: "the line is cut", parked: 0 };
    this.#tell({ spaces: [], journal: false, connection: true });
  }

  repair(): void {
    if (this.#connection.state === "connected") return;
    this.#inner = memoryStore({ host: this.#host, disk: this.#server.disk });
    this.#connection = this.#inner.connection;
    for (const { send } of this.#parked.splice(0)) send();
    this.#follow();
    this.#tell({ spaces: undefined, journal: true, connection: true });
  }

  #follow(): void {
    this.#unwatch = this.#inner.watch((change) => this.#tell(change));
  }

  #watch(listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(change: StoreChange): void {
    for (const listener of [...this.#listeners]) this.#host.microtask(() => listener(change));
  }

  #call(name: string, given: unknown[]): unknown {
    if (this.#connection.state === "connected" || LOCAL.has(name)) return this.#send(name, given);
    if (!PARKED.has(name)) return Promise.reject(new StoreError("STORE_AWAY", "the database cannot be reached"));
    const bytes = JSON.stringify(given)?.length ?? 0;
    const held = this.#parked.reduce((sum, one) => sum + one.bytes, bytes);
    const refusal = refusalToPark(this.#parked.length, held);
    if (refusal !== undefined) return REJECTING.has(name) ? Promise.resolve(refusal) : Promise.reject(errorOf(refusal));
    return new Promise((resolve) => {
      this.#parked.push({ bytes, send: () => resolve(this.#send(name, given)) });
      this.#connection = { ...this.#connection, parked: this.#parked.length };
    });
  }

  #send(name: string, given: unknown[]): unknown {
    const [first] = given;
    // The listener of a commit is for stores that answer by it alone.
    const values = name === "commit" ? [first] : given;
    if (name === "commit") this.#server.copy(first as CommitRequest);
    const method = Reflect.get(this.#inner, name) as (...values: unknown[]) => unknown;
    return method.apply(this.#inner, values);
  }
}

function errorOf({ message }: Rejection): StoreError {
  return new StoreError("STORE_BUSY", message);
}
