/**
 * Converts a transaction into the request for a backend: dated reads, pending commits it depends on, and patches.
 */
import { placeText } from "../message/path.ts";
import {
  ADMITTED,
  type CommitIdentity,
  type CommitRequest,
  type DocumentPatch,
  NOT_HERE,
  type Precondition,
  type ReadClaim,
} from "./commit.ts";
import { PayloadDigest } from "./payload-digest.ts";
import type { DocumentShare } from "./pending-commit.ts";
import { Foundation } from "./pending-index.ts";
import type { Receipt } from "./receipt.ts";
import { type Rejection, rejected } from "./rejection.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { NONE } from "./small-list.ts";
import type { CommitExtras, DocumentPart } from "./transaction.ts";

/** The sequence of the replica's copy of a document. */
export function sequenceSeen(document: ReplicaDocument, position: number): number {
  return document.isKnown ? Math.max(document.loadedAt, position) : NOT_HERE;
}

/** The reads of a finished transaction, with their sequences. With one document, the log's own list is used. */
export function readClaims(parts: readonly DocumentPart[], position: number): readonly ReadClaim[] {
  for (const { document, log } of parts) {
    const sequence = sequenceSeen(document, position);
    for (const read of log.reads) read.sequence = sequence;
  }
  return parts.length === 1 ? (parts[0] as DocumentPart).log.reads : parts.flatMap(({ log }) => log.reads);
}

/** Local sequences of the pending commits that the transaction read from or writes over. */
export function standsOn(parts: readonly DocumentPart[]): readonly number[] {
  let foundation: Foundation | undefined;
  for (const { document, log, draft } of parts) {
    if (document.pending.length === 0) continue;
    foundation ??= new Foundation();
    for (const { path, depth } of log.reads) document.addPendingBeneath(path, depth, foundation);
    if (draft) for (const { path } of draft.operations) document.addPendingBeneath(path, "deep", foundation);
  }
  return foundation?.localSequences ?? NONE;
}

export const NOTHING_ELSE: Readonly<CommitExtras> = {
  preconditions: [],
  entries: [],
  settlements: [],
  due: [],
  basis: [],
  basisRemoved: [],
  labels: [],
  statements: [],
};

export function buildRequest(
  space: string,
  { session, localSequence }: CommitIdentity,
  parts: {
    readonly reads: readonly ReadClaim[];
    readonly patches: readonly DocumentPatch[];
    readonly dependsOn: readonly number[];
    readonly history: string;
    /** Also included in `patches`. */
    readonly receipt?: Receipt | undefined;
    readonly isAdmitted?: boolean;
  },
  extras: Readonly<CommitExtras> = NOTHING_ELSE,
): CommitRequest {
  const { receipt, patches } = parts;
  const digest = new PayloadDigest();
  digest.addPatches(patches);
  if (extras !== NOTHING_ELSE) digest.addExtras(extras);
  return {
    space,
    session,
    localSequence,
    digest: digest.toString(),
    history: parts.history,
    admitted: parts.isAdmitted === true ? ADMITTED : undefined,
    reads: parts.reads,
    patches,
    dependsOn: parts.dependsOn,
    preconditions: withReceipt(extras.preconditions, receipt),
    entries: ownList(extras.entries),
    settlements: ownList(extras.settlements),
    due: ownList(extras.due),
    basis: ownList(extras.basis),
    basisRemoved: ownList(extras.basisRemoved),
    labels: ownList(extras.labels),
    statements: extras.statements.length === 0 ? undefined : [...extras.statements],
  };
}

/** Copies a list of the transaction, because its owner may change it before the backend decides. */
function ownList<Row>(rows: readonly Row[]): readonly Row[] {
  return rows.length === 0 ? NONE : [...rows];
}

function withReceipt(given: readonly Precondition[], receipt: Receipt | undefined): readonly Precondition[] {
  if (given.length === 0) return receipt === undefined ? NONE : [receipt];
  const own = given.map((condition) => ({ ...condition }));
  return receipt === undefined ? own : [...own, receipt];
}

/** Whether the extras are empty. */
export function isNothing(extras: Readonly<CommitExtras> | undefined): boolean {
  if (extras === undefined) return true;
  const { preconditions, entries, settlements, due, basis, basisRemoved, labels, statements } = extras;
  const rows = entries.length + settlements.length + due.length + basis.length + basisRemoved.length;
  return preconditions.length + labels.length + statements.length + rows === 0;
}

/** The first read that another commit of this process has changed since. */
export function firstMoved(parts: readonly DocumentPart[]): Rejection | undefined {
  for (const { document, log } of parts) {
    for (const read of log.reads) {
      if (!document.hasMoved(read)) continue;
      const where = placeText(`${document.scope}/${document.id}`, read.path);
      return rejected("stale", "read-moved", `${where} changed while the transaction was open; run it again`);
    }
  }
  return undefined;
}

/** The rejection of a read-only transaction that read a document before it was loaded. */
export function firstNotHere(claims: readonly ReadClaim[]): Rejection | undefined {
  const claim = claims.find(({ sequence }) => sequence === NOT_HERE);
  if (claim === undefined) return undefined;
  const message = `${claim.scope}/${claim.id} was read before it was loaded; run it again when it is`;
  return rejected("stale", "read-moved", message);
}

/** The patches of a commit, including its receipt if it has one. */
export function patchesOf(shares: readonly DocumentShare[], receipt?: Receipt): readonly DocumentPatch[] {
  if (receipt === undefined) return shares.map(patchOf);
  // Common case, one document and a receipt: avoids an intermediate list.
  const only = shares.length === 1 ? shares[0] : undefined;
  return only === undefined ? [...shares.map(patchOf), receipt] : [patchOf(only), receipt];
}

function patchOf({ document: { scope, id }, operations }: DocumentShare): DocumentPatch {
  return { scope, id, operations };
}
