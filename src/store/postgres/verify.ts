/** Verifies the hash chains of the journal, evaluates every document, and parses the change log. SPEC: S26, S87. */
import { thrownText } from "../../message/error-data.ts";
import { Findings, PROBLEMS_MAX } from "../findings.ts";
import type { VerifyReport } from "../journal.ts";
import { GENESIS, RowHasher, type SignedColumns, UNKNOWN_HASH } from "../sqlite/journal-hash.ts";
import { documentValue } from "./document-reads.ts";
import type { DatabaseLink, Row } from "./link.ts";

const STEP_ROWS = 1_000;

export async function verifyStore(link: DatabaseLink, m: string): Promise<VerifyReport> {
  // One state of the whole store, while kernels go on writing.
  await link.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
  try {
    return await scrub(link, m);
  } finally {
    if (link.isOpen) await link.query("COMMIT");
  }
}

/** The same inside the caller's transaction. */
export async function scrub(link: DatabaseLink, m: string): Promise<VerifyReport> {
  const of = new Scrub(link, m);
  await of.journal();
  await of.documents();
  await of.changes();
  return of.report();
}

class Scrub extends Findings {
  readonly #link: DatabaseLink;
  readonly #m: string;

  constructor(link: DatabaseLink, m: string) {
    super();
    this.#link = link;
    this.#m = m;
  }

  async journal(): Promise<void> {
    const gaps = await this.#link.query(
      `SELECT writer, first, last, hash FROM ${this.#m}.journal_gap ORDER BY writer, first`,
    );
    const gapAt = new Map(gaps.map((gap) => [`${gap["writer"]} ${gap["first"]}`, gap]));
    const hasher = new RowHasher();
    let [writer, place, hash] = [0, 0, GENESIS];
    const passGaps = () => {
      for (
        let gap = gapAt.get(`${writer} ${place + 1}`);
        gap !== undefined;
        gap = gapAt.get(`${writer} ${place + 1}`)
      ) {
        place = Number(gap["last"]);
        hash = String(gap["hash"]);
      }
    };
    for await (const row of this.#walk("journal", "writer, place")) {
      this.rowCount++;
      if (row["hash"] === null) {
        this.unsignedCount++;
        continue;
      }
      if (Number(row["writer"]) !== writer) [writer, place, hash] = [Number(row["writer"]), 0, GENESIS];
      passGaps();
      const [id, at] = [Number(row["id"]), Number(row["place"])];
      if (at !== place + 1) this.note(`Journal rows ${place + 1} to ${at - 1} of writer ${writer} are missing.`);
      else if (hash !== UNKNOWN_HASH && hasher.hash(hash, id, signed(row)) !== row["hash"])
        this.note(`Journal row ${id} was changed: its hash does not fit.`);
      place = at;
      hash = String(row["hash"]);
    }
  }

  async documents(): Promise<void> {
    const m = this.#m;
    const columns = `t.*, CASE WHEN t.patches > 0 THEN (SELECT json_agg(p.operations::json ORDER BY p.sequence) FROM ${m}.patch p
      WHERE p.space = t.space AND p.scope = t.scope AND p.id = t.id AND p.sequence > t.base_sequence) END AS operations`;
    for await (const row of this.#walk("document", "space, scope, id", columns)) {
      this.documentCount++;
      try {
        documentValue(row);
      } catch (error) {
        this.note(`Document ${row["space"]}/${row["scope"]}/${row["id"]} cannot be read: ${thrownText(error)}.`);
      }
    }
  }

  async changes(): Promise<void> {
    const rows = await this.#link.query(
      `SELECT space, first, previous FROM (
         SELECT space, first, lag(last) OVER (PARTITION BY space ORDER BY last) AS previous FROM ${this.#m}.change
       ) c WHERE first <> previous + 1 LIMIT $1`,
      [PROBLEMS_MAX],
    );
    for (const { space, first, previous } of rows)
      this.note(
        `The change log of space ${space} has no commits from ${Number(previous) + 1} to ${Number(first) - 1}.`,
      );
  }

  async *#walk(table: string, order: string, columns = "t.*"): AsyncGenerator<Row> {
    await this.#link.query(
      `DECLARE walk NO SCROLL CURSOR FOR SELECT ${columns} FROM ${this.#m}.${table} t ORDER BY ${order}`,
    );
    for (;;) {
      const rows = await this.#link.query(`FETCH ${STEP_ROWS} FROM walk`);
      if (rows.length === 0) break;
      yield* rows;
    }
    await this.#link.query("CLOSE walk");
  }
}

function signed(row: Row): SignedColumns {
  const text = (column: string) => (row[column] === null ? null : String(row[column]));
  return {
    createdAt: Number(row["created_at"]),
    topic: String(row["topic"]),
    source: String(row["source"]),
    payload: String(row["payload"]),
    messageId: String(row["message_id"]),
    kind: String(row["kind"]),
    type: String(row["type"]),
    correlation: text("correlation_id"),
    causation: text("causation_id"),
    timestamp: row["timestamp"] === null ? null : Number(row["timestamp"]),
    metadata: text("metadata"),
  };
}
