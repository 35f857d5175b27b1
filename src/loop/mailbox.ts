/**
 * The messages of an actor in this process. SPEC: L14, U105-U107.
 *
 * ```
 *   push ──> waiting ──next()──> handled ──ended()──> gone
 *               └──its key is taken──> behind that key ──first of its key──> waiting, before all others
 * ```
 * At most `concurrency` messages are handled at once: 1 is first in, first out. With keys, at most one of each key is,
 * or as many as `limits` has for the key.
 */
import { Fifo } from "../host/fifo.ts";
import type { Message } from "../message/envelope.ts";
import type { Posted } from "./pending-request.ts";

/**
 * Returns the key of a message. Messages with the same key are handled one after the other, or up to the limit of the
 * key.
 */
export type OrderingKeyOf = (message: Message) => string;

/** A key that handled messages have. */
interface Lane {
  /** Messages that have a place under the key. */
  taken: number;
  /** Messages that wait for a place. */
  readonly behind: Fifo<Posted>;
}

export class Mailbox {
  readonly concurrency: number;
  readonly #keyOf: OrderingKeyOf | undefined;
  readonly #waiting = new Fifo<Posted>();
  /** They have their keys, and came before all messages in `#waiting`. */
  readonly #freed = new Fifo<Posted>();
  /** The first of the handled messages, and the others: mostly one alone is handled. */
  #first: Posted | undefined;
  readonly #others = new Set<Posted>();
  readonly #limits: ReadonlyMap<string, number>;
  readonly #lanes = new Map<string, Lane>();
  #behindCount = 0;
  /** Keys of messages that are handled, or are next of their key. */
  readonly #keys = new Map<Posted, string>();
  /** Why the message that `next` gave last has no key. */
  keyProblem: unknown;

  constructor(concurrency: number, keyOf?: OrderingKeyOf, limits: ReadonlyMap<string, number> = new Map()) {
    this.concurrency = concurrency;
    this.#keyOf = keyOf;
    this.#limits = limits;
  }

  get length(): number {
    return this.#ready + this.#behindCount + this.#handledCount;
  }

  /** Whether `next` may give a message. */
  get hasNext(): boolean {
    return this.#ready > 0 && this.hasPlace;
  }

  get hasPlace(): boolean {
    return this.#handledCount < this.concurrency;
  }

  get #handledCount(): number {
    return this.#first === undefined ? this.#others.size : this.#others.size + 1;
  }

  get #ready(): number {
    return this.#waiting.length + this.#freed.length;
  }

  push(posted: Posted): void {
    this.#waiting.push(posted);
  }

  /**
   * The next message, which is handled from now on. Undefined if none can be: there is no place, or all wait for a key.
   */
  next(): Posted | undefined {
    this.keyProblem = undefined;
    while (this.hasNext) {
      const posted = (this.#freed.shift() ?? this.#waiting.shift()) as Posted;
      if (this.#keyOf !== undefined && !this.#takesKey(posted, this.#keyOf)) continue;
      if (this.#first === undefined) this.#first = posted;
      else this.#others.add(posted);
      return posted;
    }
    return undefined;
  }

  /**
   * Takes the key of a message; false if other messages have all its places. A message whose key function throws is
   * handled, and fails.
   */
  #takesKey(posted: Posted, keyOf: OrderingKeyOf): boolean {
    if (this.#keys.has(posted)) return true;
    let key: unknown;
    try {
      key = keyOf(posted.message);
      if (typeof key !== "string") throw new TypeError(`serialBy must give a string, got ${typeof key}`);
    } catch (thrown) {
      this.keyProblem = thrown ?? new Error("serialBy threw");
      return true;
    }
    const lane = this.#laneOf(key as string);
    if (lane.taken >= this.#limitOf(key as string)) {
      lane.behind.push(posted);
      this.#behindCount++;
      return false;
    }
    lane.taken++;
    this.#keys.set(posted, key as string);
    return true;
  }

  #laneOf(key: string): Lane {
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const lane: Lane = { taken: 0, behind: new Fifo() };
    this.#lanes.set(key, lane);
    return lane;
  }

  #limitOf(key: string): number {
    return this.#limits.get(key) ?? 1;
  }

  /** The handler of a message has ended. */
  ended(posted: Posted): void {
    if (this.#first === posted) this.#first = undefined;
    else this.#others.delete(posted);
    if (this.#keyOf !== undefined) this.#releaseKey(posted);
  }

  #releaseKey(posted: Posted): void {
    const key = this.#keys.get(posted);
    if (key === undefined) return;
    this.#keys.delete(posted);
    const lane = this.#laneOf(key);
    const next = lane.behind.shift();
    if (next === undefined) {
      lane.taken--;
      if (lane.taken === 0) this.#lanes.delete(key);
      return;
    }
    this.#behindCount--;
    this.#keys.set(next, key);
    this.#freed.push(next);
  }

  handles(id: string): boolean {
    for (const { message } of this.handled) if (message.metadata.id === id) return true;
    return false;
  }

  /** Whether a message would wait until the handled message with this id has ended. */
  waitsBehind(message: Message, id: string): boolean {
    if (this.#keyOf === undefined) return this.concurrency === 1;
    try {
      const key = this.#keyOf(message);
      if (this.#limitOf(key) > 1) return false;
      for (const [posted, taken] of this.#keys) if (posted.message.metadata.id === id) return taken === key;
    } catch {
      // It fails when it is handled.
    }
    return false;
  }

  get handled(): readonly Posted[] {
    return this.#first === undefined ? [...this.#others] : [this.#first, ...this.#others];
  }

  /** All that are not handled yet. */
  *[Symbol.iterator](): Iterator<Posted> {
    yield* this.#freed;
    yield* this.#waiting;
    for (const { behind } of this.#lanes.values()) yield* behind;
  }

  /** Removes and returns messages that are not handled yet. */
  remove(which: (posted: Posted) => boolean): Posted[] {
    const removed: Posted[] = [];
    for (const queue of [...this.#queuesBehind(), this.#waiting, this.#freed]) {
      const all = [...queue];
      const out = new Set(all.filter(which));
      if (out.size === 0) continue;
      removed.push(...out);
      queue.clear();
      for (const posted of all) if (!out.has(posted)) queue.push(posted);
    }
    this.#behindCount = 0;
    for (const behind of this.#queuesBehind()) this.#behindCount += behind.length;
    for (const posted of removed) this.#releaseKey(posted);
    return removed;
  }

  #queuesBehind(): Fifo<Posted>[] {
    return [...this.#lanes.values()].map(({ behind }) => behind);
  }
}
