/**
 * The runs that this process holds, in the order they came, as a list that goes through the runs themselves.
 *
 * A run that leaves takes its links with it. The tables of a `Set` do not: each that it outgrows while a burst comes
 * in, and each that it shrinks out of afterwards, is garbage that goes on naming its runs, so that they and their
 * events are copied by every minor collection until a major one.
 */
import type { EventRun } from "./event-run.ts";

export class RunList implements Iterable<EventRun> {
  #first: EventRun | undefined;
  #last: EventRun | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(run: EventRun): void {
    run.before = this.#last;
    if (this.#last === undefined) this.#first = run;
    else this.#last.after = run;
    this.#last = run;
    this.#size++;
  }

  /** Takes out a run that is in the list. */
  remove(run: EventRun): void {
    const { before, after } = run;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    run.before = undefined;
    run.after = undefined;
    this.#size--;
  }

  *[Symbol.iterator](): Generator<EventRun> {
    for (let run = this.#first; run !== undefined; run = run.after) yield run;
  }
}
