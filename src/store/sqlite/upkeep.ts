/**
 * The store's own work, done in small jobs after the batches that made it necessary: snapshots of documents that have outgrown
 * their base, patches that the feed has left behind, commits that are too old to be asked for. Losing any of it (a crash, a
 * full disk) costs nothing: the next write finds it due again.
 */
import { SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { WorkCount } from "./connection.ts";
import type { Overgrown } from "./document-table.ts";
import type { GroupCommit } from "./group-commit.ts";
import type { Job } from "./job-queue.ts";
import type { SqliteTuning } from "./options.ts";
import type { SlicedWork } from "./sliced-work.ts";
import type { Tables } from "./tables.ts";

/** Commits beyond the feed's length from which on they are taken out of it, and how many one job takes: more than a batch brings. */
const PRUNE_FROM = 200;
const PRUNE_MAX = 1_000;
/** After so many commits the log is looked at, and up to twice as many are forgotten: it cannot grow faster than it shrinks. */
const FORGET_EVERY = 1_000;

interface Sliced {
  readonly kind: "snapshot" | "cleanup";
  readonly space: string;
  readonly row: number;
  /** Undefined when it is not needed any more. */
  readonly begin: () => SlicedWork | undefined;
  /** Undefined before the first slice. */
  work?: SlicedWork | undefined;
}

export class Upkeep {
  readonly #tables: Tables;
  readonly #tuning: SqliteTuning;
  readonly #work: WorkCount;
  /** Work in slices, in order; the first is under way. */
  readonly #sliced: Sliced[] = [];
  #isStopped = false;
  /** Spaces that have a job queued. */
  readonly #pruning = new Set<string>();
  #commitsSinceForget = 0;
  /** Commits up to this number were looked at; undefined before the first look. */
  #forgottenTo: number | undefined;

  constructor(tables: Tables, tuning: SqliteTuning, work: WorkCount) {
    this.#tables = tables;
    this.#tuning = tuning;
    this.#work = work;
  }

  /** No further slice is queued; a snapshot that is not finished is made another time. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Queues what the last batch made due. */
  queue(writer: GroupCommit, spaces: Iterable<string>, commits: number): void {
    for (const overgrown of this.#tables.documents.takeOvergrown()) this.#queueSnapshot(writer, overgrown);
    this.#takeLeft(writer);
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

  #queueSnapshot(writer: GroupCommit, { space: name, row, ref, isLarge, bytes }: Overgrown): void {
    const { spaces, documents } = this.#tables;
    if (!isLarge) {
      const compact = () => {
        const space = spaces.find(name);
        if (space) documents.compact(space, ref);
        this.#count(bytes);
      };
      writer.submit(upkeepJob(compact, () => this.#takeLeft(writer), nothing, bytes));
      return;
    }
    if (this.#sliced.some((work) => work.row === row && work.kind === "snapshot")) return;
    const begin = () => {
      const space = spaces.find(name);
      return space && documents.snapshotWork(space, ref);
    };
    this.#addSliced(writer, { kind: "snapshot", space: name, row, begin });
  }

  /** The rest of a replaced base is removed after its replacement is durable. */
  #takeLeft(writer: GroupCommit): void {
    for (const work of this.#tables.documents.takeLeft()) {
      const { row, space } = work;
      this.#addSliced(writer, { kind: "cleanup", space, row, begin: () => work });
    }
  }

  #addSliced(writer: GroupCommit, sliced: Sliced): void {
    this.#sliced.push(sliced);
    if (this.#sliced.length === 1) this.#nextSlice(writer);
  }

  /** One slice of the first work; the next one is queued when it is durable, so that a batch has at most one. */
  #nextSlice(writer: GroupCommit): void {
    const sliced = this.#sliced[0];
    if (sliced === undefined || this.#isStopped) return;
    let runs = 0;
    const run = () => {
      // After a rollback the work has gone on from reads that may not have been: it is given up.
      if (++runs > 1) sliced.work = undefined;
      else this.#advance(sliced);
    };
    const end = (work: SlicedWork | undefined) => {
      if (work === undefined || work.isDone) this.#sliced.shift();
      this.#takeLeft(writer);
      this.#nextSlice(writer);
    };
    const failed = () => {
      sliced.work = undefined;
      end(undefined);
    };
    writer.submit(upkeepJob(run, () => end(sliced.work), failed, SNAPSHOT_SLICE_BYTES));
  }

  #advance(sliced: Sliced): void {
    sliced.work ??= sliced.begin();
    const space = this.#tables.spaces.find(sliced.space);
    if (space === undefined || sliced.work === undefined) return;
    this.#count(sliced.work.advance(space));
  }

  #count(bytes: number): void {
    this.#work.upkeepBytesMax = Math.max(this.#work.upkeepBytesMax, bytes);
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
function upkeepJob(run: () => void, succeed: () => void = nothing, fail: () => void = nothing, bytes = 0): Job {
  return { run, succeed, fail, bytes, isUpkeep: true };
}

function nothing(): void {}
