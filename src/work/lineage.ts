/**
 * Lineage (I10): what an attempt launches lives only if that attempt's commit does. An attempt is one run of a handler, or one run
 * of a transaction. What it launches (a send, a piece, anything that would outlive it) is handed to its lineage, which tells it:
 *
 * ```
 *   open ──the commit is applied here──> applied ──the store has confirmed it──> confirmed
 *     │            started()                │              confirmed()
 *     └──given up──> failed <───rejected────┘
 *                  cancelled()
 * ```
 * `started` means: begin, speculatively; whoever must not begin before the commit is durable waits for `confirmed`. A lineage may be
 * over when something refers to it: then the launch hears at once what became of it. An attempt that wrote nothing is as good as
 * confirmed. A retried attempt is another attempt with a lineage of its own.
 */
import type { CommitIdentity } from "../store/commit.ts";
import { type Label, PUBLIC } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";

/** Work that an attempt has launched. Each of its steps is called at most once, `cancelled` instead of `confirmed`. */
export interface Launch {
  /** The attempt's commit is applied here and on its way. */
  started(): void;
  /** The attempt's commit is durable. */
  confirmed(): void;
  /** The attempt failed: whatever was begun is to be taken back. It may not have been started. */
  cancelled(why: string): void;
}

export type LineageState = "open" | "applied" | "confirmed" | "failed";

const NOTHING: Launch[] = [];

export class Lineage {
  /** The space whose commit decides. */
  readonly replica: Replica;
  state: LineageState = "open";
  /** The commit, once it is applied; undefined also for an attempt that wrote nothing. */
  commit: CommitIdentity | undefined;
  /** Why it failed. */
  why = "";
  /** What the attempt knew when it ended is labelled with. */
  label: Label = PUBLIC;
  /** Most attempts launch nothing. */
  #launches: Launch[] = NOTHING;

  constructor(replica: Replica) {
    this.replica = replica;
  }

  launch(launch: Launch): void {
    if (this.state === "failed") return launch.cancelled(this.why);
    if (this.state !== "open") launch.started();
    if (this.state === "confirmed") launch.confirmed();
    else if (this.#launches === NOTHING) this.#launches = [launch];
    else this.#launches.push(launch);
  }

  /** How much it has launched so far. */
  get launched(): number {
    return this.#launches.length;
  }

  /** The part of the attempt that has launched what came after so much was taken back. */
  cancelFrom(launched: number, why: string): void {
    for (const launch of this.#launches.splice(launched)) launch.cancelled(why);
  }

  applied(commit: CommitIdentity): void {
    if (this.state !== "open") return;
    this.state = "applied";
    this.commit = commit;
    // By index: what is launched by starting comes after it.
    for (let i = 0; i < this.#launches.length; i++) this.#launches[i]?.started();
  }

  confirm(): void {
    if (this.state === "open") {
      this.state = "applied";
      for (let i = 0; i < this.#launches.length; i++) this.#launches[i]?.started();
    }
    if (this.state !== "applied") return;
    this.state = "confirmed";
    for (const launch of this.#take()) launch.confirmed();
  }

  fail(why: string): void {
    if (this.state === "confirmed" || this.state === "failed") return;
    this.state = "failed";
    this.why = why;
    for (const launch of this.#take()) launch.cancelled(why);
  }

  #take(): readonly Launch[] {
    const launches = this.#launches;
    this.#launches = NOTHING;
    return launches;
  }
}
