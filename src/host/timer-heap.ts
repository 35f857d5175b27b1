/**
 * Timers ordered by deadline, then by insertion: a binary heap in an array. SPEC: H5, H6.
 *
 * Each entry knows its position, so a cancelled timer leaves at once in O(log n). Most timers of a kernel are timeouts
 * that get cancelled; with lazy removal they would stay in memory until their deadline.
 */

export interface TimerEntry {
  /** On the monotonic clock of the host that owns the heap. */
  readonly deadlineMs: number;
  /** Increases with every entry: breaks ties. */
  readonly ordinal: number;
  readonly keepAlive: boolean;
  readonly fire: () => void;
  /** Its index in the heap's array; -1 after removal. */
  position: number;
}

export class TimerHeap {
  /** Parent of index i is at (i - 1) >> 1; no parent is due after its child. */
  readonly #entries: TimerEntry[] = [];
  /** Number of entries with `keepAlive`. */
  #keepAliveCount = 0;
  #nextOrdinal = 0;

  get size(): number {
    return this.#entries.length;
  }

  get keepAliveCount(): number {
    return this.#keepAliveCount;
  }

  /** The entry with the earliest deadline, without removing it. */
  peek(): TimerEntry | undefined {
    return this.#entries[0];
  }

  add(deadlineMs: number, keepAlive: boolean, fire: () => void): TimerEntry {
    const entry = { deadlineMs, ordinal: this.#nextOrdinal++, keepAlive, fire, position: this.#entries.length };
    this.#entries.push(entry);
    if (keepAlive) this.#keepAliveCount += 1;
    this.#siftUp(entry);
    return entry;
  }

  /** False if the entry was removed before. */
  remove(entry: TimerEntry): boolean {
    const hole = entry.position;
    if (hole < 0) return false;
    entry.position = -1;
    if (entry.keepAlive) this.#keepAliveCount -= 1;
    const last = this.#entries.pop()!;
    if (last === entry) return true;
    this.#place(last, hole);
    this.#siftUp(last);
    this.#siftDown(last);
    return true;
  }

  /** Throws if the structure is inconsistent. */
  checkInvariants(): void {
    let keepAliveCount = 0;
    for (const [index, entry] of this.#entries.entries()) {
      if (entry.position !== index)
        throw new Error(`Timer heap: entry at ${index} believes it is at ${entry.position}`);
      if (index > 0 && isBefore(entry, this.#entries[(index - 1) >> 1]!)) {
        throw new Error(`Timer heap: entry at ${index} is due before its parent`);
      }
      if (entry.keepAlive) keepAliveCount += 1;
    }
    if (keepAliveCount !== this.#keepAliveCount) {
      throw new Error(`Timer heap: counts ${this.#keepAliveCount} keep-alive entries and holds ${keepAliveCount}`);
    }
  }

  #siftUp(entry: TimerEntry): void {
    while (entry.position > 0) {
      const parent = this.#entries[(entry.position - 1) >> 1]!;
      if (!isBefore(entry, parent)) return;
      this.#swap(entry, parent);
    }
  }

  #siftDown(entry: TimerEntry): void {
    for (;;) {
      const left = this.#entries[2 * entry.position + 1];
      if (left === undefined) return;
      const right = this.#entries[2 * entry.position + 2];
      const child = right !== undefined && isBefore(right, left) ? right : left;
      if (!isBefore(child, entry)) return;
      this.#swap(entry, child);
    }
  }

  #swap(one: TimerEntry, other: TimerEntry): void {
    const position = one.position;
    this.#place(one, other.position);
    this.#place(other, position);
  }

  #place(entry: TimerEntry, position: number): void {
    entry.position = position;
    this.#entries[position] = entry;
  }
}

function isBefore(one: TimerEntry, other: TimerEntry): boolean {
  return one.deadlineMs < other.deadlineMs || (one.deadlineMs === other.deadlineMs && one.ordinal < other.ordinal);
}
