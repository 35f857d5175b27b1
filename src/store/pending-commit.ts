/**
 * A commit that a replica has applied and whose outcome is unknown.
 *
 * ```
 *   pending ──committed, all earlier commits integrated──> confirmed
 *      │  └──seen in the feed before the answer──> integrated ──answer──> confirmed
 *      └──rejected, or a commit that it depends on is──> fallen
 * ```
 */
import type { Commit, CommitIdentity, CommitOutcome, CommitRequest, Committed } from "./commit.ts";
import type { OutcomeNotices } from "./outcome-notices.ts";
import type { PathOperation } from "./path-operation.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";

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
