/**
 * Turning a transaction into the request that a backend gets: what it read and as of when, what it stands on, what it writes.
 */
import type { CommitIdentity, CommitRequest, DocumentPatch, ReadClaim } from "./commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { Transaction } from "./transaction.ts";

/** As of which sequence the replica's copy of a document is; 0 for one that was read while it was not here. */
export function sequenceSeen(document: ReplicaDocument, position: number): number {
  return document.state === "loaded" ? Math.max(document.loadedAt, position) : 0;
}

export function readClaims(transaction: Transaction, position: number): ReadClaim[] {
  const claims: ReadClaim[] = [];
  for (const [document, reads] of transaction.reads.entries()) {
    const sequence = sequenceSeen(document, position);
    for (const { path, depth } of reads) claims.push({ scope: document.scope, id: document.id, path, depth, sequence });
  }
  return claims;
}

/** Local sequences of the pending commits that the transaction read from or writes over. */
export function standsOn(transaction: Transaction): number[] {
  const found = new Set<number>();
  for (const [document, reads] of transaction.reads.entries()) {
    if (document.pending.length === 0) continue;
    for (const { path, depth } of reads) {
      for (const commit of document.pendingBeneath(path, depth)) found.add(commit.localSequence);
    }
  }
  for (const [document, draft] of transaction.drafts) {
    if (document.pending.length === 0) continue;
    for (const { path } of draft.operations) {
      for (const commit of document.pendingBeneath(path, "deep")) found.add(commit.localSequence);
    }
  }
  return [...found].sort((a, b) => a - b);
}

/** What a commit may carry besides what it read and wrote. */
type Extras = Pick<
  Transaction,
  "preconditions" | "entries" | "settlements" | "due" | "basis" | "basisRemoved" | "labels"
>;

export const NOTHING_ELSE: Extras = {
  preconditions: [],
  entries: [],
  settlements: [],
  due: [],
  basis: [],
  basisRemoved: [],
  labels: [],
};

export function buildRequest(
  identity: CommitIdentity & { readonly space: string },
  transaction: Extras,
  parts: {
    readonly reads: readonly ReadClaim[];
    readonly patches: readonly DocumentPatch[];
    readonly dependsOn: readonly number[];
  },
): CommitRequest {
  const { preconditions, entries, settlements, due, basis, basisRemoved, labels } = transaction;
  const payload = { patches: parts.patches, preconditions, entries, settlements, due, basis, basisRemoved, labels };
  return {
    space: identity.space,
    session: identity.session,
    localSequence: identity.localSequence,
    digest: digest(JSON.stringify(payload)),
    reads: parts.reads,
    dependsOn: parts.dependsOn,
    ...payload,
  };
}

/** Whether the backend has nothing to do for it. */
export function isEmpty(request: CommitRequest): boolean {
  const { patches, preconditions, entries, settlements, due, basis, basisRemoved, labels } = request;
  const parts = [patches, preconditions, entries, settlements, due, basis, basisRemoved, labels];
  return parts.every((part) => part.length === 0);
}

/**
 * A 53-bit digest of a text. It tells a repeated commit from another that wrongly carries the same identity, which only a
 * mistake can make; nothing here has to withstand an adversary, and every commit pays for it.
 */
function digest(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2_654_435_761);
    b = Math.imul(b ^ unit, 1_597_334_677);
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909);
  return (4_294_967_296 * (2_097_151 & b) + (a >>> 0)).toString(36);
}
