/**
 * Tells whether the store can hold a receipt for an id. "New" is certain and costs no statement; every other id is looked
 * up. It owns two generations of a Bloom filter over ids that carry a time, and a floor:
 *
 *     isNew(id)  =  floor < time(id) <= now + 1 h,  and no generation may hold the id
 *
 * The floor is at least the time of every id that was handled and is in no generation: at first that of the newest receipt
 * in the store, later that of the newest id of each generation that was dropped. Ids with a time ahead of the clock are
 * remembered as one interval, and are in doubt.
 * The filter is about observers, which must not see a second run. Safety is the receipt's: its commit requires that no
 * document of its name exists. SPEC: U80, U81.
 */
import { HANDLED_IDS_GENERATION_MAX, ID_AHEAD_MS_MAX } from "../limits.ts";
import { timeInId } from "../message/id-time.ts";

/** 32 bits for each id of a full generation: with four probes one of 250,000 other ids is taken for one of them. */
const BITS = HANDLED_IDS_GENERATION_MAX * 32;
const PROBES = 4;

class Generation {
  readonly #words = new Uint32Array(BITS / 32);
  count = 0;
  /** Time of its newest id. */
  newestMs = 0;

  add(first: number, second: number, timeMs: number): void {
    for (let probe = 0, bit = first; probe < PROBES; probe++, bit += second) {
      const at = (bit >>> 0) % BITS;
      this.#words[at >>> 5] = (this.#words[at >>> 5] as number) | (1 << (at & 31));
    }
    this.count++;
    this.newestMs = Math.max(this.newestMs, timeMs);
  }

  mayHold(first: number, second: number): boolean {
    for (let probe = 0, bit = first; probe < PROBES; probe++, bit += second) {
      const at = (bit >>> 0) % BITS;
      if (((this.#words[at >>> 5] as number) & (1 << (at & 31))) === 0) return false;
    }
    return true;
  }
}

export class HandledIds {
  readonly #now: () => number;
  #floorMs: number;
  #newer = new Generation();
  #older = new Generation();
  /** Times of handled ids that were ahead of the clock: from the earliest to the latest of them. */
  #aheadFromMs = Number.POSITIVE_INFINITY;
  #aheadToMs = Number.NEGATIVE_INFINITY;

  /** `newestReceiptMs`: time of the newest receipt in the store that is not ahead of the clock; 0 where there is none. */
  constructor({ now, newestReceiptMs }: { now: () => number; newestReceiptMs: number }) {
    this.#now = now;
    this.#floorMs = newestReceiptMs;
  }

  /** Whether no receipt of this id can exist. */
  isNew(id: string): boolean {
    const timeMs = timeInId(id);
    if (timeMs === undefined || timeMs <= this.#floorMs || timeMs > this.#now() + ID_AHEAD_MS_MAX) return false;
    if (timeMs >= this.#aheadFromMs && timeMs <= this.#aheadToMs) return false;
    const [first, second] = hashes(id);
    return !this.#newer.mayHold(first, second) && !this.#older.mayHold(first, second);
  }

  /** The id was handled, here or by another process. */
  note(id: string): void {
    const timeMs = timeInId(id);
    // Without a time, or below the floor, it is in doubt anyway.
    if (timeMs === undefined || timeMs <= this.#floorMs) return;
    if (timeMs > this.#now() + ID_AHEAD_MS_MAX) return this.#noteAhead(timeMs);
    if (this.#newer.count === HANDLED_IDS_GENERATION_MAX) this.#dropOldest();
    const [first, second] = hashes(id);
    this.#newer.add(first, second, timeMs);
  }

  /** Ids up to this time may have been handled without a `note`: changes of other processes were missed. */
  raiseFloor(timeMs: number): void {
    this.#floorMs = Math.max(this.#floorMs, timeMs);
  }

  #noteAhead(timeMs: number): void {
    this.#aheadFromMs = Math.min(this.#aheadFromMs, timeMs);
    this.#aheadToMs = Math.max(this.#aheadToMs, timeMs);
  }

  #dropOldest(): void {
    this.raiseFloor(this.#older.newestMs);
    this.#older = this.#newer;
    this.#newer = new Generation();
  }
}

/** Two hashes of a text, from which all probes follow. The second is odd, so that the probes differ. */
function hashes(text: string): readonly [number, number] {
  let first = 0x811c9dc5;
  let second = 0x9e3779b1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    first = Math.imul(first ^ code, 0x01000193);
    second = Math.imul(second ^ code, 0x85ebca6b) + code;
  }
  return [mixed(first), mixed(second) | 1];
}

/** Spreads the last characters over all bits. */
function mixed(hash: number): number {
  let value = hash ^ (hash >>> 16);
  value = Math.imul(value, 0x7feb352d);
  value ^= value >>> 15;
  value = Math.imul(value, 0x846ca68b);
  return (value ^ (value >>> 16)) >>> 0;
}
