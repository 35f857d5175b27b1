/**
 * A commit in memory: decided by the common rules, prepared without touching anything, then stored as a whole. Nothing between
 * the first and the last store can fail, which is what makes it atomic. SPEC: S5-S13.
 */
import type { CommitOutcome, CommitRequest } from "../commit.ts";
import { type CommitFacts, decideCommit } from "../commit-rules.ts";
import { PatchError } from "../patch.ts";
import { StoreError } from "../store.ts";
import { findRefusal } from "./entry-refusal.ts";
import type { MemoryDisk } from "./memory-disk.ts";
import type { PreparedDocuments, SpaceTable } from "./space-table.ts";

export function commitTo(disk: MemoryDisk, request: CommitRequest, nowMs: number): CommitOutcome {
  const space = disk.space(request.space);
  const decision = decideCommit(request, factsOf(disk, space));
  if (decision.kind !== "apply") return decision;
  const refusal = findRefusal(request.entries, disk.journal);
  if (refusal !== undefined) return refusal;
  const prepared = prepare(space, request);

  disk.spaces.set(request.space, space);
  space.apply(request, prepared);
  const journalIds = disk.journal.append(request.entries, nowMs);
  for (const settlement of request.settlements) disk.journal.settle(settlement, nowMs);
  for (const change of request.due) disk.due.change(change);
  const { digest } = request;
  const { sequence } = space;
  disk.remember(request, { digest, sequence, journalIds });
  return { kind: "committed", sequence, journalIds: [...journalIds], replayed: false };
}

function factsOf(disk: MemoryDisk, space: SpaceTable): CommitFacts {
  return {
    commitOf: (identity) => disk.commitOf(identity),
    wasMade: (identity) => disk.commitOf(identity) !== undefined,
    head: (ref) => space.head(ref),
    writtenSince: (ref, sequence, exceptSession) => space.writtenSince(ref, sequence, exceptSession),
    hasDueRow: (kind, key) => disk.due.has(kind, key),
    lostClaim: (settlements) => settlements.find((settlement) => !disk.journal.holdsClaim(settlement)),
  };
}

function prepare(space: SpaceTable, request: CommitRequest): PreparedDocuments {
  try {
    return space.prepare(request.patches);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw new StoreError("STORE_MISUSE", `${error.message}; a write must claim its parent with a reach read`, {
      cause: error,
    });
  }
}
