/**
 * The store's own work, done in small jobs after the batches that made it necessary: snapshots of documents that have outgrown
 * their base, patches that the feed has left behind, commits that are too old to be asked for. Losing any of it (a crash, a
 * full disk) costs nothing: the next write finds it due again.
 */
import type { GroupCommit } from "./group-commit.ts";
import type { Job } from "./job-queue.ts";
import type { SqliteTuning } from "./options.ts";
import type { Tables } from "./tables.ts";

/** Commits beyond the feed's length from which on they are taken out of it, and how many one job takes: more than a batch brings. */
const PRUNE_FROM = 200;
const PRUNE_MAX = 1_000;
/** After so many commits the log is looked at, and up to twice as many are forgotten: it cannot grow faster than it shrinks. */
const FORGET_EVERY = 1_000;

export class Upkeep {
  readonly #tables: Tables;
  readonly #tuning: SqliteTuning;
  /** Spaces that have a job queued. */
  readonly #pruning = new Set<string>();
  #commitsSinceForget = 0;
  /** Commits up to this number were looked at; undefined before the first look. */
  #forgottenTo: number | undefined;

  constructor(tables: Tables, tuning: SqliteTuning) {
    this.#tables = tables;
    this.#tuning = tuning;
  }

  /** Queues what the last batch made due. */
  queue(writer: GroupCommit, spaces: Iterable<string>, commits: number): void {
    for (const { space, ref } of this.#tables.documents.takeOvergrown()) {
      writer.submit(upkeepJob(() => this.#compact(space, ref)));
    }
    for (const name of spaces) this.#queuePrune(writer, name);
    this.#commitsSinceForget += commits;
    if (this.#commitsSinceForget < FORGET_EVERY) return;
    this.#commitsSinceForget = 0;
    writer.submit(upkeepJob(() => this.#forgetCommits()));
  }

  #queuePrune(writer: GroupCommit, name: string): void {
    const space = this.#tables.spaces.find(name);
    if (!space || this.#pruning.has(name)) return;
    if (space.sequence - space.floor < this.#tuning.feedCommits + PRUNE_FROM) return;
    this.#pruning.add(name);
    const done = () => {
      this.#pruning.delete(name);
      this.#queuePrune(writer, name);
    };
    const failed = () => this.#pruning.delete(name);
    writer.submit(upkeepJob(() => this.#prune(name), done, failed));
  }

  #compact(name: string, ref: { readonly scope: string; readonly id: string }): void {
    const space = this.#tables.spaces.find(name);
    if (space) this.#tables.documents.compact(space, ref);
  }

  #prune(name: string): void {
    const { spaces, documents } = this.#tables;
    const space = spaces.find(name);
    if (!space) return;
    const floor = Math.min(space.sequence - this.#tuning.feedCommits, space.floor + PRUNE_MAX);
    documents.dropChanges(space, floor);
    spaces.raiseFloor(space, floor);
  }

  #forgetCommits(): void {
    const { commits } = this.#tables;
    // What an earlier process has forgotten is not gone through again: one that does not live long would never get beyond it.
    const from = this.#forgottenTo ?? commits.forgottenTo();
    const to = Math.min(commits.count() - this.#tuning.commitsRemembered, from + 2 * FORGET_EVERY);
    if (to <= from) return;
    commits.forgetCommits(from, to);
    this.#forgottenTo = to;
  }
}

/** What fails is left for the next time. */
function upkeepJob(run: () => void, succeed: () => void = nothing, fail: () => void = nothing): Job {
  return { run, succeed, fail, bytes: 0, isUpkeep: true };
}

function nothing(): void {}
