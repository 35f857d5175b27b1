/**
 * The effect of a write as listeners of `Store.watch` need it, and its collection until they are notified. From it a
 * listener knows that a write of its own store object left it no work, and does not read the store. SPEC: S23, S275.
 */
import type { CommitRequest } from "./commit.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import type { StoreChange } from "./store.ts";

export interface WriteNote {
  /** Absent if no space has moved. */
  readonly space?: string;
  /** The sequence of the space after the write. Absent if unknown. */
  readonly sequence?: number;
  /** Whether journal or due rows have changed. */
  readonly journal: boolean;
  /** Whether the write left rows that a bus can claim. */
  readonly claimable: boolean;
  /** Whether due rows have changed. */
  readonly due: boolean;
}

/** Journal rows were settled, and no row became claimable. */
export const SETTLED: WriteNote = { journal: true, claimable: false, due: false };
export const CLAIMABLE: WriteNote = { journal: true, claimable: true, due: false };
export const DUE: WriteNote = { journal: true, claimable: false, due: true };
export const ALL_ROWS: WriteNote = { journal: true, claimable: true, due: true };

export function noteOfAppend(entries: readonly JournalEntry[]): WriteNote {
  return entries.some(isPending) ? CLAIMABLE : SETTLED;
}

export function noteOfSettle(settlements: readonly Settlement[]): WriteNote {
  return settlements.some(leavesRow) ? CLAIMABLE : SETTLED;
}

/** `sequence` is undefined if the commit did not move its space. */
export function noteOfCommit({ space, entries, settlements, due }: CommitRequest, sequence?: number): WriteNote {
  return {
    ...(sequence === undefined ? {} : { space, sequence }),
    journal: entries.length > 0 || settlements.length > 0 || due.length > 0,
    claimable: entries.some(isPending) || settlements.some(leavesRow),
    due: due.length > 0,
  };
}

function isPending({ as }: JournalEntry): boolean {
  return as.status === "pending";
}

/** Whether the row may be claimed again. */
function leavesRow({ outcome: { kind } }: Settlement): boolean {
  return kind === "release" || kind === "retry" || kind === "waits";
}

/** Notes that listeners have not been told. */
export class UntoldWrites {
  /** The latest sequence of each space; infinite if unknown. */
  readonly #sequences = new Map<string, number>();
  #journal = false;
  #claimable = false;
  #due = false;

  add({ space, sequence = Number.POSITIVE_INFINITY, journal, claimable, due }: WriteNote): void {
    if (space !== undefined) this.#sequences.set(space, Math.max(sequence, this.#sequences.get(space) ?? 0));
    this.#journal ||= journal;
    this.#claimable ||= claimable;
    this.#due ||= due;
  }

  addAll(other: UntoldWrites): void {
    for (const [space, sequence] of other.#sequences) this.add({ ...SETTLED, journal: false, space, sequence });
    this.add({ journal: other.#journal, claimable: other.#claimable, due: other.#due });
  }

  get isEmpty(): boolean {
    return this.#sequences.size === 0 && !this.#journal;
  }

  get spaces(): Iterable<string> {
    return this.#sequences.keys();
  }

  /** The notice if this store object made all the changes, and if not. */
  notice(isForeign: boolean): StoreChange {
    const change = { spaces: [...this.#sequences.keys()], journal: this.#journal };
    if (isForeign) return { ...change, isForeign };
    return { ...change, own: { sequences: this.#sequences, claimable: this.#claimable, due: this.#due } };
  }
}
