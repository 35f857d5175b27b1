/**
 * Claims that are known to be held because this process wrote them and no other process has written since, and those of
 * them that are done. Settling such a claim needs no lookup and is written with the whole batch: a row costs 1 us in a
 * range of neighbours and 3 us alone.
 *
 *   unknown ──hold──> held ──done──> to be written ──take──> unknown
 */
import type { Ending } from "../journal.ts";
import { isSameEnding } from "./id-ranges.ts";

interface Claimed {
  readonly lease: number;
  readonly attempt: number;
}

/** Rows of one batch that were settled as done with the same ending. */
export interface DoneRows {
  /** The time of the first one: a batch counts as one moment. */
  readonly atMs: number;
  readonly ending: Ending | undefined;
  readonly ids: number[];
}

/** More are hardly ever in flight; unknown claims are looked up. */
const HELD_MAX = 100_000;

export class HeldClaims {
  readonly #held = new Map<number, Claimed>();
  /** The last claim: neighbours with the same lease and attempt share it. */
  #newest: Claimed = { lease: 0, attempt: 0 };
  #done: DoneRows[] = [];

  hold(id: number, lease: number, attempt: number): void {
    if (this.#held.size >= HELD_MAX) this.#held.clear();
    if (this.#newest.lease !== lease || this.#newest.attempt !== attempt) this.#newest = { lease, attempt };
    this.#held.set(id, this.#newest);
  }

  /** False if it is not known to be held. */
  isHeld({ id, lease, attempt }: Claimed & { readonly id: number }): boolean {
    const held = this.#held.get(id);
    return held !== undefined && held.lease === lease && held.attempt === attempt;
  }

  /** Settles a held claim as done. */
  done(id: number, ending: Ending | undefined, atMs: number): void {
    this.#held.delete(id);
    const group = this.#done.at(-1);
    if (group && isSameEnding(group.ending, ending)) group.ids.push(id);
    else this.#done.push({ atMs, ending, ids: [id] });
  }

  /** The rows to write, in the order of settlement. */
  takeDone(): readonly DoneRows[] {
    const taken = this.#done;
    if (taken.length > 0) this.#done = [];
    return taken;
  }

  release(id: number): void {
    this.#held.delete(id);
  }

  /** Clears all state; unwritten rows were taken before, or are discarded. */
  forget(): void {
    this.#held.clear();
    this.#done = [];
  }
}
