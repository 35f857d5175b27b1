/** Checks of a test about the runs of a node. A failed check throws, with a list of the runs and their reasons. */

import type { Scheduler } from "../scheduler/scheduler.ts";
import type { TraceEntry } from "../scheduler/trace.ts";

/** Runs that a message lists. */
const LISTED_MAX = 20;

/** Assertions about the runs of one node in a test. */
export class RanExpectation {
  readonly #id: string;
  readonly #all: readonly TraceEntry[];
  readonly #own: readonly TraceEntry[];

  /** Throws unless the node has run. */
  constructor(id: string, runs: readonly TraceEntry[], scheduler: Scheduler) {
    this.#id = id;
    this.#all = runs;
    this.#own = runs.filter(({ node }) => node === id);
    if (this.#own.length > 0) return;
    const why = scheduler.whyNot(id);
    const reason = why.kind === "unknown" ? `there is no node of that name, only ${names(scheduler)}` : why.message;
    throw new Error(`expected "${id}" to have run, and it did not: ${reason}\n${this.#listed()}`);
  }

  static none(id: string, runs: readonly TraceEntry[]): void {
    const own = runs.filter(({ node }) => node === id);
    if (own.length === 0) return;
    throw new Error(`expected "${id}" not to have run, and it did:\n${own.map(line).join("\n")}`);
  }

  /** Throws unless one of its runs was caused by a change of this place: a cell, or its name. */
  because(place: { toString(): string }): this {
    const cause = String(place);
    if (this.#own.some(({ because }) => because.includes(cause))) return this;
    throw new Error(
      `expected "${this.#id}" to have run because of "${cause}", and it did not. Its runs:\n${this.#own.map(line).join("\n")}\n${this.#listed()}`,
    );
  }

  /** Throws unless it has run this often. */
  times(count: number): this {
    if (this.#own.length === count) return this;
    const runs = this.#own.map(line).join("\n");
    throw new Error(`expected "${this.#id}" to have run ${count} times, and it ran ${this.#own.length}:\n${runs}`);
  }

  #listed(): string {
    if (this.#all.length === 0) return "No node ran.";
    const more = this.#all.length > LISTED_MAX ? `\n  and ${this.#all.length - LISTED_MAX} more` : "";
    return `All runs:\n${this.#all.slice(0, LISTED_MAX).map(line).join("\n")}${more}`;
  }
}

function line({ node, kind, because, detail }: TraceEntry): string {
  const reason = because.length === 0 ? "for the first time" : `because of ${because.join(", ")}`;
  return `  ${node} ${kind} ${reason}${detail === undefined ? "" : `: ${detail}`}`;
}

function names(scheduler: Scheduler): string {
  const all = scheduler.getGraphSnapshot().map(({ id }) => `"${id}"`);
  return all.length === 0 ? "no node" : all.slice(0, LISTED_MAX).join(", ");
}
