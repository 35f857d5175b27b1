/**
 * Decides one commit or append whose batch was refused: locks its space, loads the facts, and asks `decideCommit`. It
 * runs inside the transaction that applies the result. SPEC: S6.
 */
import { DOCUMENT_BYTES_MAX } from "../../limits.ts";
import { equal } from "../../message/equality.ts";
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import type { CommitIdentity, CommitOutcome } from "../commit.ts";
import {
  type CommitFacts,
  decideCommit,
  type OversizedDocument,
  outlivedEntry,
  type StoredCommit,
} from "../commit-rules.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import type { Settlement } from "../journal.ts";
import { repeated } from "../memory/journal-record.ts";
import { jsonBytes } from "../memory/json-copy.ts";
import { applyOperations, PatchError } from "../patch.ts";
import { type Rejection, rejected } from "../rejection.ts";
import { type EncodedEntry, holdsSameContent } from "../sqlite/journal-entry.ts";
import { StoreError } from "../store.ts";
import { isWhole } from "./batch.ts";
import { commitsAfter } from "./change-reads.ts";
import { type LoadedRow, readDocuments } from "./document-reads.ts";
import type { CommitJob } from "./jobs.ts";
import { loadStates, putStates } from "./journal-states.ts";
import type { DatabaseLink, Row } from "./link.ts";

/**
 * Entries after a look at the journal: those to insert, and for each entry its stored id or its place among the new.
 */
export interface ResolvedEntries {
  readonly kind: "resolved";
  readonly fresh: readonly EncodedEntry[];
  readonly places: readonly ({ readonly id: number } | { readonly fresh: number })[];
}

/**
 * The entries that are not in the journal; `also-old`: events behind the horizon too. Rows that a repeated entry
 * changes (a failed one that is done) are changed.
 */
export async function resolveEntries(
  link: DatabaseLink,
  m: string,
  entries: readonly EncodedEntry[],
  nowMs: number,
  takes: "new" | "also-old" = "new",
): Promise<ResolvedEntries | Rejection> {
  if (entries.length === 0) return { kind: "resolved", fresh: [], places: [] };
  const ids = [...new Set(entries.map(({ messageId }) => messageId))];
  const rows = await link.query(`SELECT * FROM ${m}.event_journal WHERE message_id = ANY ($1::text[])`, [ids]);
  const [meta] = await link.query(`SELECT horizon_ms, consumers_version FROM ${m}.meta`);
  const stored = new Map<string, Row>(rows.map((row) => [String(row["message_id"]), row]));
  const horizonMs = takes === "also-old" ? 0 : Number(meta?.["horizon_ms"]);
  const old = outlivedEntry(entries, horizonMs, (id) => stored.has(id));
  if (old !== undefined) return old;
  const fresh: EncodedEntry[] = [];
  const freshAt = new Map<string, number>();
  const places: ({ id: number } | { fresh: number })[] = [];
  for (const entry of entries) {
    const row = stored.get(entry.messageId) ?? rowOfFresh(fresh[freshAt.get(entry.messageId) ?? -1]);
    if (row !== undefined && !holdsSameContent(row as Parameters<typeof holdsSameContent>[0], entry)) {
      return rejected("permanent", "message-exists", `message ${entry.messageId} is in the journal with other content`);
    }
    const known = stored.get(entry.messageId);
    const at = freshAt.get(entry.messageId);
    if (known !== undefined) {
      places.push({ id: Number(known["id"]) });
      await repair(link, m, Number(known["id"]), entry, nowMs);
    } else if (at !== undefined) places.push({ fresh: at });
    else {
      freshAt.set(entry.messageId, fresh.length);
      places.push({ fresh: fresh.length });
      fresh.push(decided(entry, Number(meta?.["consumers_version"])));
    }
  }
  return { kind: "resolved", fresh, places };
}

