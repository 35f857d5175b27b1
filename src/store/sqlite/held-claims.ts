/**
 * Claims that are known to be held because this process wrote them and nobody has written since, and which of them are done. A
 * settle of such a claim needs no look, and is written with all others of its batch: a row costs 1 us in a range of
 * neighbours and 3 us by itself.
 *
 *   unknown ──hold──> held ──done──> to be written ──take──> unknown
 */
import type { Ending } from "../journal.ts";
import { isSameEnding } from "./id-ranges.ts";

interface Claimed {
  readonly lease: number;
  readonly attempt: number;
}

/** Rows of one batch that were settled as done and ended alike. */
export interface DoneRows {
  /** When the first of them was: a batch counts as one moment. */
  readonly atMs: number;
  readonly ending: Ending | undefined;
  readonly ids: number[];
}

/** More are in flight hardly ever; what is not known is looked up. */
const HELD_MAX = 100_000;

export class HeldClaims {
  readonly #held = new Map<number, Claimed>();
  /** The claim that was added last: neighbours have the same lease and attempt and share it. */
  #newest: Claimed = { lease: 0, attempt: 0 };
  #done: DoneRows[] = [];

  hold(id: number, lease: number, attempt: number): void {
    if (this.#held.size >= HELD_MAX) this.#held.clear();
    if (this.#newest.lease !== lease || this.#newest.attempt !== attempt) this.#newest = { lease, attempt };
    this.#held.set(id, this.#newest);
  }

  /** False when that is not known. */
  isHeld({ id, lease, attempt }: Claimed & { readonly id: number }): boolean {
    const held = this.#held.get(id);
    return held !== undefined && held.lease === lease && held.attempt === attempt;
  }

  /** Settles a claim that is held. */
  done(id: number, ending: Ending | undefined, atMs: number): void {
    this.#held.delete(id);
    const group = this.#done.at(-1);
    if (group && isSameEnding(group.ending, ending)) group.ids.push(id);
    else this.#done.push({ atMs, ending, ids: [id] });
  }

  /** What is to be written, in the order it was settled. */
  takeDone(): readonly DoneRows[] {
    const taken = this.#done;
    if (taken.length > 0) this.#done = [];
    return taken;
  }

  release(id: number): void {
    this.#held.delete(id);
  }

  /** Drops everything that is known; what is to be written was taken, or is not to be. */
  forget(): void {
    this.#held.clear();
    this.#done = [];
  }
}
