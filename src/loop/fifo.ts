/** A queue: lanes, mailboxes, microtasks. Taking from the front moves an index; the array is trimmed now and then. */

/** Taken entries that may stay at the front of the array before it is trimmed. */
const TRIM_AT = 1_024;

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#first === this.#items.length) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first++] = undefined;
    if (this.#first === this.#items.length) {
      this.#items.length = 0;
      this.#first = 0;
    } else if (this.#first >= TRIM_AT && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#first = 0;
  }
}