/** An entry decided by an old version of the consumer table starts as pending. */
function decided(entry: EncodedEntry, version: number): EncodedEntry {
  const { as } = entry;
  if (as.status !== "done" || as.consumers === undefined || as.consumers === version) return entry;
  return { ...entry, as: { status: "pending" } };
}

async function repair(link: DatabaseLink, m: string, id: number, { as }: EncodedEntry, nowMs: number): Promise<void> {
  if (as.status !== "done" && as.status !== "failed") return;
  const [record] = await loadStates(link, m, [id]);
  const state = record && repeated(record.state, as, nowMs);
  if (record === undefined || state === undefined) return;
  record.state = state;
  await putStates(link, m, [record]);
}

function rowOfFresh(entry: EncodedEntry | undefined): Row | undefined {
  if (entry === undefined) return undefined;
  return {
    id: 0,
    topic: entry.topic,
    source: entry.source,
    payload: entry.payload,
    created_at: entry.createdAt,
    message_id: entry.messageId,
    kind: entry.kind,
    type: entry.type,
    correlation_id: entry.correlation,
    causation_id: entry.causation,
    timestamp: entry.timestamp,
    metadata: entry.metadata,
    hash: "",
  };
}

export type CommitDecision =
  | { readonly kind: "apply"; readonly bases: ReadonlyMap<string, Json | undefined>; readonly entries: ResolvedEntries }
  | CommitOutcome;

export async function decideWithFacts(
  link: DatabaseLink,
  m: string,
  job: CommitJob,
  nowMs: number,
  { feedCommits, history }: { readonly feedCommits: number; readonly history: string },
): Promise<CommitDecision> {
  const { request } = job;
  await link.query(`SELECT ${m}.lock_v1(ARRAY[$1::text])`, [request.space]);
  const facts = await loadFacts(link, m, job, feedCommits, history);
  const decision = decideCommit(request, facts);
  if (decision.kind !== "apply") return decision;
  const entries = await resolveEntries(link, m, job.entries, nowMs);
  if (entries.kind === "rejected") return entries;
  // Throws for a patch that does not fit its document.
  checkFit(job, facts.values);
  const bases = new Map([...facts.values].filter(([key]) => facts.measured.has(key)));
  return { kind: "apply", bases, entries };
}

function checkFit({ patches }: CommitJob, values: ReadonlyMap<string, Json | undefined>): void {
  try {
    for (const patch of patches) {
      if (patch.operations.length === 1 && isWhole(patch.operations)) continue;
      applyOperations(values.get(documentKey(patch)), patch.operations);
    }
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    const message = `${error.message}; a write must claim its parent with a reach read`;
    throw new StoreError("STORE_MISUSE", message, { cause: error });
  }
}

interface LoadedFacts extends CommitFacts {
  /** Current values of documents that are changed in part. */
  readonly values: ReadonlyMap<string, Json | undefined>;
  /** Documents whose size was measured: their estimate was too high. */
  readonly measured: Set<string>;
}

