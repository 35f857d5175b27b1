/**
 * The last commits of a space, oldest first: what the feed answers from, and how far back a conflict can be told. Older commits
 * are forgotten: whoever is behind the horizon reloads. SPEC: S10, S20, S21.
 *
 * What was written to one document is a chain through the patches of the commits themselves, newest first, which begins at the document.
 * So a commit costs no entry in any index, and none has to be taken out when it is forgotten.
 */
import type { Path } from "../../message/path.ts";
import type { DocumentPatch, LabelWrite } from "../commit.ts";
import { NONE } from "../few.ts";
import type { PathOperation } from "../path-operation.ts";
import type { FeedCommit } from "../store.ts";
import { copyJson, copyOperations } from "./json-copy.ts";

/** Where the writes to one document are found. */
export interface WriteTrail {
  /** The newest; undefined some time after that is forgotten. */
  newest: LoggedPatch | undefined;
}

export interface LoggedCommit {
  readonly sequence: number;
  readonly session: string;
  readonly localSequence: number;
  /** Nothing some time after it is forgotten, as are the labels. */
  patches: readonly LoggedPatch[];
  labels: readonly LabelWrite[];
}

/** One document's share of a commit, after those before it. */
export class LoggedPatch implements DocumentPatch {
  readonly scope: string;
  readonly id: string;
  readonly operations: readonly PathOperation[];
  /** Undefined before it is logged, and some time after it is forgotten: the trail ends before it. */
  commit: LoggedCommit | undefined;
  trail: WriteTrail | undefined;
  earlier: LoggedPatch | undefined;
  /** The nearest earlier one by another session: a burst of one writer is passed over in one step. */
  earlierByOther: LoggedPatch | undefined;
  /** Whether it gives the document a value that had none, or takes it away. */
  turns = false;

  constructor(scope: string, id: string, operations: readonly PathOperation[], trail?: WriteTrail) {
    this.scope = scope;
    this.id = id;
    this.operations = operations;
    this.trail = trail;
  }
}

/**
 * What forgotten commits refer to is let go of for so many at once. It has not been touched for long and lies far apart in memory: one by
 * one, whoever commits waits for each, which took 4 to 9 % of a send.
 */
const CLEARED_TOGETHER = 256;

export class ChangeLog {
  readonly #keptMax: number;
  /** From `#first` on, without holes in their sequences: what is forgotten is cut off now and then, not one by one. */
  #commits: LoggedCommit[] = [];
  #first = 0;
  /** Those before it refer to nothing any more; from here up to `#first` they still do, and nobody looks at them. */
  #cleared = 0;
  /** The newest sequence that is forgotten; 0 while none is. */
  #horizon = 0;

  constructor(keptMax: number) {
    this.#keptMax = keptMax;
  }

  /** Commits up to this sequence are forgotten. */
  get start(): number {
    return this.#horizon;
  }

  /** Adds a commit. */
  add(commit: LoggedCommit): void {
    this.#commits.push(commit);
    if (this.#size <= this.#keptMax) return;
    this.#first++;
    this.#horizon++;
    if (this.#first - this.#cleared >= CLEARED_TOGETHER) this.#clearForgotten();
  }

  /** Puts a patch of a commit at the end of its document's trail. */
  follow(trail: WriteTrail, patch: LoggedPatch, commit: LoggedCommit): void {
    const earlier = trail.newest;
    patch.commit = commit;
    patch.trail = trail;
    trail.newest = patch;
    if (earlier === undefined) return;
    patch.earlier = earlier;
    patch.earlierByOther = earlier.commit?.session === commit.session ? earlier.earlierByOther : earlier;
  }

  /** At most `limit` commits after the sequence; undefined when some of them are forgotten. */
  after(sequence: number, limit: number): FeedCommit[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const from = this.#first + sequence - this.#horizon;
    return this.#commits.slice(from, from + limit).map(({ sequence, session, localSequence, patches, labels }) => ({
      sequence,
      session,
      localSequence,
      patches: patches.map(({ scope, id, operations }) => ({ scope, id, operations: copyOperations(operations) })),
      labels: copyJson(labels),
    }));
  }

  /** The paths written to a document after the sequence by others than the session; undefined when that is forgotten. */
  writtenSince(
    trail: WriteTrail | undefined,
    sequence: number,
    exceptSession: string | undefined,
  ): readonly Path[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const paths: Path[] = [];
    // Newest first: a reader is seldom far behind what others wrote, and the trail may be long.
    let patch = trail?.newest;
    while (patch?.commit !== undefined && patch.commit.sequence > sequence) {
      const isExcepted = patch.commit.session === exceptSession;
      if (!isExcepted) for (const { path } of patch.operations) paths.push(path);
      patch = isExcepted ? patch.earlierByOther : patch.earlier;
    }
    return paths;
  }

  /** Whether a commit after the sequence created or removed a document of the set; undefined when some of them are forgotten. */
  membersChanged(scope: string, prefix: string, sequence: number): boolean | undefined {
    if (sequence < this.#horizon) return undefined;
    for (let at = this.#first + sequence - this.#horizon; at < this.#commits.length; at++) {
      for (const patch of (this.#commits[at] as LoggedCommit).patches)
        if (patch.turns && patch.scope === scope && patch.id.startsWith(prefix)) return true;
    }
    return false;
  }

  problems(head: number): string[] {
    const kept = head - this.#horizon;
    return kept === this.#size ? [] : [`the log holds ${this.#size} of the last ${kept} commits`];
  }

  get #size(): number {
    return this.#commits.length - this.#first;
  }

  #clearForgotten(): void {
    while (this.#cleared < this.#first) clear(this.#commits[this.#cleared++] as LoggedCommit);
    if (this.#first <= this.#keptMax) return;
    this.#commits = this.#commits.slice(this.#first);
    this.#first = 0;
    this.#cleared = 0;
  }
}

/** What is forgotten holds on to nothing: later ones lead to it, and the collector takes what it refers to for alive. */
function clear(commit: LoggedCommit): void {
  for (const patch of commit.patches) {
    if (patch.trail?.newest === patch) patch.trail.newest = undefined;
    patch.trail = undefined;
    patch.commit = undefined;
    patch.earlier = undefined;
    patch.earlierByOther = undefined;
  }
  commit.patches = NONE;
  commit.labels = NONE;
}
