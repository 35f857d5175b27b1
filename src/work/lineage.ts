/**
 * Lineage (I10): work that an attempt launches (a send, a piece) lives only if the attempt's commit does. The lineage
 * of the attempt tells its launches:
 *
 * ```
 *   open ──the commit is applied here──> applied ──the store has confirmed it──> confirmed
 *     │            started()                │              confirmed()
 *     └──given up──> failed <───rejected────┘
 *                  cancelled()
 * ```
 * `started` means: begin, speculatively. Work that must not begin before the commit is durable waits for `confirmed`. A
 * launch of a lineage that is over is told the outcome at once. An attempt without writes counts as confirmed. A
 * retried attempt is another attempt with a lineage of its own.
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
  /** The attempt failed: take back the work that was begun. It may not have been started. */
  cancelled(why: string): void;
}

export type LineageState = "open" | "applied" | "confirmed" | "failed";

const NOTHING: Launch[] = [];

export class AttemptLineage {
  /** The space of the commit that decides. */
  readonly replica: Replica;
  state: LineageState = "open";
  /** The commit, once it is applied; undefined also for an attempt without writes. */
  commit: CommitIdentity | undefined;
  /** Why it failed. */
  why = "";
  /** The label of the reads of the attempt, set at its end. */
  label: Label = PUBLIC;
  /** Most attempts have no launches. */
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

  /** A part of the attempt was taken back: cancels the launches after the first `launched`. */
  cancelFrom(launched: number, why: string): void {
    for (const launch of this.#launches.splice(launched)) launch.cancelled(why);
  }

  applied(commit: CommitIdentity): void {
    if (this.state !== "open") return;
    this.state = "applied";
    this.commit = commit;
    // By index: a launch that starts may add launches.
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
