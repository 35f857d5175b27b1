/**
 * A commit in SQLite: encoded before the transaction, decided inside it by the common rules, written as a whole. SPEC:
 * S4-S12.
 *
 * After the decision only the journal can still refuse (duplicate message id), so it is written first. The later parts
 * cannot be refused; if one fails, the writer rolls all of it back.
 */
import type { Host } from "../../host/host.ts";
import { ADMITTED, type CommitOutcome, type CommitRequest, type DocumentPatch, type Precondition } from "../commit.ts";
import { decideCommit } from "../commit-rules.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { presenceAfter } from "../document-list.ts";
import type { Settlement } from "../journal.ts";
import type { PathOperation } from "../path-operation.ts";
import { NO_RESULT_LEFT } from "../receipt.ts";
import type { Rejection } from "../rejection.ts";
import { checkCommit, checkPreconditions, checkSettlements } from "../request-check.ts";
import { NONE, withOne } from "../small-list.ts";
import { type EncodedBasis, encodeBasis } from "./basis-table.ts";
import type { BatchChanges } from "./batch-changes.ts";
import { ROW_BASE_BYTES_MAX } from "./change-block.ts";
import { SqliteCommitFacts } from "./commit-facts.ts";
import type { SqliteConnection } from "./connection.ts";
import type { EncodedPatch } from "./document-table.ts";
import { type EncodedDueChange, encodeDueChange, ownDueChange } from "./due-table.ts";
import { type Encoded, type EncodedEntry, encodeEntries } from "./journal-entry.ts";
import { jsonText } from "./json-text.ts";
import { type EncodedLabelWrite, encodeLabelWrite, labelWritesText } from "./label-table.ts";
import type { ResolvedOptions } from "./options.ts";
import type { SpaceRow } from "./space-table.ts";
import type { Tables } from "./tables.ts";
import { runWithStatements } from "./user-statements.ts";

/** A request as text and columns: immutable, with a known size. */
export interface EncodedCommit {
  readonly kind: "commit";
  readonly request: CommitRequest;
  readonly patches: readonly EncodedPatch[];
  /** Patches that create a small document that must be absent. */
  readonly births: readonly EncodedPatch[];
  readonly entries: readonly EncodedEntry[];
  readonly due: readonly EncodedDueChange[];
  readonly basis: readonly EncodedBasis[];
  readonly labels: readonly EncodedLabelWrite[];
  /** The label writes in the form of the feed; undefined if there are none. */
  readonly labelsText: string | undefined;
  /** Whether the space's sequence changes. */
  readonly moves: boolean;
  readonly bytes: number;
}

/** Throws for data that no backend could hold; returns a rejection if it is too large. */
export function encodeCommit(request: CommitRequest, host: Host, payloadBytesMax: number): EncodedCommit | Rejection {
  checkGiven(request);
  const { entries: given } = request;
  const entries = given.length === 0 ? NO_ENTRIES : encodeEntries(given, host.now(), payloadBytesMax);
  if (entries.kind === "rejected") return entries;
  const patches = onePerDocument(request.patches).map((patch) => encodePatch(patch, request));
  let births: readonly EncodedPatch[] = NONE;
  let { bytes } = entries;
  for (const patch of patches) {
    bytes += patch.bytes;
    if (patch.isBirth) births = withOne(births, patch);
  }
  return {
    kind: "commit",
    request: ownCopy(request),
    patches,
    births,
    entries: entries.entries,
    due: each(request.due, encodeDueChange),
    basis: each(request.basis, encodeBasis),
    labels: each(request.labels, encodeLabelWrite),
    labelsText: labelWritesText(request.labels),
    moves: patches.length > 0 || request.labels.length > 0,
    bytes,
  };
}

const NO_ENTRIES: Encoded = { kind: "encoded", entries: NONE, bytes: 0 };

/** Maps a list. Most lists of a commit are empty. */
function each<Item, Made>(list: readonly Item[], make: (item: Item) => Made): readonly Made[] {
  return list.length === 0 ? NONE : list.map(make);
}

/** The precondition that requires the document to be absent. */
function guardOf({ preconditions }: CommitRequest, ref: DocumentRef): (Precondition & { kind: "absent" }) | undefined {
  for (const one of preconditions) if (one.kind === "absent" && isSame(one, ref)) return one;
  return undefined;
}

/** Requests of a replica of this process are checked already, except for preconditions added by other code. */
function checkGiven(request: CommitRequest): void {
  if (request.admitted === ADMITTED) checkPreconditions(request.preconditions);
  else checkCommit(request);
}

/** Copies the lists used for the decision, because the caller may change them. Values are in the encoded parts. */
function ownCopy(request: CommitRequest): CommitRequest {
  if (request.admitted === ADMITTED) {
    checkSettlements(request.settlements);
    return request;
  }
  return {
    ...request,
    reads: request.reads.map((read) => ({ ...read, path: [...read.path] })),
    preconditions: request.preconditions.map((condition) => ({ ...condition })),
    dependsOn: [...request.dependsOn],
    settlements: request.settlements.map(ownSettlement),
    due: request.due.map(ownDueChange),
    basisRemoved: [...request.basisRemoved],
  };
}

