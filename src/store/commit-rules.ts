/**
 * The order in which every backend decides a commit (S6): replay, stacking, preconditions, reads, sizes, claims. One
 * pure function over facts that the backend looks up, so that all backends agree about conflicts. Claims come last, so
 * that a backend may test a claim by settling it.
 */
import { DOCUMENT_BYTES_MAX } from "../limits.ts";
import { timeInId } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { type Path, placeText } from "../message/path.ts";
import {
  type CommitIdentity,
  type CommitOutcome,
  type CommitRequest,
  type MembershipClaim,
  NOT_HERE,
  type ReadClaim,
} from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { Settlement } from "./journal.ts";
import { writeTouchesRead } from "./path-operation.ts";
import { type Rejection, rejected } from "./rejection.ts";

export interface StoredCommit {
  readonly digest: string;
  readonly sequence: number;
  readonly journalIds: readonly number[];
}

export interface DocumentHead {
  /** Sequence of the last commit that changed the document. */
  readonly sequence: number;
  /** Opaque handle of the backend, to save a second look-up. */
  readonly row?: number;
}

export interface OversizedDocument extends DocumentRef {
  /** Size of its text plus the text of the commit's operations. */
  readonly bytes: number;
  /** The size is an upper estimate: it includes values that were replaced since the last snapshot. */
  readonly isEstimate: boolean;
}

/** Facts that a backend looks up inside the transaction that will apply the commit. */
export interface CommitFacts {
  /** Of the data. */
  readonly history: string;
  commitOf(identity: CommitIdentity): StoredCommit | undefined;
  /** Whether there is a commit of this identity; cheaper than `commitOf`. */
  wasMade(identity: CommitIdentity): boolean;
  /** Undefined if the document never existed; a tombstone has a head. */
  head(ref: DocumentRef): DocumentHead | undefined;
  /** The paths that other sessions wrote after the sequence; undefined if the change log no longer reaches back. */
  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): Iterable<Path> | undefined;
  /** The change log has every commit after this sequence. */
  readonly feedStart: number;
  /** Whether a commit after the sequence created or removed a document of the claimed set; undefined if unknown. */
  membersChanged(claim: MembershipClaim): boolean | undefined;
  /** The first document that the commit would make larger than `DOCUMENT_BYTES_MAX`. */
  oversized(): OversizedDocument | undefined;
  /** Receipts of messages made before this time may have been removed. 0 if none was. */
  readonly horizonMs: number;
  /** If `was` is given, the row must have this data. */
  hasDueRow(kind: string, key: string, was?: Json): boolean;
  /** The version of the consumer table. */
  readonly consumersVersion: number;
  /**
   * The first settlement whose claim is no longer held. Asked last, because the backend may settle the others
   * meanwhile.
   */
  lostClaim(settlements: readonly Settlement[]): Settlement | undefined;
}

export type Decision = { readonly kind: "apply" } | CommitOutcome;

const APPLY: Decision = { kind: "apply" };

export function decideCommit(request: CommitRequest, facts: CommitFacts): Decision {
  return (
    replay(request, facts) ??
    otherHistory(request, facts) ??
    stacking(request, facts) ??
    preconditions(request, facts) ??
    reads(request, facts) ??
    sizes(facts) ??
    claims(request, facts) ??
    APPLY
  );
}

function replay(request: CommitRequest, facts: CommitFacts): CommitOutcome | undefined {
  const stored = facts.commitOf(request);
  if (!stored) return undefined;
  if (stored.digest === request.digest) {
    return { kind: "committed", sequence: stored.sequence, journalIds: stored.journalIds, replayed: true };
  }
  const which = `${request.session}/${request.localSequence}`;
  return rejected(
    "refused",
    "protocol",
    `commit ${which} was already made with another payload; mint a new local sequence`,
  );
}

/** Sequences of another history say nothing about this one. */
function otherHistory({ history }: CommitRequest, facts: CommitFacts): Rejection | undefined {
  if (history === undefined || history === facts.history) return undefined;
  return rejected("stale", "history-lost", "the data have another history than the commit was made on; run it again");
}

function stacking(request: CommitRequest, facts: CommitFacts): Rejection | undefined {
  for (const localSequence of request.dependsOn) {
    if (facts.wasMade({ session: request.session, localSequence })) continue;
    return rejected("stale", "fell-with", `stacked on commit ${localSequence}, which was not made`);
  }
  return undefined;
}

function preconditions(request: CommitRequest, facts: CommitFacts): Rejection | undefined {
  for (const condition of request.preconditions) {
    if (condition.kind === "absent") {
      if (facts.head(condition)) {
        return rejected("permanent", "document-exists", `document ${condition.scope}/${condition.id} exists already`);
      }
      const old = outlived(condition.madeAtMs, request, facts);
      if (old !== undefined) return old;
    } else if (condition.kind === "members") {
      if (facts.membersChanged(condition) !== false) return membersMoved(condition);
    } else if (!facts.wasMade(condition)) {
      const origin = `${condition.session}/${condition.localSequence}`;
      return rejected("permanent", "origin-not-committed", `the commit ${origin} that launched this was not made`);
    }
  }
  for (const change of request.due) {
    const { op, kind, key } = change;
    if (op === "take" && !facts.hasDueRow(kind, key, change.was))
      return rejected("permanent", "due-row-gone", `${kind} ${key} was taken or cancelled by somebody else`);
    if (op === "add" && facts.hasDueRow(kind, key))
      return rejected("permanent", "due-row-there", `${kind} ${key} was set by somebody else`);
  }
  return undefined;
}

