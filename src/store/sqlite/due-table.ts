/** The due table. SPEC: S30-S33. The order of setting is the row's own number, so equal deadlines need no further column. */
import type { Json } from "../../message/json.ts";
import type { DueChange, DueRow } from "../due.ts";
import { checkName, checkTime } from "../request-check.ts";
import type { Connection, Row } from "./connection.ts";
import { jsonText } from "./json-text.ts";

/** A change with its data as text, made before the transaction. */
export type EncodedDueChange = Exclude<DueChange, { op: "put" }> | EncodedPut;
interface EncodedPut {
  readonly op: "put";
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly text: string;
}

export function encodeDueChange(change: DueChange): EncodedDueChange {
  const { kind, key } = change;
  checkName("the kind of a due row", kind);
  checkName("the key of a due row", key);
  if (change.op !== "put") return { op: change.op, kind, key };
  checkTime("a deadline", change.dueAtMs);
  return { op: "put", kind, key, dueAtMs: change.dueAtMs, text: jsonText("the data of a due row", change.data) };
}

export class DueTable {
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = {
      has: connection.prepare("SELECT 1 FROM due WHERE kind = ? AND key = ?"),
      put: connection.prepare("REPLACE INTO due (kind, key, due_at_ms, data) VALUES (?, ?, ?, ?)"),
      remove: connection.prepare("DELETE FROM due WHERE kind = ? AND key = ?"),
      due: connection.prepare(
        "SELECT kind, key, due_at_ms, data, ord FROM due WHERE due_at_ms <= ? ORDER BY due_at_ms, ord LIMIT ?",
      ),
      earliest: connection.prepare("SELECT min(due_at_ms) AS earliest FROM due"),
    };
  }

  has(kind: string, key: string): boolean {
    return this.#sql.has.get(kind, key) !== undefined;
  }

  /** Whether the row of a `take` or `cancel` was there; true for a `put`. */
  change(change: EncodedDueChange): boolean {
    if (change.op !== "put") return this.#sql.remove.run(change.kind, change.key) > 0;
    this.#sql.put.run(change.kind, change.key, change.dueAtMs, change.text);
    return true;
  }

  due(nowMs: number, limit: number): DueRow[] {
    return this.#sql.due.all(nowMs, limit).map(dueRow);
  }

  earliest(): number | undefined {
    const earliest = this.#sql.earliest.get()?.["earliest"];
    return typeof earliest === "number" ? earliest : undefined;
  }
}

function dueRow({ kind, key, due_at_ms, data, ord }: Row): DueRow {
  return {
    kind: String(kind),
    key: String(key),
    dueAtMs: Number(due_at_ms),
    data: JSON.parse(String(data)) as Json,
    order: Number(ord),
  };
}
