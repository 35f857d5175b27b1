/**
 * Tells ids that were never handled from those that may have been, without asking the store. Only ids that carry a time
 * can be told to be new; all others are in doubt. "New" is certain, "in doubt" costs a look at the receipt. SPEC: U6.
 *
 *     new(id)  ⇔  floor < time(id) ≤ now + 1 h  and  the filter does not have it
 *
 * The filter is a Bloom filter in two generations. A full generation replaces the older one, and the floor rises to the
 * newest id that is forgotten with it. At the start the floor is the time of the newest receipt in the store, or now if
 * that is later.
 */
import { HANDLED_IDS_MAX, ID_AHEAD_MS_MAX } from "../limits.ts";
import { timeInId } from "../message/id-time.ts";

/** 32 bits for each id, and 4 of them set: 2 of 10,000 new ids are taken for known ones. */
const WORDS = HANDLED_IDS_MAX;
const BIT_MASK = WORDS * 32 - 1;

class Generation {
  readonly #words = new Uint32Array(WORDS);
  size = 0;
  /** The latest time of an id in it. */
  newestMs = 0;

  /** Whether all bits of the id are set. */
  has(first: number, second: number): boolean {
    for (let n = 0; n < 4; n++) {
      const bit = (first + n * second) & BIT_MASK;
      if (((this.#words[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  add(first: number, second: number, madeAtMs: number): void {
    if (madeAtMs > this.newestMs) this.newestMs = madeAtMs;
    if (this.has(first, second)) return;
    for (let n = 0; n < 4; n++) {
      const bit = (first + n * second) & BIT_MASK;
      this.#words[bit >>> 5] = (this.#words[bit >>> 5] as number) | (1 << (bit & 31));
    }
    this.size++;
  }
}

export class HandledIds {
  #floorMs = Number.POSITIVE_INFINITY;
  #current = new Generation();
  #older: Generation | undefined;

  /** All receipts of the store are of ids up to this time. Until it is known every id is in doubt. */
  set floorMs(ms: number) {
    this.#floorMs = ms;
  }

  /** Receipts were missed: every id that can be sent now is in doubt. */
  forget(nowMs: number): void {
    this.#floorMs = Math.max(this.#floorMs === Number.POSITIVE_INFINITY ? 0 : this.#floorMs, nowMs + ID_AHEAD_MS_MAX);
  }

  /** Whether the id was certainly not handled before; from now on it is known. */
  isNew(id: string, nowMs: number): boolean {
    const madeAtMs = timeInId(id);
    if (madeAtMs === undefined) return false;
    const [first, second] = [hash(id, 0x811c_9dc5), hash(id, 0x9747_b28c) | 1];
    const isKnown = this.#current.has(first, second) || this.#older?.has(first, second) === true;
    // Also one that is known, or taken for known: it has to outlast the older generation, and the floor to count it.
    this.#add(first, second, madeAtMs);
    return !isKnown && this.#isRecent(madeAtMs, nowMs);
  }

  /** Whether `isNew` would deny it for its time alone; the id is not known by it. */
  isInDoubt(id: string, nowMs: number): boolean {
    const madeAtMs = timeInId(id);
    return madeAtMs === undefined || !this.#isRecent(madeAtMs, nowMs);
  }

  /** Whether the time of an id is one that no receipt of the store has. */
  #isRecent(madeAtMs: number, nowMs: number): boolean {
    return madeAtMs > this.#floorMs && madeAtMs <= nowMs + ID_AHEAD_MS_MAX;
  }

  #add(first: number, second: number, madeAtMs: number): void {
    if (this.#current.size === HANDLED_IDS_MAX) {
      if (this.#older !== undefined && this.#floorMs !== Number.POSITIVE_INFINITY)
        this.#floorMs = Math.max(this.#floorMs, this.#older.newestMs);
      this.#older = this.#current;
      this.#current = new Generation();
    }
    this.#current.add(first, second, madeAtMs);
  }
}

/** FNV-1a, mixed at the end so that ids which differ in their last digits differ in all bits. */
function hash(text: string, seed: number): number {
  let value = seed;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x0100_0193);
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
