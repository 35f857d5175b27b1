/**
 * Plain writes that leave their handler, on engines without an async context. There, code after an `await` does not
 * know its handler, and
 * its plain write is a commit of its own. Such a write is reported, once for each handler, if an asynchronous handler
 * that still runs has
 * read or written the same document. On other engines nothing is added here. SPEC: U46, U120.
 */
import type { Attempt, Home } from "../work/attempt.ts";
import { WorkError } from "../work/work-error.ts";
import type { Introspection } from "./introspection.ts";

export class Escapes {
  /** Attempts whose handlers have returned a promise; those that are over are removed later. */
  readonly #awaited = new Set<Attempt>();
  /** Names of handlers that were reported. */
  readonly #reported = new Set<string>();
  readonly #introspection: Introspection;

  constructor(introspection: Introspection) {
    this.#introspection = introspection;
  }

  /** The handler of the attempt goes on after an `await`. */
  add(attempt: Attempt): void {
    this.#removeOver();
    this.#awaited.add(attempt);
  }

  /** Plain code writes to a document. */
  wrote(home: Home): void {
    if (this.#awaited.size === 0) return;
    this.#removeOver();
    for (const attempt of this.#awaited) {
      const name = String(attempt);
      if (this.#reported.has(name) || !attempt.hasTouched(home)) continue;
      this.#reported.add(name);
      const advice = "use tx, or tx.within(), after an await: this engine has no async context";
      const message = `a plain write to ${home.document.id} was committed alone, and ${name} uses that document; ${advice}`;
      this.#introspection.report(new WorkError("WORK_ESCAPED", message), undefined);
    }
  }

  #removeOver(): void {
    for (const attempt of this.#awaited) if (attempt.isOver) this.#awaited.delete(attempt);
  }
}
