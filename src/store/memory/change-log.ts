/**
 * The last commits of a space, oldest first: the source of the feed and of conflict detection. Older commits are
 * dropped, and a reader behind the horizon reloads. SPEC: S10, S20, S21.
 *
 * The writes to one document form a linked list through the patches of the commits, newest first, starting at the
 * document. So a commit needs no index entry, and none must be removed when it is dropped.
 */
import type { Path } from "../../message/path.ts";
import type { DocumentPatch, LabelWrite } from "../commit.ts";
import type { PathOperation } from "../path-operation.ts";
import { NONE } from "../small-list.ts";
import type { FeedCommit } from "../store.ts";
import { copyOperations, copyStored } from "./json-copy.ts";

/** Head of the list of writes to one document. */
export interface WriteTrail {
  /** The newest write; undefined some time after that is dropped. */
  newest: LoggedPatch | undefined;
}

export interface LoggedCommit {
  readonly sequence: number;
  readonly session: string;
  readonly localSequence: number;
  /** Cleared some time after the commit is dropped, like the labels. */
  patches: readonly LoggedPatch[];
  labels: readonly LabelWrite[];
}

/** The patch of one document in a commit, linked to earlier ones. */
export class LoggedPatch implements DocumentPatch {
  readonly scope: string;
  readonly id: string;
  readonly operations: readonly PathOperation[];
  /** Undefined before it is logged and some time after it is dropped: the list ends before it. */
  commit: LoggedCommit | undefined;
  trail: WriteTrail | undefined;
  earlier: LoggedPatch | undefined;
  /** The nearest earlier write of another session, to skip a burst of one writer in one step. */
  earlierByOther: LoggedPatch | undefined;
  /** Whether it creates or removes the document's value. */
  turns = false;

  constructor(scope: string, id: string, operations: readonly PathOperation[], trail?: WriteTrail) {
    this.scope = scope;
    this.id = id;
    this.operations = operations;
    this.trail = trail;
  }
}

/**
 * References of dropped commits are cleared in batches of this size. They are cold in the cache: cleared one by one
 * they took 4 to 9 % of a send.
 */
const CLEARED_TOGETHER = 256;

export class ChangeLog {
  readonly #keptMax: number;
  /** From `#first` on, with contiguous sequences. Dropped commits are cut off in bulk. */
  #commits: LoggedCommit[] = [];
  #first = 0;
  /** Commits before this index are cleared; those up to `#first` are dropped and not cleared yet. */
  #cleared = 0;
  /** The newest dropped sequence; 0 if none is. */
  #horizon = 0;

  constructor(keptMax: number) {
    this.#keptMax = keptMax;
  }

  /** Commits up to this sequence are dropped. */
  get start(): number {
    return this.#horizon;
  }

  add(commit: LoggedCommit): void {
    this.#commits.push(commit);
    if (this.#size <= this.#keptMax) return;
    this.#first++;
    this.#horizon++;
    if (this.#first - this.#cleared >= CLEARED_TOGETHER) this.#clearForgotten();
  }

  /** Appends a patch to its document's list of writes. */
  follow(trail: WriteTrail, patch: LoggedPatch, commit: LoggedCommit): void {
    const earlier = trail.newest;
    patch.commit = commit;
    patch.trail = trail;
    trail.newest = patch;
    if (earlier === undefined) return;
    patch.earlier = earlier;
    patch.earlierByOther = earlier.commit?.session === commit.session ? earlier.earlierByOther : earlier;
  }

  /** At most `limit` commits after the sequence; undefined if some of them are dropped. */
  after(sequence: number, limit: number): FeedCommit[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const from = this.#first + sequence - this.#horizon;
    return this.#commits.slice(from, from + limit).map(({ sequence, session, localSequence, patches, labels }) => ({
      sequence,
      session,
      localSequence,
      patches: patches.map(({ scope, id, operations }) => ({ scope, id, operations: copyOperations(operations) })),
      labels: copyStored(labels),
    }));
  }

  /** The paths that other sessions wrote to a document after the sequence; undefined if the log does not reach back. */
  writtenSince(
    trail: WriteTrail | undefined,
    sequence: number,
    exceptSession: string | undefined,
  ): readonly Path[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const paths: Path[] = [];
    // Newest first: a reader is rarely far behind, and the list may be long.
    let patch = trail?.newest;
    while (patch?.commit !== undefined && patch.commit.sequence > sequence) {
      const isExcepted = patch.commit.session === exceptSession;
      if (!isExcepted) for (const { path } of patch.operations) paths.push(path);
      patch = isExcepted ? patch.earlierByOther : patch.earlier;
    }
    return paths;
  }

  /**
   * Whether a commit after the sequence created or removed a document of the set; undefined if the log does not reach
   * back.
   */
  membersChanged(scope: string, prefix: string, sequence: number): boolean | undefined {
    if (sequence < this.#horizon) return undefined;
    for (let at = this.#first + sequence - this.#horizon; at < this.#commits.length; at++) {
      for (const patch of (this.#commits[at] as LoggedCommit).patches)
        if (patch.turns && patch.scope === scope && patch.id.startsWith(prefix)) return true;
    }
    return false;
  }

  /** Forgets all commits; the log continues after a sequence. */
  restart(sequence: number): void {
    this.#first = this.#commits.length;
    this.#clearForgotten();
    this.#commits = [];
    this.#first = 0;
    this.#cleared = 0;
    this.#horizon = sequence;
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

/**
 * Removes the references of a dropped commit: later patches link to it, so the garbage collector would keep its
 * referents.
 */
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
