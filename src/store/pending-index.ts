/**
 * Finds the pending shares of one document that a path stands on, without looking at all of them: by the first step of the paths
 * they write. A document has one only while many shares are pending on it.
 *
 * A share that replaces the whole document hides the older ones: whoever stands on it stands on them by itself.
 */
import type { Path } from "../message/path.ts";
import type { ReadDepth } from "./commit.ts";
import { NONE, withOne } from "./few.ts";
import { isPrefix, writeTouchesRead } from "./path-operation.ts";
import type { PendingCommit, PendingShare } from "./pending-commit.ts";

/** The commits that one commit stands on, each once; made anew for every commit. */
export class Foundation {
  static #count = 0;
  #found: readonly number[] = NONE;
  readonly #mark = ++Foundation.#count;

  add(commit: PendingCommit): void {
    // A mark instead of a set: every commit over a pending one pays for this.
    if (commit.mark === this.#mark) return;
    commit.mark = this.#mark;
    this.#found = withOne(this.#found, commit.localSequence);
  }

  get localSequences(): readonly number[] {
    return this.#found.length < 2 ? this.#found : this.#found.toSorted((a, b) => a - b);
  }
}

/** Empty lists are kept up to here: a map through which entries pass is dear to the garbage collector (`commit-list.ts`). */
const EMPTY_LISTS_MAX = 10_000;

export class PendingIndex {
  /** Shares that write at the empty path, oldest first. */
  readonly #whole: PendingShare[] = [];
  /** Shares that write below a first step, oldest first, each once. */
  readonly #below = new Map<string, PendingShare[]>();

  constructor(shares: readonly PendingShare[]) {
    for (const share of shares) this.add(share);
  }

  add(share: PendingShare): void {
    for (const { path } of share.operations) {
      const list = this.#list(path);
      if (list.at(-1) !== share) list.push(share);
    }
  }

  remove(share: PendingShare): void {
    for (const { path } of share.operations) {
      const list = this.#list(path);
      const index = list.indexOf(share);
      // The oldest is confirmed first.
      if (index === 0) list.shift();
      else if (index > 0) list.splice(index, 1);
      if (list.length === 0 && this.#below.size > EMPTY_LISTS_MAX) this.#below.delete(path[0] as string);
    }
  }

  /** Adds the commits that a read of that depth at the path stands on. False when it takes a look at all shares instead. */
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

  #list(path: Path): PendingShare[] {
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

/** Looks at shares after a local sequence, newest first; true when one was found that wrote all of what was read. */
export function addBeneath(
  shares: readonly PendingShare[],
  path: Path,
  depth: ReadDepth,
  foundation: Foundation,
  after = 0,
): boolean {
  for (let i = shares.length - 1; i >= 0; i--) {
    const { commit, operations } = shares[i] as PendingShare;
    if (commit.localSequence <= after) return false;
    for (const operation of operations) {
      if (!writeTouchesRead(operation.path, path, depth)) continue;
      foundation.add(commit);
      // It wrote all of what was read, and itself stands on whatever was there before.
      if (isPrefix(operation.path, path)) return true;
      break;
    }
  }
  return false;
}
