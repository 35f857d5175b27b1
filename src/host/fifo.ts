/**
 * A queue for lanes, mailboxes and held events: a growing ring buffer, so that a steady flow allocates no memory.
 */

/** A power of two, like every size of the ring. */
const START_SIZE = 16;
/** An empty ring up to this size is kept. */
const KEPT_SIZE = 1_024;

export class Fifo<T> {
  #ring: (T | undefined)[] = empty(START_SIZE);
  #first = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: T): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[(this.#first + this.#length++) & (this.#ring.length - 1)] = item;
  }

  /** The oldest element, without removing it. */
  peek(): T | undefined {
    return this.#length === 0 ? undefined : this.#ring[this.#first];
  }

  /** Removes the oldest element. */
  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#ring[this.#first];
    this.#ring[this.#first] = undefined;
    this.#first = (this.#first + 1) & (this.#ring.length - 1);
    if (--this.#length === 0 && this.#ring.length > KEPT_SIZE) this.clear();
    return item;
  }

  /** Removes the newest element. */
  pop(): T | undefined {
    if (this.#length === 0) return undefined;
    const last = (this.#first + --this.#length) & (this.#ring.length - 1);
    const item = this.#ring[last];
    this.#ring[last] = undefined;
    return item;
  }

  /** From the oldest on. */
  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#length; i++) yield this.#ring[(this.#first + i) & (this.#ring.length - 1)] as T;
  }

  clear(): void {
    this.#ring = empty(START_SIZE);
    this.#first = 0;
    this.#length = 0;
  }

  #grow(): void {
    const inOrder = [...this.#ring.slice(this.#first), ...this.#ring.slice(0, this.#first)];
    this.#ring = inOrder.concat(empty(inOrder.length));
    this.#first = 0;
  }
}

function empty<T>(size: number): (T | undefined)[] {
  return new Array<T | undefined>(size).fill(undefined);
}
