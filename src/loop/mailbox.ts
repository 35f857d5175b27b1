/**
 * The messages of an actor in this process. SPEC: L14, U105-U107.
 *
 * ```
 *   push ──> waiting ──next()──> handled ──ended()──> gone
 *               └──its key is taken──> behind that key ──first of its key──> waiting, before all others
 * ```
 * At most `concurrency` messages are handled at once: 1 is first in, first out. With `serialBy`, at most one of each
 * key is.
 */
import { Fifo } from "../host/fifo.ts";
import type { Message } from "../message/envelope.ts";
import type { Posted } from "./capability.ts";

/** Returns the key of a message. Messages with the same key are handled one after the other. */
export type KeyOf = (message: Message) => string;

export class Mailbox {
  readonly concurrency: number;
  readonly #keyOf: KeyOf | undefined;
  readonly #waiting = new Fifo<Posted>();
  /** They have their keys, and came before all messages in `#waiting`. */
  readonly #freed = new Fifo<Posted>();
  readonly #handled = new Set<Posted>();
  /** Keys of handled messages, and the messages that wait for them. */
  readonly #behind = new Map<string, Fifo<Posted>>();
  #behindCount = 0;
  /** Keys of messages that are handled, or are next of their key. */
  readonly #keys = new Map<Posted, string>();
  /** Why the message that `next` gave last has no key. */
  keyProblem: unknown;

  constructor(concurrency: number, keyOf?: KeyOf) {
    this.concurrency = concurrency;
    this.#keyOf = keyOf;
  }

  get length(): number {
    return this.#ready + this.#behindCount + this.#handled.size;
  }

  /** Whether `next` may give a message. */
  get hasNext(): boolean {
    return this.#ready > 0 && this.hasPlace;
  }

  get hasPlace(): boolean {
    return this.#handled.size < this.concurrency;
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
      this.#handled.add(posted);
      return posted;
    }
    return undefined;
  }

  /**
   * Takes the key of a message; false if another message has it. A message whose key function throws is handled, and
   * fails.
   */
  #takesKey(posted: Posted, keyOf: KeyOf): boolean {
    if (this.#keys.has(posted)) return true;
    let key: unknown;
    try {
      key = keyOf(posted.message);
      if (typeof key !== "string") throw new TypeError(`serialBy must give a string, got ${typeof key}`);
    } catch (thrown) {
      this.keyProblem = thrown ?? new Error("serialBy threw");
      return true;
    }
    const behind = this.#behind.get(key as string);
    if (behind !== undefined) {
      behind.push(posted);
      this.#behindCount++;
      return false;
    }
    this.#behind.set(key as string, new Fifo());
    this.#keys.set(posted, key as string);
    return true;
  }

  /** The handler of a message has ended. */
  ended(posted: Posted): void {
    this.#handled.delete(posted);
    if (this.#keyOf !== undefined) this.#releaseKey(posted);
  }

  #releaseKey(posted: Posted): void {
    const key = this.#keys.get(posted);
    if (key === undefined) return;
    this.#keys.delete(posted);
    const next = this.#behind.get(key)?.shift();
    if (next === undefined) {
      this.#behind.delete(key);
      return;
    }
    this.#behindCount--;
    this.#keys.set(next, key);
    this.#freed.push(next);
  }

  handles(id: string): boolean {
    for (const { message } of this.#handled) if (message.metadata.id === id) return true;
    return false;
  }

  /** Whether a message would wait until the handled message with this id has ended. */
  waitsBehind(message: Message, id: string): boolean {
    if (this.#keyOf === undefined) return this.concurrency === 1;
    try {
      const key = this.#keyOf(message);
      for (const [posted, taken] of this.#keys) if (posted.message.metadata.id === id) return taken === key;
    } catch {
      // It fails when it is handled.
    }
    return false;
  }

  get handled(): Iterable<Posted> {
    return this.#handled;
  }

  /** All that are not handled yet. */
  *[Symbol.iterator](): Iterator<Posted> {
    yield* this.#freed;
    yield* this.#waiting;
    for (const behind of this.#behind.values()) yield* behind;
  }

  /** Removes and returns messages that are not handled yet. */
  remove(which: (posted: Posted) => boolean): Posted[] {
    const removed: Posted[] = [];
    for (const queue of [...this.#behind.values(), this.#waiting, this.#freed]) {
      const all = [...queue];
      const out = new Set(all.filter(which));
      if (out.size === 0) continue;
      removed.push(...out);
      queue.clear();
      for (const posted of all) if (!out.has(posted)) queue.push(posted);
    }
    this.#behindCount = 0;
    for (const behind of this.#behind.values()) this.#behindCount += behind.length;
    for (const posted of removed) this.#releaseKey(posted);
    return removed;
  }
}
