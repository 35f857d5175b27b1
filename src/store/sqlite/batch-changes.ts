/**
 * Records which spaces and tables the jobs of a batch have changed. Watchers are notified when the batch is durable,
 * and of writes by other processes when they are noticed; the upkeep is notified of commits. SPEC: S23.
 */
import type { CommitOutcome, CommitRequest } from "../commit.ts";
import { ALL_ROWS, noteOfCommit, UntoldWrites, type WriteNote } from "../write-note.ts";
import type { WriterEvents } from "./group-commit.ts";
import type { Tables } from "./tables.ts";
import type { ChangeWatch } from "./watch.ts";

export class BatchChanges implements WriterEvents {
  readonly #tables: Tables;
  readonly #watch: ChangeWatch;
  /** Receives the changed spaces and the number of commits of a batch. */
  readonly #committed: (spaces: Iterable<string>, commits: number) => void;
  /** Of the current batch. `isMeasured`: a document was refused for its size and is due for a snapshot. */
  #touched = { writes: new UntoldWrites(), isMeasured: false, commits: 0 };
  /** Watchers have been notified of this many commits. */
  #commitsTold: number;
  #historyTold: string;

  constructor(tables: Tables, watch: ChangeWatch, committed: (spaces: Iterable<string>, commits: number) => void) {
    this.#tables = tables;
    this.#watch = watch;
    this.#committed = committed;
    this.#commitsTold = tables.commits.count();
    this.#historyTold = tables.history;
  }

  /** A space moved without a caller's commit. */
  moved(space: string): void {
    this.#touched.writes.add({ ...ALL_ROWS, space });
    this.#touched.commits++;
  }

  journal(note: WriteNote): void {
    this.#touched.writes.add(note);
  }

  commit(request: CommitRequest, moves: boolean, outcome: CommitOutcome): void {
    if (outcome.kind === "rejected")
      this.#touched.isMeasured ||= outcome.reason === "too-large" || outcome.reason === "store-busy";
    if (outcome.kind !== "committed" || outcome.replayed) return;
    this.#touched.commits++;
    this.#touched.writes.add(noteOfCommit(request, moves ? outcome.sequence : undefined));
  }

  foreignWrite(): void {
    if (!this.#watch.isListenedTo) return;
    const told = this.#commitsTold;
    this.#commitsTold = this.#tables.commits.count();
    const isOtherHistory = this.#tables.history !== this.#historyTold;
    this.#historyTold = this.#tables.history;
    this.#watch.noteForeign(isOtherHistory ? [] : this.#tables.commits.movedAfter(told), isOtherHistory);
  }

  written(): void {
    const { writes, isMeasured, commits } = this.#touched;
    this.#touched = { writes: new UntoldWrites(), isMeasured: false, commits: 0 };
    if (!writes.isEmpty) this.#watch.note(writes);
    if (commits === 0 && !isMeasured) return;
    if (this.#watch.isListenedTo) this.#commitsTold = this.#tables.commits.count();
    this.#committed(writes.spaces, commits);
  }
}
