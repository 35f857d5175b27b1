/**
 * Writes a whole value as the base of a document: into the document's row, or as a snapshot in parts if it is large.
 */
import { SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import { ROW_BASE_BYTES_MAX } from "./change-block.ts";
import { checksum } from "./checksum.ts";
import type { SqliteConnection } from "./connection.ts";
import { PartWriter } from "./snapshot-part.ts";
import { SnapshotTable } from "./snapshot-table.ts";

export class DocumentBase {
  readonly #snapshots: SnapshotTable;
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#snapshots = new SnapshotTable(connection);
    this.#sql = {
      inSnapshot: connection.prepare(
        "UPDATE document SET base_sequence = sequence, base_bytes = ?, patch_bytes = 0, snapshot_sequence = sequence, " +
          "base = NULL, base_sum = NULL, present = 1 WHERE id = ?",
      ),
      inRow: connection.prepare(
        "UPDATE document SET base_sequence = sequence, base_bytes = ?, patch_bytes = 0, snapshot_sequence = 0, " +
          "base = ?, base_sum = ?, present = ? WHERE id = ?",
      ),
    };
  }

  /** `sequence` is that of the document's row. An undefined value leaves a tombstone. */
  put(row: number, sequence: number, value: Json | undefined): void {
    const text = JSON.stringify([value === undefined ? { op: "delete", path: [] } : { op: "set", path: [], value }]);
    const bytes = Buffer.byteLength(text);
    if (value !== undefined && bytes > ROW_BASE_BYTES_MAX) return this.#putParts(row, sequence, value);
    this.#sql.inRow.run(bytes, text, checksum(text, row, sequence), value === undefined ? 0 : 1, row);
  }

  #putParts(row: number, sequence: number, value: Json): void {
    const writer = new PartWriter(value, SNAPSHOT_SLICE_BYTES);
    let bytes = 0;
    for (let part = 0; !writer.isDone; part++) {
      const operations = JSON.stringify(writer.next());
      bytes += Buffer.byteLength(operations);
      this.#snapshots.put({ row, sequence }, part, operations, writer.isDone);
    }
    this.#sql.inSnapshot.run(bytes, row);
  }
}
