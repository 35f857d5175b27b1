/**
 * Requests that await their answer (RFC 0032 §14): by request id for the whole loop, with an index by connection. An entry is made
 * before the request is dispatched and goes with its first answer, its timeout, or its requester. Only the actor that a request was
 * dispatched to may answer it.
 */
import type { Timer } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import type { Connection, Origin } from "./inbound.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export interface PendingRequest {
  /** What the answer is made from. Not the object that the actor has: it may do with its own what it likes. */
  readonly request: Pick<Message, "kind" | "type" | "metadata">;
  readonly origin: Origin;
  /** The actor it was dispatched to; undefined while it is on its way. */
  actor: SupervisedActor | undefined;
  timeout: Timer | undefined;
}

/**
 * Where an entry is kept; emptied and used again. A Map whose keys come and go is copied into a new table now and then, and V8 lets the
 * old table refer to the new one: once one of them is old, everything that was ever pending would survive until the next full
 * collection (measured: collection took a third of the time of a request in process). So tables see slots only, which live anyway.
 */
interface Slot {
  entry: PendingRequest | undefined;
}

export class PendingTable {
  readonly #requests = new Map<string, Slot>();
  readonly #free: Slot[] = [];
  readonly #byConnection = new Map<Connection, Set<string>>();

  get size(): number {
    return this.#requests.size;
  }

  has(id: string): boolean {
    return this.#requests.has(id);
  }

  get(id: string): PendingRequest | undefined {
    return this.#requests.get(id)?.entry;
  }

  insert({ kind, type, metadata }: Message, origin: Origin): PendingRequest {
    const request = { kind, type, metadata: { ...metadata } };
    const entry: PendingRequest = { request, origin, actor: undefined, timeout: undefined };
    const slot = this.#free.pop() ?? { entry: undefined };
    slot.entry = entry;
    this.#requests.set(request.metadata.id, slot);
    if (origin.kind === "adapter") {
      const ids = this.#byConnection.get(origin.connection);
      if (ids) ids.add(request.metadata.id);
      else this.#byConnection.set(origin.connection, new Set([request.metadata.id]));
    }
    return entry;
  }

  /** Takes an entry out, and its timeout with it; where an actor is named, only what was dispatched to it. */
  take(id: string, from?: SupervisedActor): PendingRequest | undefined {
    const slot = this.#requests.get(id);
    const entry = slot?.entry;
    if (!slot || !entry || (from !== undefined && entry.actor !== from)) return undefined;
    this.#requests.delete(id);
    slot.entry = undefined;
    this.#free.push(slot);
    entry.timeout?.cancel();
    if (entry.origin.kind === "adapter") {
      const ids = this.#byConnection.get(entry.origin.connection);
      ids?.delete(id);
      if (ids?.size === 0) this.#byConnection.delete(entry.origin.connection);
    }
    return entry;
  }

  countFor(connection: Connection): number {
    return this.#byConnection.get(connection)?.size ?? 0;
  }

  waitingFor(connection: Connection): PendingRequest[] {
    return [...(this.#byConnection.get(connection) ?? [])].flatMap((id) => this.get(id) ?? []);
  }

  /** Drops what a connection waits for; says how many. */
  disconnect(connection: Connection): number {
    const ids = [...(this.#byConnection.get(connection) ?? [])];
    for (const id of ids) this.take(id);
    return ids.length;
  }

  /** The ids of requests that an actor has been given and not answered. */
  of(actor: SupervisedActor): string[] {
    return [...this.#requests].filter(([, { entry }]) => entry?.actor === actor).map(([id]) => id);
  }

  *[Symbol.iterator](): Iterator<PendingRequest> {
    for (const { entry } of this.#requests.values()) if (entry) yield entry;
  }

  checkInvariants(): void {
    let indexed = 0;
    for (const [connection, ids] of this.#byConnection) {
      if (ids.size === 0) throw new Error(`connection ${connection.id} is indexed without requests`);
      indexed += ids.size;
      for (const id of ids) if (!this.#requests.has(id)) throw new Error(`request ${id} is indexed and not pending`);
    }
    const fromAdapters = [...this].filter(({ origin }) => origin.kind === "adapter").length;
    if (indexed !== fromAdapters) throw new Error(`${indexed} requests are indexed, ${fromAdapters} are pending`);
  }
}