/** Copies a settlement; throws for text that no backend could hold. */
export function ownSettlement(settlement: Settlement): Settlement {
  checkSettlements([settlement]);
  const { deliveries, outcome } = settlement;
  const own = { ...settlement, outcome: { ...outcome } };
  return deliveries === undefined ? own : { ...own, deliveries: deliveries.map((delivery) => ({ ...delivery })) };
}

/** Merges several patches of one document: the patches of a commit are applied in order anyway. */
function onePerDocument(patches: readonly DocumentPatch[]): readonly DocumentPatch[] {
  if (patches.length < 2 || (patches.length === 2 && !isSame(patches[0]!, patches[1]!))) return patches;
  const byKey = new Map<string, DocumentPatch>();
  for (const patch of patches) {
    const key = documentKey(patch);
    const earlier = byKey.get(key);
    byKey.set(key, earlier ? { ...earlier, operations: [...earlier.operations, ...patch.operations] } : patch);
  }
  return byKey.size === patches.length ? patches : [...byKey.values()];
}

function isSame(a: DocumentRef, b: DocumentRef): boolean {
  return a.id === b.id && a.scope === b.scope;
}

function encodePatch({ scope, id, operations }: DocumentPatch, request: CommitRequest): EncodedPatch {
  const { text, bytes, isBase, leaves } = operations === NO_RESULT_LEFT ? NO_RESULT : written(operations);
  const guard = guardOf(request, { scope, id });
  const isBirth = guard !== undefined && isBase && bytes <= ROW_BASE_BYTES_MAX;
  return { scope, id, text, bytes, isBase, leaves, isBirth, madeAtMs: guard?.madeAtMs ?? null };
}

function written(operations: readonly PathOperation[]): Pick<EncodedPatch, "text" | "bytes" | "isBase" | "leaves"> {
  const text = jsonText("a path operation", operations);
  const [isBase, leaves] = [setsWhole(operations[0]), presenceAfter(operations)];
  return { text, bytes: Buffer.byteLength(text), isBase, leaves };
}

/** Encoded once: most receipts have this value. */
const NO_RESULT = written(NO_RESULT_LEFT);

function setsWhole(operation: PathOperation | undefined): boolean {
  return operation !== undefined && operation.path.length === 0 && operation.op !== "splice";
}

export class CommitWriter {
  readonly host: Host;
  readonly #connection: SqliteConnection;
  readonly #tables: Tables;
  readonly #news: BatchChanges;
  readonly #facts: SqliteCommitFacts;

  constructor(connection: SqliteConnection, tables: Tables, news: BatchChanges, { host, tuning }: ResolvedOptions) {
    this.#connection = connection;
    this.host = host;
    this.#tables = tables;
    this.#news = news;
    this.#facts = new SqliteCommitFacts(tables, tuning.feedCommits);
  }

  write(commit: EncodedCommit): CommitOutcome {
    const outcome = this.#decideAndWrite(commit, this.host.now());
    this.#tables.documents.endBirths(outcome.kind === "committed");
    this.#news.commit(commit.request, commit.moves, outcome);
    return outcome;
  }

  #decideAndWrite(commit: EncodedCommit, nowMs: number): CommitOutcome {
    const { request } = commit;
    // If no later check can refuse, settling also tests whether the claim is held: one statement less.
    const { statements } = request;
    const settlesFirst = request.settlements.length === 1 && commit.entries.length === 0 && statements === undefined;
    const decision = decideCommit(request, this.#facts.turnTo(commit, settlesFirst, nowMs));
    if (decision.kind !== "apply") return decision;
    if (statements === undefined) return this.#write(commit, settlesFirst, nowMs);
    return runWithStatements(this.#connection, statements, () => this.#write(commit, settlesFirst, nowMs));
  }

  #write(commit: EncodedCommit, isSettled: boolean, nowMs: number): CommitOutcome {
    const { request, moves } = commit;
    const appended = this.#tables.append(commit.entries);
    if (appended.kind === "rejected") return appended;
    const journalIds = appended.ids;

    const space = this.#tables.spaces.make(request.space);
    if (moves) this.#writeDocuments(space, commit);
    this.#writeBasis(space, commit);
    if (!isSettled) for (const settlement of request.settlements) this.#tables.journal.settle(settlement, nowMs);
    for (const change of commit.due) this.#tables.due.change(change);
    const { session, localSequence, digest } = request;
    const { id, sequence } = space;
    this.#tables.commits.add({ session, localSequence, digest, sequence, journalIds, space: id, moves });
    return { kind: "committed", sequence, journalIds, replayed: false };
  }

  #writeDocuments(space: SpaceRow, { request, patches, labels, labelsText }: EncodedCommit): void {
    const { spaces, commits, documents } = this.#tables;
    spaces.move(space);
    const session = commits.sessionId(request.session);
    const { localSequence } = request;
    const line = { sequence: space.sequence, session, localSequence, labels: labelsText };
    documents.changes.begin(space.id, line, patches);
    for (const patch of patches) documents.write(space, patch, session);
    for (const write of labels) this.#tables.labels.write(documents.rowOf(space, write), write);
  }

  #writeBasis(space: SpaceRow, { request, basis }: EncodedCommit): void {
    for (const node of request.basisRemoved) this.#tables.basis.remove(space, node);
    for (const one of basis)
      this.#tables.basis.write(space, one, (input) => this.#tables.documents.rowOf(space, input));
  }
}
