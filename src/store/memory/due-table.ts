/**
 * The due table in memory. SPEC: S30-S33. Rows stay until they are taken or cancelled; a passed deadline does not
 * change them. Each kind has its own heap, so that inserting, cancelling and finding the earliest row cost O(log n).
 */

import { equal } from "../../message/equality.ts";
import type { Json } from "../../message/json.ts";
import type { DueChange, DueRow } from "../due.ts";
import { type DueEntry, DueHeap, isBefore } from "./due-heap.ts";
import { copyStored } from "./json-copy.ts";

interface Kind {
  readonly byKey: Map<string, DueEntry>;
  readonly heap: DueHeap;
}

export class DueTable {
  readonly #kinds = new Map<string, Kind>();
  /** The last assigned order; a row that is set again gets a new one. */
  #lastOrder = 0;

  /** The number of rows of a kind. */
  size(kind: string): number {
    return this.#kinds.get(kind)?.byKey.size ?? 0;
  }

  /** Whether the row exists, with these data if they are given. */
  has(kind: string, key: string, was?: Json): boolean {
    const row = this.#entry(kind, key)?.row;
    return row !== undefined && (was === undefined || equal(row.data, was));
  }

  row(kind: string, key: string): DueRow | undefined {
    const row = this.#entry(kind, key)?.row;
    return row && { ...row, data: copyStored(row.data) };
  }

  /** Whether it was done: `take` and `cancel` need an existing row, `add` a missing one. */
  change(change: DueChange): boolean {
    const { kind, key } = change;
    if (change.op === "take" && !this.has(kind, key, change.was)) return false;
    if (change.op === "take" || change.op === "cancel") return this.#remove(kind, key);
    if (change.op === "add" && this.has(kind, key)) return false;
    this.#remove(kind, key);
    const order = ++this.#lastOrder;
    const rows = this.#kind(kind);
    const row = { kind, key, dueAtMs: change.dueAtMs, data: copyStored(change.data), order };
    rows.byKey.set(key, rows.heap.add(row));
    return true;
  }

  due(nowMs: number, limit: number, kind?: string): DueRow[] {
    const heaps = kind === undefined ? [...this.#kinds.values()] : [this.#kinds.get(kind)];
    const found = heaps.map((rows) => rows?.heap.first(nowMs, limit) ?? []);
    const rows = found.length === 1 ? found[0]! : found.flat().sort((a, b) => (isBefore(a, b) ? -1 : 1));
    return rows.slice(0, limit).map((row) => ({ ...row, data: copyStored(row.data) }));
  }

  earliest(kind?: string): number | undefined {
    if (kind !== undefined) return this.#kinds.get(kind)?.heap.peek()?.dueAtMs;
    let earliest: number | undefined;
    for (const { heap } of this.#kinds.values()) {
      const dueAtMs = heap.peek()?.dueAtMs;
      if (dueAtMs !== undefined && (earliest === undefined || dueAtMs < earliest)) earliest = dueAtMs;
    }
    return earliest;
  }

  checkInvariants(): void {
    for (const { heap } of this.#kinds.values()) heap.checkInvariants();
  }

  #entry(kind: string, key: string): DueEntry | undefined {
    return this.#kinds.get(kind)?.byKey.get(key);
  }

  #kind(kind: string): Kind {
    const known = this.#kinds.get(kind);
    if (known) return known;
    const made = { byKey: new Map<string, DueEntry>(), heap: new DueHeap() };
    this.#kinds.set(kind, made);
    return made;
  }

  #remove(kind: string, key: string): boolean {
    const rows = this.#kinds.get(kind);
    const entry = rows?.byKey.get(key);
    if (!rows || !entry) return false;
    rows.byKey.delete(key);
    rows.heap.remove(entry);
    if (rows.byKey.size === 0) this.#kinds.delete(kind);
    return true;
  }
}
