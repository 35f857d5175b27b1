/**
 * Which node has changed what, for `why`: the changes of a node's commit have ticks of the graph that follow each other, and an address knows the
 * tick of its last change. One entry for each commit of a node, the latest of them only; writes of plain code and runs without side-writes pass
 * by here and cost nothing. What a computation gives needs no entry: nobody else writes that. SPEC: R17.
 */
import { AUTHORS_MAX } from "../limits.ts";

interface Authorship {
  /** The node's name: it may be gone when somebody asks. */
  readonly node: string;
  readonly from: number;
  readonly to: number;
}

export class Authors {
  #known: Authorship[] = [];

  /** What a node has committed made all changes after one tick, up to another. */
  wrote(node: string, after: number, to: number): void {
    if (to === after) return;
    if (this.#known.length >= AUTHORS_MAX) this.#known = this.#known.slice(AUTHORS_MAX / 2);
    this.#known.push({ node, from: after + 1, to });
  }

  /** The node that made the change of a tick; undefined for somebody's commit, and for what is too long ago. */
  of(tick: number): string | undefined {
    return this.#known.findLast(({ from, to }) => from <= tick && tick <= to)?.node;
  }
}
