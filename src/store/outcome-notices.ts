/**
 * Tells whoever made a commit what became of it, in a microtask of the host. Commits that are over by then are told together, in the order
 * in which they ended: a burst of commits costs one microtask, where a promise for each would cost two objects and a microtask more.
 */
import type { Host } from "../host/host.ts";
import type { PendingCommit } from "./pending-commit.ts";

export class OutcomeNotices {
  readonly #host: Host;
  #due: PendingCommit[] = [];

  constructor(host: Host) {
    this.#host = host;
  }

  add(commit: PendingCommit): void {
    if (this.#due.push(commit) === 1) this.#host.microtask(this.#tell);
  }

  readonly #tell = (): void => {
    const due = this.#due;
    this.#due = [];
    let told = 0;
    try {
      while (told < due.length) due[told++]?.tell();
    } finally {
      // Somebody threw: that is his affair and his host's, and the others hear of theirs.
      for (const commit of due.slice(told)) this.add(commit);
    }
  };
}
