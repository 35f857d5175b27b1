/**
 * Whether the commits that a run's reads rest on are confirmed (R58, R62). A read of a computed value counts as reads
 * of its sources.
 */
import type { CommitOutcome, ReadClaim } from "../store/commit.ts";
import type { Replica } from "../store/replica.ts";
import { isDerived, sourcesOf } from "./graph-walk.ts";
import type { DocumentIndex, Edge } from "./node.ts";
import type { Run } from "./run.ts";
import type { Turns } from "./turns.ts";

/** Resolves when the outcomes are known; undefined if the store has all of these commits. */
export function standingOf(run: Run, turns: Turns): Promise<boolean> | undefined {
  if (run.tail === null) return undefined;
  const outcomes: Promise<CommitOutcome>[] = [];
  for (const [replica, reads] of claimsOf(run)) {
    // Plain writes that readers have seen may not be a commit yet.
    turns.seal(replica);
    const outcome = replica.standingOf(reads);
    if (outcome !== undefined) outcomes.push(outcome);
  }
  if (outcomes.length === 0) return undefined;
  return Promise.all(outcomes).then((all) => all.every(({ kind }) => kind === "committed"));
}

function claimsOf(run: Run): Map<Replica, ReadClaim[]> {
  const claims = new Map<Replica, ReadClaim[]>();
  for (const { address, shallow } of readsUpTo(run)) {
    const { replica, document } = address.home;
    const { scope, id } = document;
    const ofReplica = claims.get(replica) ?? [];
    ofReplica.push({ scope, id, path: address.path, depth: shallow ? "shallow" : "deep", sequence: 0 });
    claims.set(replica, ofReplica);
  }
  return claims;
}

/** The reads of the run so far, with the sources of computed values. */
function* readsUpTo({ node, tail }: Run): Iterable<Edge> {
  const derived = new Set<DocumentIndex>();
  for (let edge = node.reads; edge !== null; edge = edge === tail ? null : edge.next) {
    if (isDerived(edge.address.home)) derived.add(edge.address.home);
    else yield edge;
  }
  yield* sourcesOf(derived);
}
