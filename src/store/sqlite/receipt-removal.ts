/**
 * Removes expired receipts. SPEC: S103-S105. They are found by name, which contains the creation time, and recognized
 * by the column `made_at`. Works in small steps, each its own job, so that millions of receipts do not block the event
 * loop. Every step uses the current horizon, which the first step has moved.
 */
import { SHARED_SCOPE } from "../document.ts";
import { eventOf, namesMadeBefore } from "../receipt-name.ts";
import type { ForgetRequest } from "../store.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import type { SpaceRow } from "./space-table.ts";
import type { Tables } from "./tables.ts";

/** Rows and name ranges checked per job; most ranges are empty. */
const JOB_ROWS = 500;
const JOB_RANGES = 100;

/** State of a run. Immutable, so that a repeated job starts where the last one ended. */
export interface ForgettingRun {
  readonly request: ForgetRequest;
  readonly phase: "removing" | "finished";
  /** Row of the current space, and the index of its name range. */
  readonly space: number;
  readonly range: number;
  /** Names up to this one have been checked; empty at the start of a range. */
  readonly after: string;
  readonly removed: number;
}

export function startForgetting(request: ForgetRequest): ForgettingRun {
  return { request: { ...request }, phase: "removing", space: 0, range: 0, after: "", removed: 0 };
}

export class ReceiptRemoval {
  readonly #tables: Tables;
  /** By space and range: no receipt up to this name can expire. Avoids repeated scans of receipts without an end. */
  readonly #lasting = new Map<string, string>();
  readonly #sql;

  constructor(connection: SqliteConnection, tables: Tables) {
    this.#tables = tables;
    this.#sql = statements(connection);
  }

  /** The work of one job. */
  advance(run: ForgettingRun): ForgettingRun {
    const { receipts } = this.#tables;
    receipts.raiseHorizon(run.request.madeBeforeMs);
    const ranges = namesMadeBefore(receipts.horizonMs);
    const lastRow = Number(this.#sql.lastRow.get()?.["last"] ?? 0);
    let at = run;
    let rows = JOB_ROWS;
    for (let looks = 0; looks < JOB_RANGES && rows > 0 && at.phase !== "finished"; looks++) {
      const name = this.#sql.space.get(at.space)?.["name"];
      const space = name === undefined ? undefined : this.#tables.spaces.find(String(name));
      if (space === undefined || at.removed >= at.request.limit) return { ...at, phase: "finished" };
      const looked = this.#look(space, ranges[at.range]!, at, { rows, lastRow });
      rows -= looked.rows;
      at = looked.run;
      if (at.range === ranges.length) at = { ...at, space: space.id + 1, range: 0 };
    }
    return at;
  }

  #look(
    space: SpaceRow,
    [from, to]: readonly [string, string],
    run: ForgettingRun,
    { rows, lastRow }: { readonly rows: number; readonly lastRow: number },
  ): { readonly rows: number; readonly run: ForgettingRun } {
    const place = `${space.id} ${run.range}`;
    const start = run.after === "" ? (this.#lasting.get(place) ?? from) : run.after;
    const found = this.#sql.named.all(space.id, SHARED_SCOPE, start, to, rows);
    let { removed, after } = run;
    let allLast = start === (this.#lasting.get(place) ?? from);
    for (const row of found) {
      if (removed >= run.request.limit) break;
      after = String(row["name"]);
      allLast &&= row["made_at"] === null;
      if (allLast) this.#lasting.set(place, after);
      // The last row stays: its number must not be reused, because other rows may refer to it.
      if (row["made_at"] !== null && Number(row["id"]) < lastRow && this.#removed(space, row)) removed++;
    }
    const next = found.length < rows ? { range: run.range + 1, after: "" } : { after };
    return { rows: found.length, run: { ...run, ...next, removed } };
  }

  #removed(space: SpaceRow, { id, name, made_at, sequence }: Row): boolean {
    const { receipts, documents, labels } = this.#tables;
    if (Number(made_at) >= receipts.horizonMs || Number(sequence) > space.floor) return false;
    const event = eventOf(String(name));
    if (event !== undefined && receipts.isUnsettled(event.id)) return false;
    labels.removeAll(Number(id));
    documents.erase(space, { scope: SHARED_SCOPE, id: String(name) });
    return true;
  }
}

function statements(connection: SqliteConnection) {
  return {
    space: connection.prepare("SELECT name FROM space WHERE id >= ? ORDER BY id LIMIT 1"),
    lastRow: connection.prepare("SELECT max(id) AS last FROM document"),
    named: connection.prepare(
      "SELECT id, name, made_at, sequence FROM document WHERE space = ? AND scope = ? AND name > ? AND name < ? ORDER BY name LIMIT ?",
    ),
  };
}