async function loadFacts(
  link: DatabaseLink,
  m: string,
  job: CommitJob,
  feedCommits: number,
  history: string,
): Promise<LoadedFacts> {
  const { request, patches } = job;
  const { space, reads, preconditions, settlements, due } = request;
  const refs = new Map<string, DocumentRef>();
  for (const ref of [...reads, ...patches]) refs.set(documentKey(ref), ref);
  for (const condition of preconditions) if (condition.kind === "absent") refs.set(documentKey(condition), condition);
  const partial = new Set(patches.filter(({ operations }) => !isWhole(operations)).map(documentKey));
  const { documents, head } = await readDocuments(link, m, space, [...refs.values()], partial);
  const [place] = await link.query(`SELECT feed_start FROM ${m}.space WHERE name = $1`, [space]);
  const feedStart = Math.max(Number(place?.["feed_start"]), head - feedCommits);
  const known = new Map(documents.flatMap((row) => (row.exists ? [[documentKey(row), row] as const] : [])));
  const written = await writesSince(link, m, job, known, feedStart);
  const made = await madeCommits(link, m, job);
  const [meta] = await link.query(`SELECT horizon_ms, consumers_version FROM ${m}.meta`);
  const dueRows = await dueData(link, m, due);
  const held = await heldClaims(link, m, settlements);
  const members = await movedMembers(link, m, job, feedStart);
  const values = new Map([...partial].map((key) => [key, known.get(key)?.value]));
  const measured = new Set<string>();
  return {
    history,
    values,
    measured,
    commitOf: (identity) => made.get(identityKey(identity)),
    wasMade: (identity) => made.has(identityKey(identity)),
    head: (ref) => known.get(documentKey(ref)),
    writtenSince: (ref, sequence, except) => (sequence < feedStart ? undefined : written(ref, sequence, except)),
    feedStart,
    membersChanged: (claim) => members.get(`${claim.scope}\0${claim.prefix}\0${claim.sequence}`),
    oversized: () => oversized(job, known, measured),
    horizonMs: Number(meta?.["horizon_ms"]),
    consumersVersion: Number(meta?.["consumers_version"]),
    hasDueRow: (kind, key, was) => {
      const data = dueRows.get(`${kind}\0${key}`);
      return data !== undefined && (was === undefined || equal(JSON.parse(data), was));
    },
    lostClaim: (list) => list.find((one) => !held.has(claimKey(one))),
  };
}

function oversized(
  { patches }: CommitJob,
  known: ReadonlyMap<string, LoadedRow>,
  measured: Set<string>,
): OversizedDocument | undefined {
  for (const { scope, id, operations, growth } of patches) {
    if (isWhole(operations)) {
      if (growth > DOCUMENT_BYTES_MAX) return { scope, id, bytes: growth, isEstimate: false };
      continue;
    }
    const key = documentKey({ scope, id });
    const document = known.get(key);
    if (document === undefined || document.bytes + growth <= DOCUMENT_BYTES_MAX) continue;
    const bytes = document.value === undefined ? 0 : jsonBytes(document.value);
    if (bytes + growth > DOCUMENT_BYTES_MAX) return { scope, id, bytes: bytes + growth, isEstimate: false };
    measured.add(key);
  }
  return undefined;
}

function identityKey({ session, localSequence }: CommitIdentity): string {
  return `${session}\0${localSequence}`;
}

async function madeCommits(link: DatabaseLink, m: string, { request }: CommitJob): Promise<Map<string, StoredCommit>> {
  const { session, localSequence, dependsOn, preconditions } = request;
  const identities: CommitIdentity[] = [{ session, localSequence }];
  for (const other of dependsOn) identities.push({ session, localSequence: other });
  for (const one of preconditions) if (one.kind === "originCommitted") identities.push(one);
  return findCommits(link, m, identities);
}

/** Whether the store has each of these commits. */
export async function hasCommits(
  link: DatabaseLink,
  m: string,
  commits: readonly CommitIdentity[],
): Promise<boolean[]> {
  const made = await findCommits(link, m, commits);
  return commits.map((commit) => made.has(identityKey(commit)));
}

/** Commits by identity; also others of the same batches. */
async function findCommits(
  link: DatabaseLink,
  m: string,
  identities: readonly CommitIdentity[],
): Promise<Map<string, StoredCommit>> {
  const asked = JSON.stringify(identities.map((one) => ({ w: one.session, n: one.localSequence })));
  const rows = await link.query(
    `SELECT DISTINCT r.id, r.session, r.base, r.answers FROM json_to_recordset($1) AS x (w text, n bigint)
     JOIN ${m}.made r ON r.session = x.w AND r.first <= x.n AND r.last >= x.n`,
    [asked],
  );
  const made = new Map<string, StoredCommit>();
  for (const { session: of, base, answers } of rows) {
    for (const [local, digest, offset, journalIds] of JSON.parse(String(answers)) as [
      number,
      string,
      number,
      number[],
    ][]) {
      made.set(identityKey({ session: String(of), localSequence: local }), {
        digest,
        sequence: Number(base) + offset,
        journalIds,
      });
    }
  }
  return made;
}

