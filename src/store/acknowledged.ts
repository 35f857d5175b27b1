/**
 * The last acknowledged commits of a replica. If the data get another history, the store is asked which of them it still
 * has, and the others are reported. SPEC: S236.
 */
import { ACKNOWLEDGED_KEPT_MAX } from "../limits.ts";
import type { CommitIdentity } from "./commit.ts";
import type { PendingCommit } from "./pending-commit.ts";
import { type Store, StoreError } from "./store.ts";

interface Acknowledged extends CommitIdentity {
  /** The name of its receipt, which has the id of the request or event. */
  readonly receipt: string | undefined;
}

/** Receipts and commits that the report names. */
const NAMED_MAX = 20;

export class AcknowledgedCommits {
  #commits: Acknowledged[] = [];
  /** The place of the next commit, once the list is full. */
  #next = 0;

  add({ session, localSequence, receipt }: PendingCommit): void {
    this.#commits[this.#next] = { session, localSequence, receipt: receipt?.id };
    this.#next = (this.#next + 1) % ACKNOWLEDGED_KEPT_MAX;
  }

  /** Forgets all and resolves with a report about those that the store no longer has; undefined if it has all. */
  async lostIn(store: Store, space: string): Promise<StoreError | undefined> {
    const commits = this.#commits;
    const isThere = await store.hasCommits(commits);
    this.#commits = [];
    this.#next = 0;
    const lost = commits.filter((_, at) => isThere[at] !== true);
    if (lost.length === 0) return undefined;
    const names = lost
      .slice(0, NAMED_MAX)
      .map(({ session, localSequence, receipt }) => receipt ?? `${session}/${localSequence}`);
    const others = lost.length > names.length ? `, and ${lost.length - names.length} more` : "";
    return new StoreError(
      "STORE_HISTORY_LOST",
      `space "${space}" lost ${lost.length} acknowledged commits of this process in a restore or failover: ` +
        `${names.join(", ")}${others}; see the backup or the other database for their data`,
    );
  }
}
