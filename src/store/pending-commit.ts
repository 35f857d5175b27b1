/**
 * A commit that a replica has applied and whose fate is not known yet.
 *
 * ```
 *   pending ──committed, everything before it is integrated──> confirmed
 *      │  └──seen in the feed before the answer came──> integrated ──answer──> confirmed
 *      └──rejected, or a commit it stands on is──> fallen
 * ```
 */
import type { CommitIdentity, CommitOutcome, CommitRequest, Committed } from "./commit.ts";
import type { OutcomeNotices } from "./outcome-notices.ts";
import type { PathOperation } from "./path-operation.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { Commit } from "./transaction.ts";

type OutcomeListener = (outcome: CommitOutcome) => void;

/** What a commit did to one document, and how to take it back. */
export interface DocumentShare {
  /** Undefined until it is made. */
  commit: PendingCommit | undefined;
  readonly document: ReplicaDocument;
  readonly operations: readonly PathOperation[];
  /** Take the operations back, last first; made anew whenever the share is applied again over another base. */
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
  /** What it did to the documents it changed. */
  shares: readonly PendingShare[];
  /** What it leaves that is not a document of this replica, as far as that is so. */
  receipt: Receipt | undefined;
  state: "pending" | "integrated" | "confirmed" | "fallen" = "pending";
  /** Of the foundation that counted it last; see `Foundation`. */
  mark = 0;
  /** The backend's answer, while it waits for the feed to reach it. */
  answer: Committed | undefined;
  /** What became of it; undefined until then. */
  #result: CommitOutcome | undefined;
  /** Made when first asked for: most commits are never waited for one by one. */
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

  /** Its receipt has become a document of this replica: what it did there, as if it had been written so. */
  shareReceipt(document: ReplicaDocument, receipt: Receipt): void {
    const { operations } = receipt;
    const share = { commit: this, document, operations, inverses: [document.apply(operations[0]).inverse] };
    this.shares = [...this.shares, share];
    this.receipt = undefined;
    document.addPending(share);
  }

  /** Whether it moves the space's sequence, and so has a place in the feed. */
  get movesSpace(): boolean {
    return this.request.patches.length > 0 || this.request.labels.length > 0;
  }

  /** Resolves when the commit is durable and integrated, or has fallen. Never rejects. */
  get outcome(): Promise<CommitOutcome> {
    this.#outcome ??= this.#result
      ? Promise.resolve(this.#result)
      : new Promise((resolve) => {
          this.#resolve = resolve;
        });
    return this.#outcome;
  }

  /** Calls back as a promise would. */
  whenOver(listener: OutcomeListener): void {
    if (this.#listener === undefined && this.#result === undefined) this.#listener = listener;
    else this.outcome.then(listener);
  }

  finish(state: "confirmed" | "fallen", result: CommitOutcome, notices: OutcomeNotices): void {
    this.state = state;
    // It was known to be durable before the feed could be read, which has come to it now.
    if (this.#result !== undefined) return;
    this.#result = result;
    this.#resolve?.(result);
    if (this.#listener !== undefined) notices.add(this);
  }

  /** Calls whoever waits for it; it is over. */
  tell(): void {
    if (this.#result !== undefined) this.#listener?.(this.#result);
  }
}

/** Calls back, later, with what became of a commit; for those who make very many, and would need a promise for each. */
export function whenOver(commit: Commit, listener: OutcomeListener): void {
  if (commit instanceof PendingCommit) commit.whenOver(listener);
  else commit.outcome.then(listener);
}
