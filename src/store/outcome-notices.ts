/**
 * Reports outcomes of commits to their listeners in a microtask of the host, in the order in which they ended. A burst
 * of commits costs one microtask; a promise for each would cost two objects and another microtask.
 */
import type { Host } from "../host/host.ts";

/** A commit that reports its outcome to its listeners. */
interface Reporting {
  tell(): void;
}

export class OutcomeNotices {
  readonly #host: Host;
  #due: Reporting[] = [];

  constructor(host: Host) {
    this.#host = host;
  }

  add(commit: Reporting): void {
    if (this.#due.push(commit) === 1) this.#host.microtask(this.#tell);
  }

  readonly #tell = (): void => {
    const due = this.#due;
    this.#due = [];
    let told = 0;
    try {
      while (told < due.length) due[told++]?.tell();
    } finally {
      // A listener threw. The host handles the error; the remaining commits are reported in the next microtask.
      for (const commit of due.slice(told)) this.add(commit);
    }
  };
}
