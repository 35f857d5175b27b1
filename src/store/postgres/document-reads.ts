/**
 * Reads of documents, lists, the change feed and node rows. Each is one statement, so it sees one state of the space.
 */
import type { Json } from "../../message/json.ts";
import { type BasisInput, type DocumentPatch, type LabelWrite, THIS_COMMIT } from "../commit.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { applyOperations } from "../patch.ts";
import { type PathOperation, writeTouchesRead } from "../path-operation.ts";
import type {
  AddressLabels,
  FeedCommit,
  FeedPage,
  ListPage,
  ListRequest,
  LoadedDocument,
  LoadResult,
  RecordedBasis,
} from "../store.ts";
import { commitsAfter } from "./change-reads.ts";
import type { DatabaseLink, Row } from "./link.ts";

export interface LoadedRow extends DocumentRef {
  /** Whether the document ever existed. */
  readonly exists: boolean;
  readonly sequence: number;
  readonly bytes: number;
  readonly value: Json | undefined;
  readonly labels: readonly AddressLabels[];
}

interface ReadResult {
  readonly head: number;
  readonly history: string;
  readonly documents: readonly LoadedRow[];
}

/** Documents as of one moment. `values`: the documents whose values are read; default: all. */
export async function readDocuments(
  link: DatabaseLink,
  m: string,
  space: string,
  refs: readonly DocumentRef[],
  values?: ReadonlySet<string>,
): Promise<ReadResult> {
  const asked = refs.map((ref) => ({
    c: ref.scope,
    i: ref.id,
    v: values === undefined || values.has(documentKey(ref)),
  }));
  const rows = await link.query(
    `SELECT h.head, h.history, x.c AS scope, x.i AS id, d.sequence, d.bytes, d.id IS NOT NULL AS present,
       CASE WHEN x.v THEN d.value END AS value,
       CASE WHEN x.v AND d.patches > 0 THEN (
         SELECT json_agg(p.operations::json ORDER BY p.sequence) FROM ${m}.patch p
         WHERE p.space = $1 AND p.scope = x.c AND p.id = x.i AND p.sequence > d.base_sequence) END AS operations,
       (SELECT json_agg(json_build_array(l.path::json, l.labels::json) ORDER BY l.path) FROM ${m}.label l
         WHERE l.space = $1 AND l.scope = x.c AND l.id = x.i) AS labels
     FROM (SELECT ${m}.head_v1($1) AS head, history FROM ${m}.meta) h LEFT JOIN json_to_recordset($2) AS x (c text, i text, v boolean) ON true
     LEFT JOIN ${m}.document d ON d.space = $1 AND d.scope = x.c AND d.id = x.i`,
    [space, JSON.stringify(asked)],
    `${m} read documents`,
  );
  const head = Number(rows[0]?.["head"] ?? 0);
  const byKey = new Map(rows.filter(({ id }) => id !== null).map((row) => [documentKey(refOf(row)), row]));
  const history = String(rows[0]?.["history"] ?? "");
  return { head, history, documents: refs.map((ref) => loadedRow(ref, byKey.get(documentKey(ref)))) };
}

function refOf(row: Row): DocumentRef {
  return { scope: String(row["scope"]), id: String(row["id"]) };
}

function loadedRow({ scope, id }: DocumentRef, row: Row | undefined): LoadedRow {
  const exists = row?.["present"] === true;
  return {
    scope,
    id,
    exists,
    sequence: exists ? Number(row["sequence"]) : 0,
    bytes: exists ? Number(row["bytes"]) : 0,
    value: row === undefined ? undefined : documentValue(row),
    labels: labelsOf(row),
  };
}

export function documentValue(row: Row): Json | undefined {
  const text = row["value"];
  if (typeof text !== "string") return undefined;
  const base = JSON.parse(text) as Json;
  const patches = row["operations"] as readonly PathOperation[][] | null;
  return patches === null || patches === undefined ? base : applyOperations(base, patches.flat());
}

function labelsOf(row: Row | undefined): AddressLabels[] {
  const labels = row?.["labels"] as [string[], string[]][] | null | undefined;
  return labels ? labels.map(([path, of]) => ({ path, labels: of })) : [];
}

export async function load(
  link: DatabaseLink,
  m: string,
  space: string,
  refs: readonly DocumentRef[],
): Promise<LoadResult> {
  const { head, history, documents } = await readDocuments(link, m, space, refs);
  const loaded = documents.map(
    ({ scope, id, value, sequence, labels }): LoadedDocument => ({ scope, id, value, sequence, labels }),
  );
  if (refs.length > 0) return { sequence: head, history, documents: loaded };
  const [any] = await link.query(`SELECT EXISTS (SELECT FROM ${m}.label) AS labelled`);
  return { sequence: head, history, documents: loaded, ...(any?.["labelled"] === true ? { isLabelled: true } : {}) };
}

