/**
 * The hash that chains journal rows: SHA-256 over the hash of the signed row before and the columns of this row that never
 * change. A changed byte, a missing row or two rows that swapped places break it. SPEC: S87.
 *
 * Each part is preceded by its length, so that no two rows have one text; an absent part has no length.
 */
import { hash } from "node:crypto";

/** What never changes of a row, besides its id. */
export interface SignedColumns {
  readonly createdAt: number;
  readonly topic: string;
  readonly source: string;
  readonly payload: string;
  readonly messageId: string;
  readonly kind: string;
  readonly type: string;
  readonly correlation: string | null;
  readonly causation: string | null;
  readonly timestamp: number | null;
  readonly metadata: string | null;
}

/** The hash before the first row. */
export const GENESIS = "";

export function journalHash(previous: string, id: number, row: SignedColumns): string {
  const text =
    `${previous}|${id}|${row.createdAt}|${row.timestamp ?? ""}|` +
    part(row.messageId) +
    part(row.kind) +
    part(row.type) +
    part(row.topic) +
    part(row.source) +
    part(row.correlation) +
    part(row.causation) +
    part(row.metadata) +
    part(row.payload);
  return hash("sha256", text, "base64url");
}

function part(text: string | null): string {
  return text === null ? "-" : `${text.length}:${text}`;
}
