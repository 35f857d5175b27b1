/**
 * Finds the pending shares of one document that a path stands on, without looking at all of them: by the first step of the paths
 * they write. A document has one only while many shares are pending on it.
 *
 * A share that replaces the whole document hides the older ones: whoever stands on it stands on them by itself.
 */
import type { Path } from "../message/path.ts";
import type { ReadDepth } from "./commit.ts";
import { isPrefix, writeTouchesRead } from "./path-operation.ts";
import type { PendingShare } from "./pending-commit.ts";

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
      if (list.length === 0 && path.length > 0) this.#below.delete(path[0] as string);
    }
  }

  /** Adds the commits that a read of that depth at the path stands on. False when it takes a look at all shares instead. */
  addBeneath(path: Path, depth: ReadDepth, found: Set<number>): boolean {
    const [first] = path;
    if (first === undefined && depth !== "reach") return false;
    const whole = this.#whole.at(-1);
    const below = first === undefined ? [] : (this.#below.get(first) ?? []);
    if (!addBeneath(below, path, depth, found, whole?.commit.localSequence ?? 0) && whole) {
      found.add(whole.commit.localSequence);
    }
    return true;
  }

  #list(path: Path): PendingShare[] {
    const [first] = path;
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
  found: Set<number>,
  after = 0,
): boolean {
  for (let i = shares.length - 1; i >= 0; i--) {
    const { commit, operations } = shares[i] as PendingShare;
    if (commit.localSequence <= after) return false;
    for (const operation of operations) {
      if (!writeTouchesRead(operation.path, path, depth)) continue;
      found.add(commit.localSequence);
      // It wrote all of what was read, and itself stands on whatever was there before.
      if (isPrefix(operation.path, path)) return true;
      break;
    }
  }
  return false;
}