function membersMoved({ scope, prefix, sequence }: MembershipClaim): Rejection {
  const what = `documents ${scope}/${prefix}* were created or removed after sequence ${sequence}`;
  return rejected("stale", "read-moved", `${what}; list them again and run again`);
}

function sizes(facts: CommitFacts): Rejection | undefined {
  const oversized = facts.oversized();
  if (oversized === undefined) return undefined;
  const { scope, id, bytes, isEstimate } = oversized;
  if (isEstimate) {
    const waits = `document ${scope}/${id} has ${bytes} bytes with the changes that wait for its next snapshot`;
    return rejected("failed", "store-busy", `${waits}; at most ${DOCUMENT_BYTES_MAX} are taken: send it again`);
  }
  const message = `document ${scope}/${id} would have ${bytes} bytes; at most ${DOCUMENT_BYTES_MAX} fit one document: use several`;
  return rejected("refused", "too-large", message);
}

/**
 * Behind the horizon, a missing receipt does not prove that a message is new. A commit that settles a claim is exempt:
 * its row was in the journal all along, so all its receipts still exist (decision 0014).
 */
function outlived(
  madeAtMs: number | undefined,
  { settlements }: CommitRequest,
  { horizonMs }: CommitFacts,
): Rejection | undefined {
  if (madeAtMs === undefined || madeAtMs >= horizonMs || settlements.length > 0) return undefined;
  return tooOld("this", madeAtMs, horizonMs);
}

/** Refuses events behind the horizon that have no row: they may have been handled and removed. */
export function outlivedEntry(
  entries: readonly { readonly kind: string; readonly messageId: string }[],
  horizonMs: number,
  isThere: (messageId: string) => boolean,
): Rejection | undefined {
  for (const { kind, messageId } of entries) {
    if (kind !== "event") continue;
    const madeAtMs = timeInId(messageId);
    if (madeAtMs === undefined || madeAtMs >= horizonMs || isThere(messageId)) continue;
    return tooOld(`event ${messageId}`, madeAtMs, horizonMs);
  }
  return undefined;
}

function tooOld(what: string, madeAtMs: number, horizonMs: number): Rejection {
  const [made, horizon] = [madeAtMs, horizonMs].map((timeMs) => new Date(timeMs).toISOString());
  const message =
    `${what} was made at ${made}, and what was handled is remembered for what was made since ${horizon} only; ` +
    "see whether it was handled, and if it was not, send it under a new id (and check the clocks)";
  return rejected("permanent", "too-old", message);
}

function claims(request: CommitRequest, facts: CommitFacts): Rejection | undefined {
  if (request.settlements.length === 0) return undefined;
  for (const { consumers } of request.settlements) {
    if (consumers === undefined || consumers === facts.consumersVersion) continue;
    return rejected("stale", "consumers-moved", "a consumer was declared or removed; decide again");
  }
  const lost = facts.lostClaim(request.settlements);
  return lost && rejected("permanent", "lease-lost", `the claim on journal row ${lost.id} is no longer held`);
}

function reads(request: CommitRequest, facts: CommitFacts): Rejection | undefined {
  if (request.reads.length === 0) return undefined;
  let of: DocumentRef | undefined;
  let head = 0;
  for (const read of request.reads) {
    // Reads of one document are adjacent, so its head is looked up once.
    if (of === undefined || of.id !== read.id || of.scope !== read.scope) {
      of = read;
      const document = facts.head(read);
      // It may have been there when it was read: an erasure leaves no head, and no commits in the log.
      if (document === undefined && read.sequence !== NOT_HERE && read.sequence < facts.feedStart) return moved(read);
      head = document?.sequence ?? 0;
    }
    if (head > Math.max(read.sequence, 0) && hasMoved(read, request.session, facts)) return moved(read);
  }
  return undefined;
}

function moved({ scope, id, path, sequence }: ReadClaim): Rejection {
  const since = sequence === NOT_HERE ? "was read before it was loaded" : `changed after sequence ${sequence}`;
  return rejected("stale", "read-moved", `${placeText(`${scope}/${id}`, path)} ${since}; catch up and run again`);
}

function hasMoved(read: ReadClaim, session: string, facts: CommitFacts): boolean {
  if (read.sequence === NOT_HERE) return true;
  const written = facts.writtenSince(read, read.sequence, session);
  if (!written) return true;
  for (const path of written) if (writeTouchesRead(path, read.path, read.depth)) return true;
  return false;
}
