/**
 * Numbers the journal rows of one store object. Normally all store objects of a disk share lane 0, without gaps. On a
 * laned disk each has its own lane, as the processes on a database server do: an id is `n * 4096 + lane`, and `n` is
 * greater than that of every row that the store object has seen. So ids are causal, and a row with a smaller id may
 * appear later. SPEC: J10, J170, J171.
 */
import { JOURNAL_LANES_MAX } from "../../limits.ts";
import type { LaneWriter } from "./journal-table.ts";

export class MemoryLane implements LaneWriter {
  readonly lane: number;
  readonly #isLaned: boolean;
  /** The greatest `n` that was seen. */
  #seen = 0;

  constructor(lane: number, isLaned: boolean) {
    this.lane = lane;
    this.#isLaned = isLaned;
  }

  next(previous: number): number {
    if (!this.#isLaned) return previous + 1;
    this.see(previous);
    this.#seen++;
    return this.#seen * JOURNAL_LANES_MAX + this.lane;
  }

  /** The store object has answered with this id. */
  see(id: number): void {
    this.#seen = Math.max(this.#seen, Math.floor(id / JOURNAL_LANES_MAX));
  }
}
