/**
 * Commits of one session by local sequence, which are added and mostly removed in ascending order. An array, because a
 * `Map` with passing entries leaves dead tables behind that keep young garbage alive; that was half of the cost of a
 * commit.
 */

/** With fewer empty places the array is not compacted. */
const LEFT_MIN = 32;

export class CommitList<T extends { readonly localSequence: number }> implements Iterable<T> {
  /** Ascending from `#first` on. Removed entries at the front are cut off in bulk. */
  #commits: (T | undefined)[] = [];
  #first = 0;

  get size(): number {
    return this.#commits.length - this.#first;
  }

  [Symbol.iterator](): Iterator<T> {
    return (this.#commits.slice(this.#first) as T[]).values();
  }

  add(commit: T): void {
    const last = this.#commits[this.#commits.length - 1];
    if (last === undefined || last.localSequence < commit.localSequence) this.#commits.push(commit);
    else this.#commits.splice(this.#placeOf(commit.localSequence), 0, commit);
  }

  get(localSequence: number): T | undefined {
    const found = this.#commits[this.#placeOf(localSequence)];
    return found?.localSequence === localSequence ? found : undefined;
  }

  delete(localSequence: number): void {
    const place = this.#placeOf(localSequence);
    if (this.#commits[place]?.localSequence !== localSequence) return;
    if (place > this.#first) {
      this.#commits.splice(place, 1);
      return;
    }
    this.#commits[this.#first++] = undefined;
    // Compacted when more than half is empty, so each entry is moved at most once on average.
    if (this.#first < LEFT_MIN || this.#first * 2 < this.#commits.length) return;
    this.#commits = this.#commits.slice(this.#first);
    this.#first = 0;
  }

  /** The index of a commit with this sequence, or its insertion point. */
  #placeOf(localSequence: number): number {
    let low = this.#first;
    let high = this.#commits.length;
    // Mostly a new commit. A binary search would touch commits that are no longer in the CPU cache.
    if (low === high || this.#sequenceAt(high - 1) < localSequence) return high;
    // Mostly there are no gaps, so the index follows from the number.
    const guess = low + localSequence - this.#sequenceAt(low);
    if (guess >= low && guess < high && this.#sequenceAt(guess) === localSequence) return guess;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#sequenceAt(middle) < localSequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #sequenceAt(place: number): number {
    return (this.#commits[place] as T).localSequence;
  }
}
