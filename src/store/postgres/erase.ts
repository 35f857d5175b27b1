/**
 * Erases the data of a subject in one transaction, as `sqlite/erase.ts` does. The write-ahead log and backups of the
 * server are the operator's: `docs/how-to/many-machines.md`. SPEC: S134-S137, S145.
 */
import { ERASE_LEFT_MAX } from "../../limits.ts";
import { ERASED_RESULT, type Erased, type EraseRequest, mentions } from "../erase.ts";
import { eventOf, isReceiptName } from "../receipt-name.ts";
import { erasedDigest, tombstoneOf } from "../sqlite/erased-text.ts";
import { documentValue } from "./document-reads.ts";
import { removeDocuments } from "./journal-work.ts";
import type { DatabaseLink, Row } from "./link.ts";

interface Found {
  readonly rows: readonly Row[];
  readonly asking: Row | undefined;
  readonly messages: ReadonlySet<string>;
  readonly unsettled: number;
}

export async function eraseSubject(link: DatabaseLink, m: string, request: EraseRequest): Promise<Erased> {
  const { subject, apply } = request;
  if (apply) await link.query(`SELECT ${m}.lock_v1(ARRAY(SELECT name FROM ${m}.space))`);
  const found = await findRows(link, m, request);
  const documents = await link.query(
    `SELECT t.*, CASE WHEN t.patches > 0 THEN (SELECT json_agg(p.operations::json ORDER BY p.sequence) FROM ${m}.patch p
       WHERE p.space = t.space AND p.scope = t.scope AND p.id = t.id AND p.sequence > t.base_sequence) END AS operations
     FROM ${m}.document t ORDER BY space, scope, id`,
  );
  const [named, receipts, left]: [Row[], Row[], string[]] = [[], [], []];
  for (const row of documents) {
    const [id, scope] = [String(row["id"]), String(row["scope"])];
    const isInValue = () => {
      const value = documentValue(row);
      return value !== undefined && mentions(JSON.stringify(value), subject);
    };
    if (isReceiptName(id)) {
      if (isOfErased(id, found.messages) || isInValue()) receipts.push(row);
    } else if (mentions(id, subject) || mentions(scope, subject)) named.push(row);
    else if (left.length < ERASE_LEFT_MAX && isInValue()) left.push(`${row["space"]}/${scope}/${id}`);
  }
  const dueRows = await link.query(`SELECT key, data FROM ${m}.due`);
  const due = dueRows.filter(
    ({ key, data }) => mentions(String(key), subject) || mentions(String(data), subject),
  ).length;
  if (apply) await applyErasure(link, m, found, documents, named, receipts);
  return {
    documents: named.length,
    rows: found.rows.length,
    receipts: receipts.length,
    left: { unsettled: found.unsettled, due, documents: left },
  };
}

async function findRows(link: DatabaseLink, m: string, { subject, askedBy }: EraseRequest): Promise<Found> {
  const all = await link.query(
    `SELECT id, message_id, causation_id, status, payload, metadata, correlation_id, error, reason, deliveries
     FROM ${m}.event_journal ORDER BY id`,
  );
  const rows: Row[] = [];
  const messages = new Set<string>();
  let asking: Row | undefined;
  let unsettled = 0;
  for (const row of all) {
    const isCaused = row["causation_id"] !== null && messages.has(String(row["causation_id"]));
    const texts = ["payload", "metadata", "correlation_id", "error", "reason"].map((column) => row[column]);
    if (!isCaused && !texts.some((text) => text !== null && mentions(String(text), subject))) continue;
    if (askedBy !== undefined && row["message_id"] === askedBy) asking = row;
    else if (row["status"] !== "done" && row["status"] !== "failed") unsettled++;
    else {
      messages.add(String(row["message_id"]));
      if (erasedDigest(String(row["payload"])) === undefined) rows.push(row);
    }
  }
  return { rows, asking, messages, unsettled };
}

function isOfErased(name: string, messages: ReadonlySet<string>): boolean {
  const event = eventOf(name);
  return messages.has(event === undefined ? name.slice(name.indexOf("/") + 1) : event.id);
}

async function applyErasure(
  link: DatabaseLink,
  m: string,
  found: Found,
  documents: readonly Row[],
  named: readonly Row[],
  receipts: readonly Row[],
): Promise<void> {
  const rows = found.asking === undefined ? found.rows : [...found.rows, found.asking];
  for (const { id, payload, metadata } of rows) {
    await link.query(`UPDATE ${m}.journal SET payload = $2, metadata = $3 WHERE id = $1`, [
      Number(id),
      tombstoneOf(String(payload)),
      metadata === null ? null : tombstoneOf(String(metadata)),
    ]);
    for (const table of ["open", "done"]) {
      await link.query(
        `UPDATE ${m}.${table} SET error = CASE WHEN error IS NULL THEN NULL ELSE 'erased' END,
           deliveries = (SELECT jsonb_object_agg(key, CASE WHEN value ? 'error' THEN value || '{"error": "erased"}' ELSE value END)
             FROM jsonb_each(deliveries)) WHERE id = $1`,
        [Number(id)],
      );
    }
    await link.query(`UPDATE ${m}.done SET reason = 'erased' WHERE id = $1 AND reason IS NOT NULL`, [Number(id)]);
  }
  const gone = new Set([...named]);
  const erased = new Set([...receipts]);
  for (const row of documents) {
    if (gone.has(row) || (Number(row["patches"]) === 0 && !erased.has(row))) continue;
    const value = erased.has(row) ? ERASED_RESULT : documentValue(row);
    const text = value === undefined ? null : JSON.stringify(value);
    await link.query(
      `UPDATE ${m}.document SET value = $4, base_sequence = sequence, base_bytes = $5, bytes = $5, patches = 0
       WHERE space = $1 AND scope = $2 AND id = $3`,
      [
        String(row["space"]),
        String(row["scope"]),
        String(row["id"]),
        text,
        text === null ? 0 : Buffer.byteLength(text),
      ],
    );
  }
  await link.query(`DELETE FROM ${m}.patch`);
  await removeDocuments(
    link,
    m,
    named.map((row) => ({ s: String(row["space"]), c: String(row["scope"]), i: String(row["id"]) })),
  );
  await link.query(`UPDATE ${m}.space SET head = ${m}.head_v1(name) + 1`);
  await link.query(`UPDATE ${m}.space SET feed_start = head`);
  await link.query(`DELETE FROM ${m}.change`);
}
