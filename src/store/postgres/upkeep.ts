/**
 * Work after batches, as jobs of the writer: documents with many patches get a new base, the change log is shortened,
 * and old answers of commits are removed.
 */
import { COMMITS_REMEMBERED_MAX } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import { documentValue } from "./document-reads.ts";
import type { DatabaseLink, Row } from "./link.ts";

/** Commits of a space after which its change log is shortened. */
export const TRIM_COMMITS = 1_000;

/** Replaces a document's base and patches by its value. Its sequence stays. */
export async function foldDocument(
  link: DatabaseLink,
  m: string,
  [space, scope, id]: readonly [string, string, string],
): Promise<void> {
  await link.query(`SELECT ${m}.lock_v1(ARRAY[$1::text])`, [space]);
  const [row] = await link.query(
    `SELECT d.*, (SELECT json_agg(p.operations::json ORDER BY p.sequence) FROM ${m}.patch p
       WHERE p.space = $1 AND p.scope = $2 AND p.id = $3 AND p.sequence > d.base_sequence) AS operations
     FROM ${m}.document d WHERE d.space = $1 AND d.scope = $2 AND d.id = $3`,
    [space, scope, id],
  );
  if (row === undefined || Number(row["patches"]) === 0) return;
  const value = documentValue(row as Row);
  const text = JSON.stringify(value as Json);
  await link.query(
    `UPDATE ${m}.document SET value = $4, base_sequence = sequence, base_bytes = $5, bytes = $5, patches = 0
     WHERE space = $1 AND scope = $2 AND id = $3`,
    [space, scope, id, text, Buffer.byteLength(text)],
  );
  await link.query(`DELETE FROM ${m}.patch WHERE space = $1 AND scope = $2 AND id = $3`, [space, scope, id]);
}

/** Removes commits that the feed no longer reaches, and patches below the base of their document. */
export async function trimSpace(link: DatabaseLink, m: string, space: string, feedCommits: number): Promise<void> {
  await link.query(`SELECT ${m}.lock_v1(ARRAY[$1::text])`, [space]);
  await link.query(
    `WITH gone AS (
       DELETE FROM ${m}.change WHERE space = $1 AND last <= ${m}.head_v1($1) - $2 AND last < ${m}.head_v1($1) RETURNING last
     ) UPDATE ${m}.space SET feed_start = greatest(feed_start, (SELECT max(last) FROM gone)) WHERE name = $1`,
    [space, feedCommits],
  );
  await link.query(
    `DELETE FROM ${m}.patch p USING ${m}.document d WHERE p.space = $1 AND d.space = p.space AND d.scope = p.scope AND d.id = p.id
     AND p.sequence <= d.base_sequence`,
    [space],
  );
  await link.query(`DELETE FROM ${m}.made WHERE id <= (SELECT max(id) FROM ${m}.made) - $1`, [COMMITS_REMEMBERED_MAX]);
}
