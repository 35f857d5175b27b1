/**
 * What becomes of the commits of nodes' side-writes. A run has ended long before its commit has its answer; an answer that is a
 * rejection has already taken the writes back, and here it is decided what that means for the node (§7.3).
 *
 * | rule of the rejection | what happens |
 * |---|---|
 * | run again (stale) | after catching up the node is invalid again, for the same causes; growing pauses when it keeps happening |
 * | send again (failed, unknown) | the same, a bounded number of times |
 * | never | reported; the node rests until something it read changes |
 */
import { WRITE_ATTEMPTS_MAX } from "../limits.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { whenOver } from "../store/pending-commit.ts";
import { type Rejection, retryRule } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import type { Agenda } from "./agenda.ts";
import { type Reason, restoreCauses } from "./causes.ts";
import type { Gates } from "./gates.ts";
import { isDerived } from "./graph-walk.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";
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

  constructor(parts: {
    turns: Turns;
    gates: Gates;
    agenda: Agenda;
    introspection: Introspection;
    background: Background;
  }) {
    this.#turns = parts.turns;
    this.#gates = parts.gates;
    this.#agenda = parts.agenda;
    this.#introspection = parts.introspection;
    this.#background = parts.background;
  }

  /** A unit for what a run is about to write, upon what plain code had written before it. */
  open(replica: Replica): WriteUnit {
    this.#turns.seal(replica);
    return new WriteUnit(replica);
  }

  /** Commits what a run has written so far. The commit rests on what the run has read. */
  commit(run: Run): void {
    const { unit, node } = run;
    run.unit = null;
    if (unit === null || unit.isEmpty) return;
    if (node.record !== undefined) node.record.writes = true;
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      const { home } = edge.address;
      if (home.replica === unit.replica && !isDerived(home)) unit.claimRead(edge.address, edge.shallow);
    }
    const commit = this.#turns.commit(unit, node, node.changeGroup);
    const writing = { node, reason: node.lastReason };
    if (commit !== undefined) whenOver(commit, (outcome) => this.#answered(writing, unit.replica, outcome));
  }

  #answered(run: Writing, replica: Replica, outcome: CommitOutcome): void {
    const { node } = run;
    if (outcome.kind === "committed") return this.#gates.committed(node);
    if (!node.registered) return;
    const rule = retryRule(outcome);
    const attempts = this.#gates.conflicted(node);
    if (rule === "never" || (rule === "send-again" && attempts >= WRITE_ATTEMPTS_MAX)) this.#giveUp(run, outcome);
    else this.#again(run, replica);
  }

  #again({ node, reason }: Writing, replica: Replica): void {
    if (node.status === "clean") node.status = "invalid";
    restoreCauses(node, reason);
    if (node.live) this.#agenda.offer(node);
    // A feed that cannot be read now is no reason to wait: the next rejection says so again.
    const open = () => this.#gates.caughtUp(node);
    this.#background.background(replica.catchUp().then(open, open));
  }

  #giveUp({ node }: Writing, { message }: Rejection): void {
    this.#gates.committed(node);
    const error = new Error(`what node ${node.id} wrote was taken back: ${message}`);
    node.error = error;
    this.#introspection.report(error, node);
  }
}
