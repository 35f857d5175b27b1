/**
 * Invariants of a replica at rest: `Replica.checkInvariants` for tests and the simulator. Too slow for production
 * because it walks all documents.
 */
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { isHandedOut } from "./admit.ts";
import type { CommitList } from "./commit-list.ts";
import { applyOperations, PatchError } from "./patch.ts";
import type { PathOperation } from "./path-operation.ts";
import type { PendingCommit } from "./pending-commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";

export function checkDocument(document: ReplicaDocument, pending: CommitList<PendingCommit>): void {
  const check = checker(`document ${document.scope}/${document.id}`);
  check(document.observers >= 0, "is held by less than nobody");
  const showsNothing = document.value === undefined || document.derived;
  check(document.isKnown || showsNothing, "is not known, and something of it shows");
  const missed = document.state === "loading" ? [] : document.missed.flatMap(({ operations }) => operations);
  check(missed.length === 0, "keeps what was missed and is not loading");
  check(!containsUnfrozenBelowFrozen(document.value), "has a container that can change inside one that was handed out");

  let last = 0;
  for (const { commit, document: home } of document.pending) {
    check(home === document, "has a share of another document");
    check(pending.get(commit.localSequence) === commit, `has a share of commit ${commit.localSequence}, which is over`);
    check(commit.localSequence > last, "has its shares out of order");
    last = commit.localSequence;
  }
  const inverses = document.pending.flatMap((share) => share.inverses).reverse();
  const confirmed = applyOperations(document.value, inverses);
  const operations = document.pending.flatMap((share) => share.operations);
  check(equal(applyWhatFits(confirmed, operations), document.value), "is not its confirmed state with what is pending");
}

export function checkPending(pending: CommitList<PendingCommit>): void {
  let last = 0;
  for (const commit of pending) {
    const { localSequence } = commit;
    const check = checker(`commit ${localSequence}`);
    check(pending.get(localSequence) === commit && localSequence > last, "is out of order");
    check(commit.state !== "fallen" && commit.state !== "integrated", `is pending and ${commit.state}`);
    check(
      commit.request.dependsOn.every((beneath) => beneath < localSequence),
      "stands on a later one",
    );
    for (const share of commit.shares) {
      const { answer } = commit;
      const isLoaded = answer !== undefined && answer.sequence <= share.document.loadedAt;
      check(isLoaded || share.document.pending.includes(share), "has a share that its document does not know");
    }
    last = localSequence;
  }
}

function checker(subject: string): (holds: boolean, problem: string) => void {
  return (holds, problem) => {
    if (!holds) throw new Error(`Replica: ${subject} ${problem}`);
  };
}

function applyWhatFits(value: Json | undefined, operations: readonly PathOperation[]): Json | undefined {
  let result = value;
  for (const operation of operations) {
    try {
      result = applyOperations(result, [operation]);
    } catch (error) {
      // A share that no longer fits has no effect until the backend rejects its commit.
      if (!(error instanceof PatchError)) throw error;
    }
  }
  return result;
}

function containsUnfrozenBelowFrozen(value: Json | undefined, isBelowFrozen = false): boolean {
  if (typeof value !== "object" || value === null) return false;
  const isFrozen = isHandedOut(value);
  if (isBelowFrozen && !isFrozen) return true;
  return Object.values(value).some((child) => containsUnfrozenBelowFrozen(child, isFrozen));
}
