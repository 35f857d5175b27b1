/**
 * Internal work of the store in small jobs after the batches that caused it: snapshots of documents that have outgrown
 * their base, removal of patches behind the feed, removal of old commit answers. If any of it is lost (crash, full
 * disk), the next write makes it due again.
 */
import { SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { WorkCount } from "./connection.ts";
import type { Overgrown } from "./document-table.ts";
import type { GroupCommit } from "./group-commit.ts";
import type { Job } from "./job-queue.ts";
import type { SqliteTuning } from "./options.ts";
import type { SlicedWork } from "./sliced-work.ts";
import { BaseCleanup, SnapshotWork } from "./snapshot-work.ts";
import type { Tables } from "./tables.ts";

/** Commits beyond the feed's length before pruning starts, and commits per job: more than a batch adds. */
const PRUNE_FROM = 200;
const PRUNE_MAX = 1_000;
/**
 * The commit log is checked after this many commits, and up to twice as many are removed, so it cannot grow without
 * bound.
 */
const FORGET_EVERY = 1_000;

interface Sliced {
  readonly kind: "snapshot" | "cleanup";
  readonly space: string;
  readonly row: number;
  /** Undefined if it is no longer needed. */
  readonly begin: () => SlicedWork | undefined;
  /** Undefined before the first slice. */
  work?: SlicedWork | undefined;
}

export class Upkeep {
  readonly #tables: Tables;
  readonly #tuning: SqliteTuning;
  readonly #work: WorkCount;
  /** Sliced work in order; the first is in progress. */
  readonly #sliced: Sliced[] = [];
  /** Whether a slice is queued. There is at most one, else a work that ends would end the next one too. */
  #hasSlice = false;
  #isStopped = false;
  /** Spaces that have a job queued. */
  readonly #pruning = new Set<string>();
  #commitsSinceForget = 0;
  /** Commits up to this number were checked; undefined before the first check. */
  #forgottenTo: number | undefined;

  constructor(tables: Tables, tuning: SqliteTuning, work: WorkCount) {
    this.#tables = tables;
    this.#tuning = tuning;
    this.#work = work;
  }

  /** No further slice is queued; an unfinished snapshot is made again later. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Queues the work that the last batch made due. */
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
      const document = space && documents.dueForSnapshot(space, ref);
      return document && new SnapshotWork(documents, document);
    };
    this.#addSliced(writer, { kind: "snapshot", space: name, row, begin });
  }

  /** A replaced base is removed after its replacement is durable. */
  #takeLeft(writer: GroupCommit): void {
    const { documents } = this.#tables;
    for (const left of documents.takeLeft()) {
      const work = new BaseCleanup(documents, left);
      this.#addSliced(writer, { kind: "cleanup", space: work.space, row: work.row, begin: () => work });
    }
  }

  #addSliced(writer: GroupCommit, sliced: Sliced): void {
    this.#sliced.push(sliced);
    this.#nextSlice(writer);
  }

  /** One slice of the first work; the next is queued when it is durable, so that a batch has at most one. */
  #nextSlice(writer: GroupCommit): void {
    const sliced = this.#sliced[0];
    if (sliced === undefined || this.#hasSlice || this.#isStopped) return;
    this.#hasSlice = true;
    let runs = 0;
    const run = () => {
      // After a rollback the work is based on reads that may be invalid, so it stops.
      if (++runs > 1) sliced.work = undefined;
      else this.#advance(sliced);
    };
    const end = (work: SlicedWork | undefined) => {
      this.#hasSlice = false;
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
    // Skips commits removed by an earlier process: a short-lived process would never get beyond them.
    const from = this.#forgottenTo ?? commits.forgottenTo();
    const to = Math.min(commits.count() - this.#tuning.commitsRemembered, from + 2 * FORGET_EVERY);
    if (to <= from) return;
    commits.forgetCommits(from, to);
    this.#forgottenTo = to;
  }
}

/** Failed upkeep is repeated later. */
function upkeepJob(run: () => void, succeed: () => void = nothing, fail: () => void = nothing, bytes = 0): Job {
  return { run, succeed, fail, bytes, isUpkeep: true };
}

function nothing(): void {}
