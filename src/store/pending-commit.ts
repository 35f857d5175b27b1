/**
 * A commit that a replica has applied and whose fate is not known yet.
 *
 * ```
 *   pending ──committed, everything before it is integrated──> confirmed
 *      │  └──seen in the feed before the answer came──> integrated ──answer──> confirmed
 *      └──rejected, or a commit it stands on is──> fallen
 * ```
 */
import type { CommitIdentity, CommitOutcome, CommitRequest } from "./commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";

export class PendingCommit implements CommitIdentity {
  readonly session: string;
  readonly localSequence: number;
  readonly request: CommitRequest;
  /** The documents it changed. */
  readonly documents: readonly ReplicaDocument[];
  state: "pending" | "integrated" | "confirmed" | "fallen" = "pending";
  /** Resolves when the commit is durable and integrated, or has fallen. Never rejects. */
  readonly outcome: Promise<CommitOutcome>;
  #resolve!: (outcome: CommitOutcome) => void;
  /** The backend's answer, while it waits for the feed to reach it. */
  answer: CommitOutcome | undefined;

  constructor(request: CommitRequest, documents: readonly ReplicaDocument[]) {
    this.session = request.session;
    this.localSequence = request.localSequence;
    this.request = request;
    this.documents = documents;
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  finish(state: "confirmed" | "fallen", outcome: CommitOutcome): void {
    this.state = state;
    this.#resolve(outcome);
  }
}
