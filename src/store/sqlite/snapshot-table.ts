/**
 * Snapshots of documents as rows of parts (`snapshot-part.ts`). A snapshot is valid if the document's row names its
 * sequence. Parts of another sequence are left from an unfinished or replaced snapshot, and are removed when the next
 * one begins.
 */
import type { Json } from "../../message/json.ts";
import { checksum } from "./checksum.ts";
import { AT_MOST, type Row, type SqliteConnection } from "./connection.ts";
import { damaged } from "./damage.ts";
import { applyPart, type PartOperation } from "./snapshot-part.ts";

/** More parts than a document can have; part of the location that a checksum covers. */
const PARTS_MAX = 65_536;

export interface SnapshotPlace {
  /** Row of the document. */
  readonly row: number;
  readonly sequence: number;
}

export interface StoredPart {
  readonly operations: readonly PartOperation[];
  readonly isLast: boolean;
  readonly bytes: number;
}

export class SnapshotTable {
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  put({ row, sequence }: SnapshotPlace, part: number, text: string, isLast: boolean): void {
    const last = isLast ? 1 : 0;
    this.#sql.put.run(row, sequence, part, last, text, sumOf(text, { row, sequence }, part, last));
  }

  /** One part; throws if it is missing or damaged. */
  part(place: SnapshotPlace, part: number): StoredPart {
    return readPart(this.#sql.part.get(place.row, place.sequence, part), place, part);
  }

  value(place: SnapshotPlace): Json | undefined {
    const rows = this.#sql.parts.all(place.row, place.sequence);
    const parts = rows.map((row, at) => readPart(row, place, at));
    if (parts.at(-1)?.isLast !== true) throw missing(place);
    return parts.reduce((value: Json | undefined, { operations }) => applyPart(value, operations), undefined);
  }

  count({ row, sequence }: SnapshotPlace): number {
    return Number(this.#sql.count.get(row, sequence)?.["parts"]);
  }

  remove(row: number): void {
    this.#sql.remove.run(row);
  }

  /** Removes at most `limit` parts of other snapshots of the document; returns whether there may be more. */
  removeOthers({ row, sequence }: SnapshotPlace, limit: number): boolean {
    return this.#sql.removeOthers.run(row, sequence, limit) === limit;
  }
}

function readPart(row: Row | undefined, place: SnapshotPlace, part: number): StoredPart {
  if (row === undefined) throw missing(place);
  const text = String(row["operations"]);
  const last = Number(row["last"]);
  const isSound = row["part"] === part && sumOf(text, place, part, last) === row["sum"];
  if (!isSound) throw damaged(`document row ${place.row}, part ${part} of the snapshot at sequence ${place.sequence}`);
  return { operations: JSON.parse(text), isLast: last === 1, bytes: text.length };
}

function missing({ row, sequence }: SnapshotPlace): Error {
  return damaged(`document row ${row}, sequence ${sequence}: parts of the snapshot are missing`);
}

/** Also detects swapped parts and a missing last part. */
function sumOf(text: string, { row, sequence }: SnapshotPlace, part: number, last: number): number {
  return checksum(text, row, (sequence * PARTS_MAX + part) * 2 + last);
}

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  const columns = "part, last, operations, sum";
  return {
    put: prepare(
      "INSERT INTO snapshot (document, sequence, part, last, operations, sum) VALUES (?, ?, ?, ?, ?, ?) " +
        "ON CONFLICT (document, sequence, part) DO UPDATE SET last = excluded.last, operations = excluded.operations, sum = excluded.sum",
    ),
    part: prepare(`SELECT ${columns} FROM snapshot WHERE document = ? AND sequence = ? AND part = ?`),
    parts: prepare(`SELECT ${columns} FROM snapshot WHERE document = ? AND sequence = ? ORDER BY part`),
    count: prepare("SELECT count(*) AS parts FROM snapshot WHERE document = ? AND sequence = ?"),
    remove: prepare("DELETE FROM snapshot WHERE document = ?"),
    removeOthers: prepare(
      `DELETE FROM snapshot WHERE id IN (SELECT id FROM snapshot WHERE document = ? AND sequence <> ? ${AT_MOST})`,
    ),
  };
}
