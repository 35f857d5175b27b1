/**
 * What becomes of the commits of nodes' side-writes. A run has ended long before its commit has its answer; an answer that is a
 * rejection has already taken the writes back, and here it is decided what that means for the node (§7.3).
 *
 * | verdict on the rejection (`work/retry-table.ts`) | what happens |
 * |---|---|
 * | again | after catching up the node is invalid again, for the same causes; growing pauses while conflicts go on |
 * | again after `failed`, ask | the same, a bounded number of times |
 * | already, lost, failed | reported; the node rests until a value that it read changes |
 */
import { WRITE_ATTEMPTS_MAX } from "../limits.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { whenOver } from "../store/pending-commit.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { verdictOn } from "../work/retry-table.ts";
import type { DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import type { Authors } from "./authors.ts";
import { type Reason, restoreCauses } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { isDerived, sourcesOf } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";
import type { Turns } from "./turns.ts";
import { WriteUnit } from "./write-unit.ts";

/** Keeps `idle` from resolving while work goes on. */
export interface Background {
  background(work: Promise<unknown>): void;
}

/** What is left of a run when its commit is answered: the node may have run again since. */
interface Writing {
  readonly node: SchedulerNode;
  readonly reason: Reason;
}

export class RunCommits {
  readonly #turns: Turns;
  readonly #gates: Gates;
  readonly #agenda: Agenda;
  readonly #introspection: Introspection;
  readonly #background: Background;
  readonly #graph: Graph;
  readonly #authors: Authors;

  constructor(parts: {
    turns: Turns;
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

  /** A unit for what a run is about to write, upon what plain code had written before it. */
  open(replica: Replica): WriteUnit {
    this.#turns.seal(replica);
    return new WriteUnit(replica);
  }

  /** Commits what a run has written so far. The commit rests on what the run has read, through computed values too. */
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
    // A node writes the same when it runs again, so the store need not be asked for a commit without an answer.
    const mayRun = verdict === "again" || verdict === "ask";
    const isBounded = verdict === "ask" || outcome.class === "failed";
    if (!mayRun || (isBounded && attempts >= WRITE_ATTEMPTS_MAX)) this.#giveUp(run, outcome);
    else this.#again(run, unit);
  }

  #again({ node, reason }: Writing, { replica, missing }: WriteUnit): void {
    if (node.status === "clean") node.status = "invalid";
    restoreCauses(node, reason);
    if (node.live) this.#agenda.offer(node);
    // A feed that cannot be read now is no reason to wait: the next rejection says so again.
    const open = () => this.#gates.caughtUp(node);
    // Before what it rests on is loaded, it would be stale again.
    const loads = missing === undefined ? undefined : replica.loadsSettled();
    this.#background.background(Promise.all([replica.catchUp(), loads]).then(open, open));
  }

  #giveUp({ node }: Writing, { message }: Rejection): void {
    this.#gates.committed(node);
    const error = new Error(`what node ${node.id} wrote was taken back: ${message}`);
    node.error = error;
    this.#introspection.report(error, node);
  }
}

/** What was computed is in no commit that could be claimed: it is as good as what it goes back to. */
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

/** A commit is of one space, and so is what it rests on. */
function claimRead(unit: WriteUnit, { address, shallow }: Edge): void {
  if (address.home.replica === unit.replica) unit.claimRead(address, shallow);
}