export async function list(link: DatabaseLink, m: string, space: string, request: ListRequest): Promise<ListPage> {
  const { scope, prefix, after = null, limit } = request;
  const rows = await link.query(
    `SELECT h.head, d.id, d.sequence, (SELECT json_agg(json_build_array(l.path::json, l.labels::json) ORDER BY l.path)
       FROM ${m}.label l WHERE l.space = $1 AND l.scope = $2 AND l.id = d.id) AS labels
     FROM (SELECT ${m}.head_v1($1) AS head) h LEFT JOIN LATERAL (
       SELECT id, sequence FROM ${m}.document WHERE space = $1 AND scope = $2 AND id >= $3 AND starts_with(id, $3)
         AND ($4::text IS NULL OR id > $4) AND value IS NOT NULL
       ORDER BY id LIMIT $5
     ) d ON true ORDER BY d.id`,
    [space, scope, prefix, after, limit],
    `${m} list`,
  );
  const found = rows.filter(({ id }) => id !== null);
  return {
    sequence: Number(rows[0]?.["head"] ?? 0),
    documents: found.map((row) => ({
      id: String(row["id"]),
      sequence: Number(row["sequence"]),
      labels: labelsOf(row),
    })),
  };
}

export async function changesSince(
  link: DatabaseLink,
  m: string,
  space: string,
  sequence: number,
  limit: number,
  feedCommits: number,
): Promise<FeedPage> {
  const rows = await link.query(
    `SELECT h.head, h.history, coalesce((SELECT feed_start FROM ${m}.space WHERE name = $1), 0) AS feed_start, c.first, c.commits
     FROM (SELECT ${m}.head_v1($1) AS head, history FROM ${m}.meta) h LEFT JOIN LATERAL (
       SELECT last, first, commits FROM ${m}.change WHERE space = $1 AND last > $2 ORDER BY last LIMIT $3
     ) c ON true ORDER BY c.last`,
    [space, sequence, Math.max(limit, 1)],
    `${m} feed`,
  );
  const head = Number(rows[0]?.["head"] ?? 0);
  const start = Math.max(Number(rows[0]?.["feed_start"] ?? 0), head - feedCommits);
  const history = String(rows[0]?.["history"] ?? "");
  if (sequence < start) return { commits: [], head, history, gap: true };
  const commits: FeedCommit[] = [];
  for (const { first, commits: text } of rows) {
    if (text === null) continue;
    const [session, list] = JSON.parse(String(text)) as [string, [number, DocumentPatch[], LabelWrite[]][]];
    for (const [at, [localSequence, patches, labels]] of list.entries()) {
      const of = Number(first) + at;
      if (of > sequence && commits.length < limit)
        commits.push({ sequence: of, session, localSequence, patches, labels });
    }
  }
  return { commits, head, history, gap: false };
}

export async function basis(
  link: DatabaseLink,
  m: string,
  space: string,
  nodes: readonly string[],
  feedCommits: number,
): Promise<readonly RecordedBasis[]> {
  const rows = await link.query(
    `SELECT name, fingerprint, settings, output, inputs, sequence FROM ${m}.node WHERE space = $1 AND name = ANY ($2::text[])`,
    [space, [...nodes]],
  );
  const byName = new Map(rows.map((row) => [String(row["name"]), row]));
  const inputsOf = (row: Row) =>
    (JSON.parse(String(row["inputs"])) as BasisInput[]).map((input) =>
      input.sequence === THIS_COMMIT ? { ...input, sequence: Number(row["sequence"]) } : input,
    );
  const all = rows.flatMap(inputsOf);
  const refs = new Map(all.map((input) => [documentKey(input), input as DocumentRef]));
  const { documents, head } = await readDocuments(link, m, space, [...refs.values()], new Set());
  const [place] = await link.query(`SELECT feed_start FROM ${m}.space WHERE name = $1`, [space]);
  const feedStart = Math.max(Number(place?.["feed_start"] ?? 0), head - feedCommits);
  const heads = new Map(documents.map((row) => [documentKey(row), row]));
  const behind = all.filter(
    (input) => (heads.get(documentKey(input))?.sequence ?? 0) > input.sequence && input.sequence >= feedStart,
  );
  const from = Math.min(...behind.map(({ sequence }) => sequence));
  const log = behind.length === 0 ? [] : await commitsAfter(link, m, space, from);
  const hasMoved = (input: BasisInput) => {
    const document = heads.get(documentKey(input));
    if (document !== undefined && document.labels.length > 0) return true;
    if ((document?.sequence ?? 0) <= input.sequence) return false;
    if (input.sequence < feedStart) return true;
    return log.some(
      ({ sequence, patches }) =>
        sequence > input.sequence &&
        patches.some(
          (patch) =>
            patch.id === input.id &&
            patch.scope === input.scope &&
            patch.operations.some(({ path: written }) =>
              input.reads.some(({ path, depth }) => writeTouchesRead(written, path, depth)),
            ),
        ),
    );
  };
  return nodes.flatMap((node) => {
    const row = byName.get(node);
    if (row === undefined) return [];
    const { output, settings } = row;
    const outputAt =
      output === null ? undefined : Number(output) === THIS_COMMIT ? Number(row["sequence"]) : Number(output);
    return [
      {
        node,
        fingerprint: String(row["fingerprint"]),
        ...(settings === null ? {} : { settings: JSON.parse(String(settings)) as Json }),
        ...(outputAt === undefined ? {} : { output: outputAt }),
        inputs: inputsOf(row).map((input) => ({ ...input, moved: hasMoved(input) })),
      },
    ];
  });
}
