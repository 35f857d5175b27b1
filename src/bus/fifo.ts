/** A queue on an array with a moving head: `Array.shift` moves every element once the array is long. */

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  /** Items before it are taken. */
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Takes the oldest. */
  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) this.#reset([]);
    else if (this.#head >= 1_024 && this.#head * 2 > this.#items.length) this.#reset(this.#items.slice(this.#head));
    return item;
  }

  /** Takes the newest. */
  pop(): T | undefined {
    return this.length === 0 ? undefined : this.#items.pop();
  }

  #reset(items: (T | undefined)[]): void {
    this.#items = items;
    this.#head = 0;
  }
}
