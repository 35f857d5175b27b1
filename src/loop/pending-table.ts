import type { Message } from "../message/envelope.ts";
import type { Kept } from "./pending-request.ts";
import { type Connection, NOBODY, type Origin, PendingRequest, type RequestingActor } from "./pending-request.ts";

/**
 * A reusable holder of an entry. A Map with many insertions and deletions is copied into a new table now and then, and
 * V8 lets the old table refer to the new one: as soon as one of them is old, all later entries survive until the next
 * full collection (measured: collection took a third of the time of a request in process). So tables refer only to
 * slots, which live anyway, and the Map is replaced before the chain of its tables gets long.
 */
interface Slot {
  entry: PendingRequest | undefined;
  /** Its index among the slots of its connection. */
  at: number;
}

/**
 * A Map is replaced after this many insertions, or after a few times the number of waiting requests, so that copying it
 * costs little.
 */
const MAP_INSERTS_MIN = 1_024;

export class PendingTable {
  #requests = new Map<string, Slot>();
  readonly #unlisted: PendingRequest[] = [];
  /** No id of an unlisted request is greater than this; undefined if unknown. */
  #lastId: string | undefined = "";
  /** The last id that was found to be greater than all others: it is not pending. */
  #isFree: string | undefined;
  #insertsLeft = MAP_INSERTS_MIN;
  readonly #free: Slot[] = [];
  readonly #byConnection = new Map<Connection, Slot[]>();
  /** How many of them are journaled. */
  kept = 0;

  get size(): number {
    return this.#requests.size + this.#unlisted.length;
  }

  has(id: string): boolean {
    return this.#listed.get(id) !== undefined;
  }

  get(id: string): PendingRequest | undefined {
    if (this.#requests.size === 0 && this.#lastId !== undefined && isAfter(id, this.#lastId)) {
      this.#isFree = id;
      return undefined;
    }
    return this.#listed.get(id)?.entry;
  }

