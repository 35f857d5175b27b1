/**
 * Requests that await their answer (RFC 0032 §14): by request id for the whole loop, with an index by connection. An entry is made
 * before the request is dispatched and goes with its first answer, its timeout, or its requester. Only the actor that a request was
 * dispatched to may answer it.
 *
 * ```
 *   insert ──────────────> listed ──take, by id───────────────────────────> gone
 *     └──> unlisted ──any look by id──^
 *             └──take, by the answer that knows it────────────────────────> gone
 * ```
 * Most requests are answered before anybody looks for them, and an actor in this process gives the entry back with its answer. Hashing an id
 * and keeping it in a Map took a quarter of the time of a request in process. So a request is listed only where its id may be looked for: not if the
 * loop has made it, nor if it comes after the ids of all others that wait, as those of a client do that counts or makes them by the time.
 */
import type { Timer } from "../host/host.ts";
import type { Kind, Message, Metadata } from "../message/envelope.ts";
import type { ErrorData } from "../message/error-data.ts";
import { type Answerable, causedBy, type Lineage } from "../message/lineage.ts";
import type { Settlement } from "../store/journal.ts";
import type { Sender } from "../work/timer-row.ts";
import { type Connection, NOBODY, type Origin } from "./inbound.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

/** A message whose failure may be settled by a commit of its handler. */
export interface Failing {
  /** The settlement that fails it; `isSettled` is set after the commit. */
  failing(error: string): Settlement | undefined;
  isSettled: boolean;
}

/** What keeps a request whoever waits for it, and hears what came of it. */
export interface Kept extends Failing {
  /** Whether its actor has it. */
  readonly state: "kept" | "posted";
  /** The origin of the request, which the entry forgets when no requester waits. */
  readonly sentBy: Origin;
  /** Counts the deliveries of the journal from 1. */
  readonly attempt: number;
  /** Its handler has failed, and the journal delivers it again later. */
  retryLater(request: PendingRequest, reason: string, delayMs: number): void;
  ended(answer: Message | Message<ErrorData>, requester: Origin): void;
}

/**
 * What the answer is made from, and who gets it. Nothing of the object that the actor has: it may do with its own what it likes. So
 * what a consequence of the request carries is kept field by field, which costs less than a copy of its metadata.
 */
export class PendingRequest implements Answerable {
  readonly kind: Kind;
  readonly type: string;
  readonly id: string;
  /** What it was asked for itself, by the id. */
  readonly cause: string | undefined;
  /** Who gets the answer; of what is kept, nobody from the time on that he is gone. */
  origin: Origin;
  /** The actor it was dispatched to. */
  readonly actor: SupervisedActor;
  /** The journal's part in it, where it has one. */
  readonly kept: Kept | undefined;
  timeout: Timer | undefined = undefined;
  /** Whether it is answered, or its requester is gone. */
  isOver = false;
  /** Its place among the handlings that are remembered; undefined where none are. */
  handling: number | undefined = undefined;
  /** When its handler began, on the monotonic clock; undefined where the actor does not tell. */
  begunAt: number | undefined = undefined;
  /** Where it stands among the unlisted; -1 where it is not one of them. */
  place = -1;
  readonly #timestamp: number;
  /** What else a consequence of it carries; most requests have nothing of it. */
  readonly #carried: Omit<Lineage, "causation"> | undefined;

  constructor({ kind, type, metadata }: Message, origin: Origin, actor: SupervisedActor, kept: Kept | undefined) {
    this.kind = kind;
    this.type = type;
    this.id = metadata.id;
    this.cause = metadata.causation ?? undefined;
    this.origin = origin;
    this.actor = actor;
    this.kept = kept;
    this.#timestamp = metadata.timestamp;
    this.#carried = carriedBy(metadata);
  }

  get metadata(): Metadata {
    return { ...this.#carried, id: this.id, timestamp: this.#timestamp };
  }
}

/** The authority of a message that is sent later for this request. A timer that is set by a timer's message has none. */
export function senderOf(request: PendingRequest | undefined): Sender | undefined {
  const origin = request?.kept?.sentBy ?? request?.origin;
  switch (origin?.kind) {
    case "adapter":
      return { kind: "client", id: origin.connection.id };
    case "actor":
    case "caller":
      return { kind: "kernel" };
    default:
      return undefined;
  }
}

function carriedBy(metadata: Metadata): Omit<Lineage, "causation"> | undefined {
  const { correlation, traceparent, tracestate, label } = metadata;
  if (correlation === undefined && traceparent === undefined && tracestate === undefined && label === undefined)
    return undefined;
  const { causation: _, ...carried } = causedBy({ metadata });
  return carried;
}

/**
 * Where an entry is kept; emptied and used again. A Map whose keys come and go is copied into a new table now and then, and V8 lets the
 * old table refer to the new one: once one of them is old, everything that was ever pending would survive until the next full
 * collection (measured: collection took a third of the time of a request in process). So tables see slots only, which live anyway,
 * and the Map is replaced before the chain of its tables, with all the ids in them, gets long.
 */
interface Slot {
  entry: PendingRequest | undefined;
  /** Where it stands among the slots of its connection. */
  at: number;
}

/** So many requests are kept in one Map, or a few times as many as wait at once: copying it must cost next to nothing. */
const MAP_INSERTS_MIN = 1_024;

export class PendingTable {
  /** Those that are listed. */
  #requests = new Map<string, Slot>();
  readonly #unlisted: PendingRequest[] = [];
  /** None of the unlisted comes after this id; undefined where nobody knows. */
  #lastId: string | undefined = "";
  /** The id that was last found to come after all others: it is not pending. */
  #isFree: string | undefined;
  #insertsLeft = MAP_INSERTS_MIN;
  readonly #free: Slot[] = [];
  readonly #byConnection = new Map<Connection, Slot[]>();
  /** How many of them the journal keeps. */
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

  /** All of them by id, now that somebody looks. */
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
  insertNew(message: Message, origin: Origin, actor: SupervisedActor): PendingRequest {
    this.#lastId = undefined;
    return this.#unlist(new PendingRequest(message, origin, actor, undefined));
  }

  /** A request whose id is not pending. */
  insert(message: Message, origin: Origin, actor: SupervisedActor, kept?: Kept): PendingRequest {
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

  /** The last slot of the connection takes the place of the one that goes. */
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
   * Removes an entry and cancels its timeout. With `from`, only an entry that was dispatched to that actor. With `request`, only that
   * very entry: the same id may have been used again since its requester left (L81).
   */
  take(id: string, from?: SupervisedActor, request?: PendingRequest): PendingRequest | undefined {
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

  /** The last one takes the place of the one that goes. */
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

  /** Nobody waits any more for what is kept; it stays until it is answered. */
  release(entry: PendingRequest): void {
    const slot = this.#requests.get(entry.id);
    entry.timeout?.cancel();
    if (entry.origin.kind === "adapter" && slot?.entry === entry) this.#unindex(entry.origin.connection, slot);
    entry.origin = NOBODY;
  }

  /** Somebody waits for what is kept and nobody waited for. */
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

  /** Drops what a connection waits for; says how many. */
  disconnect(connection: Connection): number {
    const waiting = this.waitingFor(connection);
    for (const entry of waiting) {
      if (entry.kept === undefined) this.take(entry.id);
      else this.release(entry);
    }
    return waiting.length;
  }

  /** The ids of requests that an actor has been given and not answered. */
  of(actor: SupervisedActor): string[] {
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
