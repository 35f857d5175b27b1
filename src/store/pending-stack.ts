/**
 * The pending commits of a replica, in the order they were applied. An array, not a `Map`: a map through which entries pass
 * leaves a chain of dead tables behind that keeps the young garbage alive, which was half of the cost of a commit.
 */
import type { PendingCommit } from "./pending-commit.ts";

export class PendingStack implements Iterable<PendingCommit> {
  /** By ascending local sequence. */
  readonly #commits: PendingCommit[] = [];

  get size(): number {
    return this.#commits.length;
  }

  [Symbol.iterator](): Iterator<PendingCommit> {
    return this.#commits.values();
  }

  /** Adds the newest. */
  push(commit: PendingCommit): void {
    this.#commits.push(commit);
  }

  get(localSequence: number): PendingCommit | undefined {
    const index = this.#indexOf(localSequence);
    return index < 0 ? undefined : this.#commits[index];
  }

  delete(localSequence: number): void {
    const index = this.#indexOf(localSequence);
    if (index === 0) this.#commits.shift();
    else if (index > 0) this.#commits.splice(index, 1);
  }

  #indexOf(localSequence: number): number {
    // The oldest is asked for most.
    if (this.#commits[0]?.localSequence === localSequence) return 0;
    let low = 1;
    let high = this.#commits.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = (this.#commits[middle] as PendingCommit).localSequence;
      if (found === localSequence) return middle;
      if (found < localSequence) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }
}
