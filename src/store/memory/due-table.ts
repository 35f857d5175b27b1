/**
 * The due table in memory. SPEC: S30-S33. Rows stay until they are taken or cancelled; being due changes nothing here.
 */

import { equal } from "../../message/equality.ts";
import type { Json } from "../../message/json.ts";
import type { DueChange, DueRow } from "../due.ts";
import { copyJson } from "./json-copy.ts";

export class DueTable {
  /** By kind and key. */
  readonly #rows = new Map<string, DueRow>();
  /** The order given last; setting a row again takes a new one. */
  #lastOrder = 0;

  /** Whether the row is there, with these data where they are given. */
  has(kind: string, key: string, was?: Json): boolean {
    const row = this.#rows.get(rowKey(kind, key));
    return row !== undefined && (was === undefined || equal(row.data, was));
  }

  /** Whether it could be done: the row of a `take` or `cancel` was there, that of an `add` was not. */
  change(change: DueChange): boolean {
    const { kind, key } = change;
    if (change.op === "take" && !this.has(kind, key, change.was)) return false;
    if (change.op === "take" || change.op === "cancel") return this.#rows.delete(rowKey(kind, key));
    if (change.op === "add" && this.has(kind, key)) return false;
    const order = ++this.#lastOrder;
    this.#rows.set(rowKey(kind, key), { kind, key, dueAtMs: change.dueAtMs, data: copyJson(change.data), order });
    return true;
  }

  due(nowMs: number, limit: number, kind?: string): DueRow[] {
    return [...this.#rows.values()]
      .filter((row) => row.dueAtMs <= nowMs && (kind === undefined || row.kind === kind))
      .sort((a, b) => a.dueAtMs - b.dueAtMs || a.order - b.order)
      .slice(0, limit)
      .map((row) => ({ ...row, data: copyJson(row.data) }));
  }

  earliest(kind?: string): number | undefined {
    let earliest: number | undefined;
    for (const row of this.#rows.values()) {
      if (kind !== undefined && row.kind !== kind) continue;
      if (earliest === undefined || row.dueAtMs < earliest) earliest = row.dueAtMs;
    }
    return earliest;
  }
}

/** Unique because a NUL can be in neither part. */
function rowKey(kind: string, key: string): string {
  return `${kind}\0${key}`;
}
