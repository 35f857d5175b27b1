/**
 * A commit that a replica has applied and whose outcome is unknown.
 *
 * ```
 *   pending ──committed, all earlier commits integrated──> confirmed
 *      │  └──seen in the feed before the answer──> integrated ──answer──> confirmed
 *      └──rejected, or a commit that it depends on is──> fallen
 * ```
 */

import { ACKNOWLEDGED_KEPT_MAX } from "../limits.ts";
import type { Commit, CommitIdentity, CommitOutcome, CommitRequest, Committed } from "./commit.ts";
import type { OutcomeNotices } from "./outcome-notices.ts";
import type { PathOperation } from "./path-operation.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store.ts";

type OutcomeListener = (outcome: CommitOutcome) => void;

/** The operations of a commit on one document, and their inverses. */
export interface DocumentShare {
  /** Undefined until the commit object exists. */
  commit: PendingCommit | undefined;
  readonly document: ReplicaDocument;
  readonly operations: readonly PathOperation[];
  /** Undo the operations, last first; replaced whenever the share is applied again on another base. */
  inverses: PathOperation[];
}

/** A pending commit's share of one document. */
export interface PendingShare extends DocumentShare {
  commit: PendingCommit;
}

export class PendingCommit implements CommitIdentity {
  readonly session: string;
  readonly localSequence: number;
  readonly request: CommitRequest;
  /** Its operations on each changed document. */
  shares: readonly PendingShare[];
  /** Its receipt, unless the receipt is a document in memory. */
  receipt: Receipt | undefined;
  state: "pending" | "integrated" | "confirmed" | "fallen" = "pending";
  /** Mark of the last `Foundation` that counted it. */
  mark = 0;
  /** The backend's answer, while it waits for the feed to reach it. */
  answer: Committed | undefined;
  /** The final outcome; undefined until then. */
  #result: CommitOutcome | undefined;
  /** Created on first use: most commits have no waiter. */
  #outcome: Promise<CommitOutcome> | undefined;
  #resolve: ((outcome: CommitOutcome) => void) | undefined;
  #listener: OutcomeListener | undefined;

  constructor(request: CommitRequest, shares: readonly DocumentShare[], receipt: Receipt | undefined) {
    this.receipt = receipt;
    this.session = request.session;
    this.localSequence = request.localSequence;
    this.request = request;
    for (const share of shares) share.commit = this;
    this.shares = shares as readonly PendingShare[];
  }

  /** Its receipt was created as a document in memory: adds a share for it, as if it had been written normally. */
  shareReceipt(document: ReplicaDocument, receipt: Receipt): void {
    const { operations } = receipt;
    const share = { commit: this, document, operations, inverses: [document.apply(operations[0]).inverse] };
    this.shares = [...this.shares, share];
    this.receipt = undefined;
    document.addPending(share);
  }

  /** Whether it increases the space's sequence and so has a place in the feed. */
  get movesSpace(): boolean {
    return this.request.patches.length > 0 || this.request.labels.length > 0;
  }

  /** Resolves when the commit is durable and integrated, or rolled back. Never rejects. */
  get outcome(): Promise<CommitOutcome> {
    this.#outcome ??= this.#result
      ? Promise.resolve(this.#result)
      : new Promise((resolve) => {
          this.#resolve = resolve;
        });
    return this.#outcome;
  }

  /** Calls back like a promise. */
  whenOver(listener: OutcomeListener): void {
    if (this.#listener === undefined && this.#result === undefined) this.#listener = listener;
    else this.outcome.then(listener);
  }

  finish(state: "confirmed" | "fallen", result: CommitOutcome, notices: OutcomeNotices): void {
    this.state = state;
    // Its outcome was reported before the feed could be read; the feed has reached it now.
    if (this.#result !== undefined) return;
    this.#result = result;
    this.#resolve?.(result);
    if (this.#listener !== undefined) notices.add(this);
  }

  /** Reports the outcome to the listener. */
  tell(): void {
    if (this.#result !== undefined) this.#listener?.(this.#result);
  }
}

/** Calls back later with the outcome of a commit; saves a promise for callers with very many commits. */
export function whenOver(commit: Commit, listener: OutcomeListener): void {
  if (commit instanceof PendingCommit) commit.whenOver(listener);
  else commit.outcome.then(listener);
}

interface Acknowledged extends CommitIdentity {
  /** The name of its receipt, which has the id of the request or event. */
  readonly receipt: string | undefined;
}

/** Receipts and commits that the report names. */
const NAMED_MAX = 20;

/**
 * The last acknowledged commits of a replica. If the data get another history, the store is asked which of them it
 * still has, and the others are reported. SPEC: S236.
 */
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
