/**
 * Removing receipts whose end has come. SPEC: S103-S105. They are found by their names, which begin with the time of what they are of, and known by
 * the column that only receipts have. It works in small steps, each a job of its own, so that a file with millions of them does not hold the
 * event loop. Every step works by the horizon as it is then, which the first has moved.
 */
import { SHARED_SCOPE } from "../document.ts";
import { eventOf, namesMadeBefore } from "../receipt.ts";
import type { ForgetRequest } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Space } from "./space-table.ts";
import type { Tables } from "./tables.ts";

/** Rows looked at in one job, and ranges of names: most of them are empty. */
const JOB_ROWS = 500;
const JOB_RANGES = 100;

/** Where a run stands: a value, so that a job which is run again starts where the one before it ended. */
export interface ForgettingRun {
  readonly request: ForgetRequest;
  readonly phase: "removing" | "finished";
  /** Row of the space to look through, and its range of names. */
  readonly space: number;
  readonly range: number;
  /** Names up to this one have been looked at; the whole range is left where it is empty. */
  readonly after: string;
  readonly removed: number;
}

export function startForgetting(request: ForgetRequest): ForgettingRun {
  return { request: { ...request }, phase: "removing", space: 0, range: 0, after: "", removed: 0 };
}

export class ReceiptRemoval {
  readonly #tables: Tables;
  readonly #sql;

  constructor(connection: Connection, tables: Tables) {
    this.#tables = tables;
    this.#sql = statements(connection);
  }

  /** As much as one job may do. */
  advance(run: ForgettingRun): ForgettingRun {
    const { receipts } = this.#tables;
    receipts.raiseHorizon(run.request.madeBeforeMs);
    const ranges = namesMadeBefore(receipts.horizonMs);
    let at = run;
    let rows = JOB_ROWS;
    for (let looks = 0; looks < JOB_RANGES && rows > 0 && at.phase !== "finished"; looks++) {
      const name = this.#sql.space.get(at.space)?.["name"];
      const space = name === undefined ? undefined : this.#tables.spaces.find(String(name));
      if (space === undefined || at.removed >= at.request.limit) return { ...at, phase: "finished" };
      const looked = this.#look(space, ranges[at.range]!, at, rows);
      rows -= looked.rows;
      at = looked.run;
      if (at.range === ranges.length) at = { ...at, space: space.id + 1, range: 0 };
    }
    return at;
  }

  #look(space: Space, [from, to]: readonly [string, string], run: ForgettingRun, most: number) {
    const { after, removed } = run;
    const start = after === "" ? from : after;
    const found = this.#sql.old.all(space.id, SHARED_SCOPE, start, to, most);
    let went = 0;
    let last = after;
    for (const { id, name } of found) {
      if (removed + went >= run.request.limit) break;
      last = String(name);
      if (this.#removed(space, Number(id), last)) went++;
    }
    const isDone = found.length < most;
    const next = isDone ? { range: run.range + 1, after: "" } : { range: run.range, after: last };
    return { rows: found.length, run: { ...run, ...next, removed: removed + went } };
  }

  #removed(space: Space, row: number, name: string): boolean {
    const { receipts, documents, labels } = this.#tables;
    const isOld = this.#sql.isOld.get(row, receipts.horizonMs, space.floor);
    if (isOld === undefined) return false;
    const event = eventOf(name);
    if (event !== undefined && receipts.isUnsettled(event)) return false;
    labels.removeAll(row);
    documents.erase(space, { scope: SHARED_SCOPE, id: name });
    return true;
  }
}

function statements(connection: Connection) {
  return {
    space: connection.prepare("SELECT name FROM space WHERE id >= ? ORDER BY id LIMIT 1"),
    old: connection.prepare(
      "SELECT id, name FROM document WHERE space = ? AND scope = ? AND name > ? AND name < ? ORDER BY name LIMIT ?",
    ),
    // The last row stays: its number must not come back, since others may refer to it.
    isOld: connection.prepare(
      "SELECT 1 FROM document WHERE id = ? AND made_at < ? AND sequence <= ? AND id < (SELECT max(id) FROM document)",
    ),
  };
}
