/** The findings of `verify`: counts, and the first problems. A store's walk of its data is a subclass. */
import type { VerifyReport } from "./journal.ts";

export const PROBLEMS_MAX = 100;

export class Findings {
  rowCount = 0;
  /** Journal rows without a hash. */
  unsignedCount = 0;
  documentCount = 0;
  readonly #problems: string[] = [];

  note(problem: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(problem);
  }

  report(): VerifyReport {
    const { rowCount: rows, unsignedCount: unsigned, documentCount: documents } = this;
    return { ok: this.#problems.length === 0, rows, unsigned, documents, problems: this.#problems };
  }
}
