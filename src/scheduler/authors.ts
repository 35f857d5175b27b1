/**
 * Maps changes to the nodes that made them, for `why`. The changes of one commit have consecutive ticks, and an address
 * knows the tick of its last change. There is one entry per commit of a node, and old entries are removed. Plain writes
 * and runs without side writes add no entry, and neither do outputs, which have one writer. SPEC: R17.
 */
import { AUTHORS_MAX } from "../limits.ts";

interface Authorship {
  /** The name, because the node may be removed before `why` asks. */
  readonly node: string;
  readonly from: number;
  readonly to: number;
}

export class Authors {
  #known: Authorship[] = [];

  /** Records that a commit of the node made the changes with the ticks `after + 1` to `to`. */
  wrote(node: string, after: number, to: number): void {
    if (to === after) return;
    if (this.#known.length >= AUTHORS_MAX) this.#known = this.#known.slice(AUTHORS_MAX / 2);
    this.#known.push({ node, from: after + 1, to });
  }

  /** The node that made the change of a tick; undefined for other commits and for removed entries. */
  of(tick: number): string | undefined {
    return this.#known.findLast(({ from, to }) => from <= tick && tick <= to)?.node;
  }
}
