/**
 * Commits of one session by their local sequence: they come in ascending order and mostly leave in it. An array, not a `Map`: a map through
 * which entries pass leaves a chain of dead tables behind that keeps the young garbage alive, which was half of the cost of a commit.
 */

/** Fewer empty places than this are not worth another array. */
const LEFT_MIN = 32;

export class CommitList<T extends { readonly localSequence: number }> implements Iterable<T> {
  /** Ascending, from `#first` on: what has left at the front is cut off now and then, not one by one. */
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
    // Cut off when it is more than what is left: each is moved once at most.
    if (this.#first < LEFT_MIN || this.#first * 2 < this.#commits.length) return;
    this.#commits = this.#commits.slice(this.#first);
    this.#first = 0;
  }

  /** Where a commit of that sequence stands, or would. */
  #placeOf(localSequence: number): number {
    let low = this.#first;
    let high = this.#commits.length;
    // A new one, mostly. Looking for its place would touch commits that nothing else has touched for long.
    if (low === high || this.#sequenceAt(high - 1) < localSequence) return high;
    // Mostly there are no gaps: then it stands as far from the first as its number says.
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
