/**
 * The due table. SPEC: S30-S33. The insertion order is the row's own number, so equal deadlines need no further column.
 */

import { equal } from "../../message/equality.ts";
import type { Json } from "../../message/json.ts";
import type { DueChange, DueRow } from "../due.ts";
import { checkName, checkTime } from "../request-check.ts";
import { StoreError } from "../store.ts";
import { AT_MOST, type Row, type SqliteConnection } from "./connection.ts";
import { jsonText } from "./json-text.ts";

/** Columns of a row, as `dueRow` reads them. */
export const DUE_COLUMNS = "kind, key, due_at_ms, data, ord";

/** Deadline of rows without a time; a query with it requests all rows. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** A change with its data as text, encoded before the transaction. */
export type EncodedDueChange = Exclude<DueChange, { op: "put" | "add" }> | EncodedSetting;
interface EncodedSetting {
  readonly op: "put" | "add";
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly text: string;
}

/** Copies a change, because the caller may modify its object. */
export function ownDueChange<Change extends DueChange>(change: Change): Change {
  if (change.op !== "take" || change.was === undefined) return { ...change };
  return { ...change, was: JSON.parse(jsonText("what a due row was", change.was)) as Json };
}

export function encodeDueChange(change: DueChange): EncodedDueChange {
  const { kind, key } = change;
  checkName("the kind of a due row", kind);
  checkName("the key of a due row", key);
  if (change.op === "take" || change.op === "cancel") return ownDueChange(change);
  checkTime("a deadline", change.dueAtMs);
  return { op: change.op, kind, key, dueAtMs: change.dueAtMs, text: jsonText("the data of a due row", change.data) };
}

export class DueTable {
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = {
      data: connection.prepare("SELECT data FROM due WHERE kind = ? AND key = ?"),
      row: connection.prepare(`SELECT ${DUE_COLUMNS} FROM due WHERE kind = ? AND key = ?`),
      put: connection.prepare("REPLACE INTO due (kind, key, due_at_ms, data) VALUES (?, ?, ?, ?)"),
      add: connection.prepare(
        "INSERT INTO due (kind, key, due_at_ms, data) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO NOTHING",
      ),
      remove: connection.prepare("DELETE FROM due WHERE kind = ? AND key = ?"),
      due: connection.prepare(`SELECT ${DUE_COLUMNS} FROM due WHERE due_at_ms <= ? ORDER BY due_at_ms, ord ${AT_MOST}`),
      // Uses the index by deadline, because few rows are due. The planner would read all rows of the kind: 34 ms
      // instead of 50 µs with 200,000 timers.
      dueOfKind: connection.prepare(
        `SELECT ${DUE_COLUMNS} FROM due WHERE +kind = ? AND due_at_ms <= ? ORDER BY due_at_ms, ord ${AT_MOST}`,
      ),
      // Uses the index by kind, for queries of all rows.
      allOfKind: connection.prepare(
        `SELECT ${DUE_COLUMNS} FROM due WHERE kind = ? AND +due_at_ms <= ? ORDER BY due_at_ms, ord ${AT_MOST}`,
      ),
      earliest: connection.prepare("SELECT min(due_at_ms) AS earliest FROM due"),
      earliestOfKind: connection.prepare("SELECT min(due_at_ms) AS earliest FROM due WHERE +kind = ?"),
    };
  }

  /** Whether the row exists, with these data if given. */
  has(kind: string, key: string, was?: Json): boolean {
    const row = this.#sql.data.get(kind, key);
    return row !== undefined && (was === undefined || equal(dataOf(`the ${kind} ${key}`, String(row["data"])), was));
  }

  /** Whether it was done: `take` and `cancel` need an existing row, `add` a missing one. */
  change(change: EncodedDueChange): boolean {
    const { kind, key } = change;
    if (change.op === "take" && change.was !== undefined && !this.has(kind, key, change.was)) return false;
    if (change.op === "take" || change.op === "cancel") return this.#sql.remove.run(kind, key) > 0;
    return this.#sql[change.op].run(kind, key, change.dueAtMs, change.text) > 0;
  }

  due(nowMs: number, limit: number, kind?: string): DueRow[] {
    const { due, dueOfKind, allOfKind } = this.#sql;
    if (kind === undefined) return due.all(nowMs, limit).map(dueRow);
    return (nowMs < NEVER_MS ? dueOfKind : allOfKind).all(kind, nowMs, limit).map(dueRow);
  }

  row(kind: string, key: string): DueRow | undefined {
    const row = this.#sql.row.get(kind, key);
    return row && dueRow(row);
  }

  earliest(kind?: string): number | undefined {
    const row = kind === undefined ? this.#sql.earliest.get() : this.#sql.earliestOfKind.get(kind);
    const earliest = row?.["earliest"];
    return typeof earliest === "number" ? earliest : undefined;
  }
}

/** Throws if its data are not valid JSON. */
export function dueRow({ kind, key, due_at_ms, data, ord }: Row): DueRow {
  return {
    kind: String(kind),
    key: String(key),
    dueAtMs: Number(due_at_ms),
    data: dataOf(`the ${kind} ${key}`, String(data)),
    order: Number(ord),
  };
}

function dataOf(what: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    const message = `Stored bytes have changed (${what} of the due table). Run verify, then restore a copy.`;
    throw new StoreError("STORE_CORRUPT", message, { cause: error });
  }
}