  /** All requests by id; lists the unlisted ones first. */
  get #listed(): ReadonlyMap<string, Slot> {
    if (this.#unlisted.length > 0) {
      for (const entry of this.#unlisted.splice(0)) {
        entry.place = -1;
        this.#list(entry);
      }
      this.#lastId = "";
    }
    return this.#requests;
  }

  /** A request whose id the loop has just made. */
  insertNew(message: Message, origin: Origin, actor: RequestingActor): PendingRequest {
    this.#lastId = undefined;
    return this.#unlist(new PendingRequest(message, origin, actor, undefined));
  }

  /** A request whose id is not pending. */
  insert(message: Message, origin: Origin, actor: RequestingActor, kept?: Kept): PendingRequest {
    const entry = new PendingRequest(message, origin, actor, kept);
    if (kept !== undefined) this.kept++;
    else if (entry.id === this.#isFree) {
      this.#lastId = entry.id;
      return this.#unlist(entry);
    }
    this.#list(entry);
    return entry;
  }

  #unlist(entry: PendingRequest): PendingRequest {
    this.#isFree = undefined;
    entry.place = this.#unlisted.length;
    this.#unlisted.push(entry);
    return entry;
  }

  #list(entry: PendingRequest): void {
    this.#isFree = undefined;
    const slot = this.#free.pop() ?? { entry: undefined, at: 0 };
    slot.entry = entry;
    if (--this.#insertsLeft < 0) this.#renew();
    this.#requests.set(entry.id, slot);
    if (entry.origin.kind === "adapter") this.#index(entry.origin.connection, slot);
  }

  #renew(): void {
    this.#requests = new Map(this.#requests);
    this.#insertsLeft = Math.max(MAP_INSERTS_MIN, 4 * this.#requests.size);
  }

  #index(connection: Connection, slot: Slot): void {
    const slots = this.#byConnection.get(connection);
    slot.at = slots?.length ?? 0;
    if (slots) slots.push(slot);
    else this.#byConnection.set(connection, [slot]);
  }

  /** The last slot of the connection takes the place of the removed one. */
  #unindex(connection: Connection, slot: Slot): void {
    const slots = this.#byConnection.get(connection);
    const last = slots?.pop();
    if (!slots || !last) return;
    if (last !== slot) {
      slots[slot.at] = last;
      last.at = slot.at;
    }
    if (slots.length === 0) this.#byConnection.delete(connection);
  }

  /**
   * Removes an entry and cancels its timeout. With `from`, only an entry that was dispatched to that actor. With
   * `request`, only that very entry: the same id may have been used again since its requester left (L81).
   */
  take(id: string, from?: RequestingActor, request?: PendingRequest): PendingRequest | undefined {
    if (request !== undefined && request.place >= 0 && request.id === id && request.actor === from)
      return this.#takeUnlisted(request);
    const slot = this.#listed.get(id);
    const entry = slot?.entry;
    if (!slot || !entry || (from !== undefined && entry.actor !== from)) return undefined;
    if (request !== undefined && request.id === id && request !== entry) return undefined;
    this.#requests.delete(id);
    slot.entry = undefined;
    this.#free.push(slot);
    entry.isOver = true;
    entry.timeout?.cancel();
    if (entry.kept !== undefined) this.kept--;
    if (entry.origin.kind === "adapter") this.#unindex(entry.origin.connection, slot);
    return entry;
  }

  /** The last one takes the place of the removed one. */
  #takeUnlisted(entry: PendingRequest): PendingRequest {
    const last = this.#unlisted.pop() as PendingRequest;
    if (last !== entry) {
      this.#unlisted[entry.place] = last;
      last.place = entry.place;
    }
    entry.place = -1;
    entry.isOver = true;
    entry.timeout?.cancel();
    if (this.#unlisted.length === 0) this.#lastId = "";
    return entry;
  }

  /** The requester of a journaled command has left; the entry stays until it is answered. */
  release(entry: PendingRequest): void {
    const slot = this.#requests.get(entry.id);
    entry.timeout?.cancel();
    if (entry.origin.kind === "adapter" && slot?.entry === entry) this.#unindex(entry.origin.connection, slot);
    entry.origin = NOBODY;
  }

  /** A requester joins a journaled command without one. */
  join(entry: PendingRequest, origin: Origin): void {
    const slot = this.#requests.get(entry.id);
    if (slot === undefined) return;
    entry.origin = origin;
    if (origin.kind === "adapter") this.#index(origin.connection, slot);
  }

  waitingFor(connection: Connection): PendingRequest[] {
    if (this.#listed.size === 0) return [];
    return (this.#byConnection.get(connection) ?? []).flatMap(({ entry }) => entry ?? []);
  }

  /** Removes the requests of a connection; returns their number. */
  disconnect(connection: Connection): number {
    const waiting = this.waitingFor(connection);
    for (const entry of waiting) {
      if (entry.kept === undefined) this.take(entry.id);
      else this.release(entry);
    }
    return waiting.length;
  }

  /** The ids of requests that an actor has been given and not answered. */
  of(actor: RequestingActor): string[] {
    return [...this.#listed].filter(([, { entry }]) => entry?.actor === actor).map(([id]) => id);
  }

  *[Symbol.iterator](): Iterator<PendingRequest> {
    for (const { entry } of this.#listed.values()) if (entry) yield entry;
  }

  checkInvariants(): void {
    for (const [place, entry] of this.#unlisted.entries()) {
      if (entry.place !== place || this.#requests.has(entry.id))
        throw new Error(`request ${entry.id} stands unlisted at ${place} and is looked for at ${entry.place}`);
      if (this.#lastId !== undefined && isAfter(entry.id, this.#lastId))
        throw new Error(`request ${entry.id} is unlisted and comes after ${this.#lastId}`);
    }
    let indexed = 0;
    for (const [connection, slots] of this.#byConnection) {
      if (slots.length === 0) throw new Error(`connection ${connection.id} is indexed without requests`);
      indexed += slots.length;
      for (const [at, slot] of slots.entries()) {
        const id = slot.entry?.id;
        if (id === undefined || this.#requests.get(id) !== slot)
          throw new Error(`request ${id} is indexed and not pending`);
        if (slot.at !== at) throw new Error(`request ${id} stands at ${at} and is looked for at ${slot.at}`);
      }
    }
    const fromAdapters = [...this.#requests.values()].filter(({ entry }) => entry?.origin.kind === "adapter").length;
    if (indexed !== fromAdapters) throw new Error(`${indexed} requests are indexed, ${fromAdapters} are pending`);
  }
}

/** An order of texts in which 10 comes after 9. */
function isAfter(id: string, other: string): boolean {
  return id.length === other.length ? id > other : id.length > other.length;
}
