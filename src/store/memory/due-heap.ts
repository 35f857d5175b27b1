/**
 * Due rows ordered by deadline, then by insertion: a binary heap in an array. Each entry knows its position, so a
 * cancelled row leaves in O(log n). `first` reads the earliest rows in order without removing them. SPEC: S30, S31.
 */
import type { DueRow } from "../due.ts";

export interface DueEntry {
  readonly row: DueRow;
  /** Index in the heap's array; -1 once the entry has left. */
  position: number;
}

export class DueHeap {
  /** The parent of index i is at (i - 1) >> 1; no parent is due after its child. */
  readonly #entries: DueEntry[] = [];

  get size(): number {
    return this.#entries.length;
  }

  peek(): DueRow | undefined {
    return this.#entries[0]?.row;
  }

  add(row: DueRow): DueEntry {
    const entry = { row, position: this.#entries.length };
    this.#entries.push(entry);
    this.#siftUp(entry);
    return entry;
  }

  remove(entry: DueEntry): void {
    const hole = entry.position;
    if (hole < 0) return;
    entry.position = -1;
    const last = this.#entries.pop()!;
    if (last === entry) return;
    this.#place(last, hole);
    this.#siftUp(last);
    this.#siftDown(last);
  }

  /** The rows due at or before `nowMs`, at most `limit`, earliest first. Visits no more than twice as many entries. */
  first(nowMs: number, limit: number): DueRow[] {
    const rows: DueRow[] = [];
    const frontier = new DueHeap();
    const at = new Map<DueRow, number>();
    const offer = (index: number) => {
      const row = this.#entries[index]?.row;
      if (row === undefined || row.dueAtMs > nowMs) return;
      at.set(row, index);
      frontier.add(row);
    };
    for (offer(0); frontier.size > 0 && rows.length < limit; ) {
      const row = frontier.#pop();
      rows.push(row);
      const index = at.get(row)!;
      offer(2 * index + 1);
      offer(2 * index + 2);
    }
    return rows;
  }

  /** Throws if the structure is inconsistent. */
  checkInvariants(): void {
    for (const [index, entry] of this.#entries.entries()) {
      if (entry.position !== index) throw new Error(`due heap: the entry at ${index} has position ${entry.position}`);
      if (index > 0 && isBefore(entry.row, this.#entries[(index - 1) >> 1]!.row))
        throw new Error(`due heap: the entry at ${index} is due before its parent`);
    }
  }

  #pop(): DueRow {
    const entry = this.#entries[0]!;
    this.remove(entry);
    return entry.row;
  }

  #siftUp(entry: DueEntry): void {
    while (entry.position > 0) {
      const parent = this.#entries[(entry.position - 1) >> 1]!;
      if (!isBefore(entry.row, parent.row)) return;
      this.#swap(entry, parent);
    }
  }

  #siftDown(entry: DueEntry): void {
    for (;;) {
      const left = this.#entries[2 * entry.position + 1];
      if (left === undefined) return;
      const right = this.#entries[2 * entry.position + 2];
      const child = right !== undefined && isBefore(right.row, left.row) ? right : left;
      if (!isBefore(child.row, entry.row)) return;
      this.#swap(entry, child);
    }
  }

  #swap(one: DueEntry, other: DueEntry): void {
    const { position } = one;
    this.#place(one, other.position);
    this.#place(other, position);
  }

  #place(entry: DueEntry, position: number): void {
    entry.position = position;
    this.#entries[position] = entry;
  }
}

export function isBefore(one: DueRow, other: DueRow): boolean {
  return one.dueAtMs < other.dueAtMs || (one.dueAtMs === other.dueAtMs && one.order < other.order);
}
