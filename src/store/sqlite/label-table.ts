/**
 * The taint labels of addresses. SPEC: S17.
 */
import type { LabelWrite } from "../commit.ts";
import type { DocumentRef } from "../document.ts";
import { checkRef } from "../request-check.ts";
import type { LoadedDocument } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { jsonText } from "./json-text.ts";

/** A label write as text; an empty one removes the labels. */
export interface EncodedLabelWrite extends DocumentRef {
  readonly path: string;
  readonly labels: string | undefined;
}

export function encodeLabelWrite(write: LabelWrite): EncodedLabelWrite {
  checkRef(write);
  const { scope, id, path, labels } = write;
  const text = labels.length === 0 ? undefined : jsonText("a label", labels);
  return { scope, id, path: jsonText("a path", path), labels: text };
}

/** Undefined if there are none. */
export function labelWritesText(writes: readonly LabelWrite[]): string | undefined {
  if (writes.length === 0) return undefined;
  const plain = writes.map(({ scope, id, path, labels }) => ({ scope, id, path, labels }));
  return jsonText("a label write", plain);
}

export class LabelTable {
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = {
      put: connection.prepare("REPLACE INTO label (document, path, labels) VALUES (?, ?, ?)"),
      remove: connection.prepare("DELETE FROM label WHERE document = ? AND path = ?"),
      removeAll: connection.prepare("DELETE FROM label WHERE document = ?"),
      any: connection.prepare("SELECT 1 FROM label LIMIT 1"),
      of: connection.prepare("SELECT path, labels FROM label WHERE document = ?"),
    };
  }

  write(document: number, { path, labels }: EncodedLabelWrite): void {
    if (labels === undefined) this.#sql.remove.run(document, path);
    else this.#sql.put.run(document, path, labels);
  }

  removeAll(document: number): void {
    this.#sql.removeAll.run(document);
  }

  /** Whether the store has any label. */
  get isAny(): boolean {
    return this.#sql.any.get() !== undefined;
  }

  of(document: number): LoadedDocument["labels"] {
    return this.#sql.of.all(document).map(({ path, labels }) => ({
      path: JSON.parse(String(path)),
      labels: JSON.parse(String(labels)),
    }));
  }
}
