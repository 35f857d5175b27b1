/**
 * Finds the pending shares of one document that a path depends on, by the first step of their paths. Exists only while
 * many shares are pending on the document.
 *
 * A share that replaces the whole document hides older ones: a dependency on it includes them.
 */
import type { Path } from "../message/path.ts";
import type { Commit, Committed } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { isPrefix, type PathOperation, type ReadDepth, writeTouchesRead } from "./path-operation.ts";
import { NONE, withOne } from "./small-list.ts";

/** A pending commit, as the documents that it changes see it. */
export interface StackedCommit extends Commit {
  /** Mark of the last `Foundation` that counted it. */
  mark: number;
  /** The backend's answer, while it waits for the feed to reach it. */
  readonly answer: Committed | undefined;
}

/** The operations of a pending commit on one document, and their inverses. */
export interface StackedShare {
  readonly commit: StackedCommit;
  readonly document: DocumentRef;
  readonly operations: readonly PathOperation[];
  /** Undo the operations, last first; replaced whenever the share is applied again on another base. */
  inverses: PathOperation[];
}

/** The commits that one commit depends on, each once; a new object for every commit. */
export class Foundation {
  static #count = 0;
  #found: readonly number[] = NONE;
  readonly #mark = ++Foundation.#count;

  add(commit: StackedCommit): void {
    // A mark instead of a set, because every commit over a pending one pays for this.
    if (commit.mark === this.#mark) return;
    commit.mark = this.#mark;
    this.#found = withOne(this.#found, commit.localSequence);
  }

  get localSequences(): readonly number[] {
    return this.#found.length < 2 ? this.#found : this.#found.toSorted((a, b) => a - b);
  }
}

/**
 * Up to this many empty lists stay: deleting and adding map entries is expensive for the garbage collector
 * (`commit-list.ts`).
 */
const EMPTY_LISTS_MAX = 10_000;

export class PendingIndex {
  /** Shares that write at the empty path, oldest first. */
  readonly #whole: StackedShare[] = [];
  /** Shares that write below a first step, oldest first, each once. */
  readonly #below = new Map<string, StackedShare[]>();

  constructor(shares: readonly StackedShare[]) {
    for (const share of shares) this.add(share);
  }

  add(share: StackedShare): void {
    for (const { path } of share.operations) {
      const list = this.#list(path);
      if (list.at(-1) !== share) list.push(share);
    }
  }

  remove(share: StackedShare): void {
    for (const { path } of share.operations) {
      const list = this.#list(path);
      const index = list.indexOf(share);
      // The oldest is confirmed first.
      if (index === 0) list.shift();
      else if (index > 0) list.splice(index, 1);
      if (list.length === 0 && this.#below.size > EMPTY_LISTS_MAX) this.#below.delete(path[0] as string);
    }
  }

  /** Adds the commits that a read of that depth at the path depends on. Returns false if all shares must be scanned. */
  addBeneath(path: Path, depth: ReadDepth, foundation: Foundation): boolean {
    const first = path[0];
    if (first === undefined && depth !== "reach") return false;
    const whole = this.#whole.at(-1);
    const below = (first === undefined ? undefined : this.#below.get(first)) ?? NONE;
    if (!addBeneath(below, path, depth, foundation, whole?.commit.localSequence ?? 0) && whole) {
      foundation.add(whole.commit);
    }
    return true;
  }

  #list(path: Path): StackedShare[] {
    const first = path[0];
    if (first === undefined) return this.#whole;
    let list = this.#below.get(first);
    if (!list) {
      list = [];
      this.#below.set(first, list);
    }
    return list;
  }
}

/** Scans shares after a local sequence, newest first; returns true at one that wrote the whole value that was read. */
export function addBeneath(
  shares: readonly StackedShare[],
  path: Path,
  depth: ReadDepth,
  foundation: Foundation,
  after = 0,
): boolean {
  for (let i = shares.length - 1; i >= 0; i--) {
    const { commit, operations } = shares[i] as StackedShare;
    if (commit.localSequence <= after) return false;
    for (const operation of operations) {
      if (!writeTouchesRead(operation.path, path, depth)) continue;
      foundation.add(commit);
      // It wrote the whole value that was read, and depends on the earlier writes itself.
      if (isPrefix(operation.path, path)) return true;
      break;
    }
  }
  return false;
}
