/**
 * A transaction across awaits (`space.begin`): a handle on an attempt (`work/attempt.ts`). Computed values have their
 * value from before its writes, and it depends on their inputs. A computed value that cannot be brought up to date at
 * once is refused. SPEC: R29.
 */
import { INSPECT } from "../message/inspect.ts";
import { ComputedError } from "../scheduler/computed-error.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { narrowed } from "../store/clearance.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { type Label, labelOf } from "../store/label.ts";
import { rejected } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { Attempt } from "../work/attempt.ts";
import type { Cell, ListCell } from "./cell.ts";
import { commitAttempt } from "./transact.ts";

/** Options of `space.begin`. */
export interface BeginOptions {
  /** Labels that the transaction may read; default all. */
  readonly clearance?: readonly string[];
  /** Its initial label: that of the message which it handles. */
  readonly label?: Label;
}

const NOT_LOADED = rejected("stale", "read-moved", "it read documents of other spaces before they were loaded");

/** A transaction that code opens and commits by itself. Made by `space.begin`. */
export class CellTransaction implements Disposable {
  readonly #attempt: Attempt;
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler, replica: Replica, { clearance, label }: BeginOptions = {}) {
    const mayKnow = narrowed(clearance === undefined ? undefined : labelOf(clearance));
    const kind = scheduler.attemptsOf("a transaction", mayKnow, { onBehind: notUpToDate });
    this.#scheduler = scheduler;
    this.#attempt = new Attempt(kind, label === undefined ? { replica } : { replica, label });
  }

  /** The label of its reads so far, joined with the label that it began with. */
  get label(): Label {
    return this.#attempt.label;
  }

  /** The value with the transaction's own writes. */
  get<T>(cell: Cell<T>): T {
    return this.#within(() => cell.get());
  }

  set<T>(cell: Cell<T>, value: T): void {
    this.#within(() => cell.set(value));
  }

  /** Replaces the value by the result of `change`. */
  update<T>(cell: Cell<T>, change: (value: T) => T): void {
    this.#within(() => cell.update(change));
  }

  delete(cell: Cell<unknown>): void {
    this.#within(() => cell.delete());
  }

  /** Adds elements at the end of a list. */
  push<E>(cell: ListCell<E>, ...items: NoInfer<E>[]): void {
    this.#within(() => cell.push(...items));
  }

  /** Replaces elements of a list. */
  splice<E>(cell: ListCell<E>, index: number, remove: number, ...items: NoInfer<E>[]): void {
    this.#within(() => cell.splice(index, remove, ...items));
  }

  /** Applies everything at once; resolves when it is durable, or was rejected. */
  commit(): Promise<CommitOutcome> {
    const attempt = this.#attempt;
    attempt.requireOpen();
    if (attempt.unready?.kind === "nodes") throw notUpToDate(attempt.unready.read.address);
    attempt.seal();
    const outcome = commitAttempt(attempt).outcome ?? Promise.resolve(NOT_LOADED);
    void outcome.then((answer) => {
      if (answer.kind === "committed") attempt.lineage.confirm();
      else attempt.lineage.fail(answer.message);
    });
    return outcome;
  }

  abort(): void {
    if (!this.#attempt.isOver) this.#attempt.abort("the transaction was aborted");
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  [INSPECT](): string {
    return `CellTransaction of space ${this.#attempt.replica.space}`;
  }

  #within<T>(code: () => T): T {
    return this.#scheduler.within(this.#attempt, code);
  }
}

function notUpToDate(place: { toString(): string }): ComputedError {
  return new ComputedError(
    "COMPUTED_BEHIND",
    `${place} is not up to date: an input waits for a gate, a load or an asynchronous run; pull it first, and begin again`,
  );
}
