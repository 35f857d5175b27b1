/**
 * Outcomes of the commits of side-writes. A run ends long before its commit has an outcome. A rejection has already
 * rolled the writes back; this component decides what follows for the node (§7.3).
 *
 * | verdict on the rejection (`work/retry-table.ts`) | effect |
 * |---|---|
 * | again | after catching up the node is invalid again, for the same causes; backoff while conflicts continue |
 * | again after `failed`, ask | the same, a bounded number of times |
 * | already, lost, failed | reported; the node rests until one of its inputs changes |
 */
import { WRITE_ATTEMPTS_MAX } from "../limits.ts";
import type { CommitOutcome, ReadClaim } from "../store/commit.ts";
import { whenOver } from "../store/pending-commit.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { verdictOn } from "../work/retry-table.ts";
import type { Agenda } from "./agenda.ts";
import type { Authors } from "./authors.ts";
import { restoreCauses } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { isDerived, sourcesOf } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { DocumentIndex, Edge, Reason, SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";
import type { WriteTurns } from "./turns.ts";
import { WriteUnit } from "./write-unit.ts";

/** Keeps `idle` from resolving while work continues. */
export interface Background {
  background(work: Promise<unknown>): void;
}

/** The data of a run that its commit's outcome needs: the node may have run again since. */
interface Writing {
  readonly node: SchedulerNode;
  readonly reason: Reason;
}

export class RunCommits {
  readonly #turns: WriteTurns;
  readonly #gates: Gates;
  readonly #agenda: Agenda;
  readonly #introspection: Introspection;
  readonly #background: Background;
  readonly #graph: Graph;
  readonly #authors: Authors;

  constructor(parts: {
    turns: WriteTurns;
    gates: Gates;
    agenda: Agenda;
    introspection: Introspection;
    background: Background;
    graph: Graph;
    authors: Authors;
  }) {
    this.#turns = parts.turns;
    this.#gates = parts.gates;
    this.#agenda = parts.agenda;
    this.#introspection = parts.introspection;
    this.#background = parts.background;
    this.#graph = parts.graph;
    this.#authors = parts.authors;
  }

  /** A unit for the writes of a run, after the uncommitted writes of plain code. */
  open(replica: Replica): WriteUnit {
    this.#turns.seal(replica);
    return new WriteUnit(replica);
  }

  /** Commits the writes of a run so far. The commit claims the run's reads, with the sources of computed values. */
  commit(run: Run): void {
    const { unit, node } = run;
    run.unit = null;
    if (unit === null || unit.isEmpty) return;
    if (node.record !== undefined) node.record.writes = true;
    claimReads(unit, node);
    const { tick } = this.#graph;
    const commit = this.#turns.commit(unit, node, node.changeGroup);
    this.#authors.wrote(node.id, tick, this.#graph.tick);
    const writing = { node, reason: node.lastReason };
    if (commit !== undefined) whenOver(commit, (outcome) => this.#answered(writing, unit, outcome));
  }

  #answered(run: Writing, unit: WriteUnit, outcome: CommitOutcome): void {
    const { node } = run;
    if (outcome.kind === "committed") return this.#gates.committed(node);
    if (!node.registered) return;
    const verdict = verdictOn(outcome);
    const attempts = this.#gates.conflicted(node);
    // A node writes the same when it runs again, so a commit without answer need not be looked up.
    const mayRun = verdict === "again" || verdict === "ask";
    const isBounded = verdict === "ask" || outcome.class === "failed";
    if (!mayRun || (isBounded && attempts >= WRITE_ATTEMPTS_MAX)) this.#giveUp(run, outcome);
    else this.#again(run, unit);
  }

  #again({ node, reason }: Writing, { replica, missing }: WriteUnit): void {
    if (node.status === "clean") node.status = "invalid";
    restoreCauses(node, reason);
    if (node.live) this.#agenda.offer(node);
    // An unreadable feed need not be waited for: the next rejection reports it again.
    const open = () => this.#gates.caughtUp(node);
    // Without the missing inputs, the next run would be stale again.
    const loads = missing === undefined ? undefined : replica.loadsSettled();
    this.#background.background(Promise.all([replica.catchUp(), loads]).then(open, open));
  }

  #giveUp({ node }: Writing, { message }: Rejection): void {
    this.#gates.committed(node);
    const error = new Error(`the writes of node ${node.id} were rolled back: ${message}`);
    node.error = error;
    this.#introspection.report(error, node);
  }
}

/** Computed values are in no commit, so a read of one claims the sources that it follows from. */
function claimReads(unit: WriteUnit, node: SchedulerNode): void {
  let derived: Set<DocumentIndex> | undefined;
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    const { home } = edge.address;
    if (!isDerived(home)) claimRead(unit, edge);
    else if (derived === undefined) derived = new Set([home]);
    else derived.add(home);
  }
  if (derived !== undefined) for (const edge of sourcesOf(derived)) claimRead(unit, edge);
}

/** A commit claims reads of its own space only. */
function claimRead(unit: WriteUnit, { address, shallow }: Edge): void {
  if (address.home.replica === unit.replica) unit.claimRead(address, shallow);
}

/**
 * Whether the commits that a run's reads rest on are confirmed; a read of a computed value counts as reads of its
 * sources. Resolves when the outcomes are known; undefined if the store has all of these commits. SPEC: R58, R62.
 */
export function standingOf(run: Run, turns: WriteTurns): Promise<boolean> | undefined {
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