type Writes = (ref: DocumentRef, sequence: number, exceptSession: string) => readonly Path[];

/** The paths written to the documents that were read. */
async function writesSince(
  link: DatabaseLink,
  m: string,
  { request }: CommitJob,
  known: ReadonlyMap<string, LoadedRow>,
  feedStart: number,
): Promise<Writes> {
  let from = Number.POSITIVE_INFINITY;
  for (const read of request.reads) {
    const head = known.get(documentKey(read))?.sequence ?? 0;
    if (head > read.sequence && read.sequence >= feedStart) from = Math.min(from, read.sequence);
  }
  if (from === Number.POSITIVE_INFINITY) return () => [];
  const wanted = new Set(request.reads.map(documentKey));
  const writes = new Map<string, { sequence: number; session: string; paths: Path[] }[]>();
  for (const { sequence, session, patches } of await commitsAfter(link, m, request.space, from)) {
    for (const patch of patches) {
      const key = documentKey(patch);
      if (!wanted.has(key)) continue;
      const list = writes.get(key) ?? [];
      list.push({ sequence, session, paths: patch.operations.map(({ path }) => path) });
      writes.set(key, list);
    }
  }
  return (ref, sequence, except) =>
    (writes.get(documentKey(ref)) ?? []).flatMap((one) =>
      one.sequence > sequence && one.session !== except ? one.paths : [],
    );
}

async function dueData(link: DatabaseLink, m: string, due: CommitJob["request"]["due"]): Promise<Map<string, string>> {
  if (due.length === 0) return new Map();
  const rows = await link.query(
    `SELECT d.kind, d.key, d.data FROM json_to_recordset($1) AS x (k text, y text)
     JOIN ${m}.due d ON d.kind = x.k AND d.key = x.y FOR UPDATE OF d`,
    [JSON.stringify(due.map(({ kind, key }) => ({ k: kind, y: key })))],
  );
  return new Map(rows.map(({ kind, key, data }) => [`${kind}\0${key}`, String(data)]));
}

function claimKey({ id, lease, attempt }: Pick<Settlement, "id" | "lease" | "attempt">): string {
  return `${id} ${lease} ${attempt}`;
}

/** The claims that are still held, locked. */
export async function heldClaims(
  link: DatabaseLink,
  m: string,
  settlements: readonly Settlement[],
): Promise<Set<string>> {
  if (settlements.length === 0) return new Set();
  const rows = await link.query(
    `SELECT id, lease, attempts FROM ${m}.open WHERE id = ANY ($1::bigint[]) AND status = 'processing' ORDER BY id FOR UPDATE`,
    [settlements.map(({ id }) => id)],
  );
  return new Set(
    rows.map(({ id, lease, attempts }) =>
      claimKey({ id: Number(id), lease: Number(lease), attempt: Number(attempts) }),
    ),
  );
}

export function isHeld(held: ReadonlySet<string>, settlement: Settlement): boolean {
  return held.has(claimKey(settlement));
}

async function movedMembers(
  link: DatabaseLink,
  m: string,
  { request }: CommitJob,
  feedStart: number,
): Promise<Map<string, boolean | undefined>> {
  const moved = new Map<string, boolean | undefined>();
  for (const claim of request.preconditions) {
    if (claim.kind !== "members") continue;
    const { scope, prefix, sequence } = claim;
    const [row] = await link.query(
      `SELECT EXISTS (SELECT FROM ${m}.document WHERE space = $1 AND scope = $2 AND id >= $3 AND starts_with(id, $3) AND turned > $4) AS moved`,
      [request.space, scope, prefix, sequence],
    );
    moved.set(`${scope}\0${prefix}\0${sequence}`, sequence < feedStart ? undefined : row?.["moved"] === true);
  }
  return moved;
}
