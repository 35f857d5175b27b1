/**
 * Outcomes of a replica's commits and integration of foreign ones: the pending commits in order, and the feed position.
 * Three inputs change them: the backend's answer, the feed, and a rollback. SPEC: S49-S52, S65-S69.
 *
 * Own commits are confirmed in feed order. If an answer overtakes earlier commits of other sessions, it waits until the
 * feed has delivered them. A rolled-back commit takes along the commits stacked on it.
 *
 * The backend does not validate a session's reads against its own writes, because the replica has applied them. After a
 * commit with unknown outcome that is unsafe: it is rolled back here but may be stored. So the replica starts a new
 * session, and such a commit counts as foreign if it appears in the feed.
 */

import type { Host } from "../host/host.ts";
import { FEED_PAGE_COMMITS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { CommitIdentity, CommitOutcome, ReadClaim } from "./commit.ts";
import { CommitList } from "./commit-list.ts";
import { firstNotHere } from "./commit-request.ts";
import type { DocumentLabels, LabelChange } from "./document-labels.ts";
import { isAfter, type Newcomers, type ReplicaDocuments } from "./document-table.ts";
import type { Notifier } from "./notifier.ts";
import { OutcomeNotices } from "./outcome-notices.ts";
import type { PendingCommit } from "./pending-commit.ts";
import { AcknowledgedCommits } from "./pending-commit.ts";
import type { StackedCommit } from "./pending-index.ts";
import { isReceiptName } from "./receipt-name.ts";
import { type Rejection, rejected } from "./rejection.ts";
import { Reload } from "./reload.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type FeedCommit, type Store, StoreError } from "./store.ts";
import { UnseenLabels } from "./unseen-labels.ts";

/** Notified of receipts in commits of other sessions. */
export interface ReceiptListener {
  noted(name: string): void;
  /** Commits were missed. */
  missed(): void;
}

export class Confirmation implements Newcomers {
  /** All commits up to this sequence are integrated. */
  position: number;
  /** The session of new commits. */
  session: string;
  /** Whether the store has not told yet which acknowledged commits are gone. */
  #isLossDue = false;
  /** Why acknowledged commits are missing, since the data have another history. */
  historyLost: string | undefined;
  /** Number of rollbacks of visible changes. */
  reverts = 0;
  /** Receives errors that no caller waits for. */
  tell: (trouble: unknown) => void;
  readonly #space: string;
  readonly #host: Host;
  readonly #store: Store;
  readonly #documents: ReplicaDocuments;
  readonly #notifier: Notifier;
  readonly #notices: OutcomeNotices;
  readonly #unseenLabels: UnseenLabels;
  readonly #acknowledged = new AcknowledgedCommits();
  /** A commit comes after those that it depends on. */
  readonly #pending = new CommitList<PendingCommit>();
  #catchingUp: Promise<void> | undefined;
  /** Another catch-up was requested while one was running. */
  #again = false;

  foreignReceipts: ReceiptListener | undefined;

  constructor(options: {
    space: string;
    host: Host;
    store: Store;
    documents: ReplicaDocuments;
    notifier: Notifier;
    position: number;
  }) {
    this.#space = options.space;
    this.#host = options.host;
    this.#store = options.store;
    this.#documents = options.documents;
    this.#notifier = options.notifier;
    this.#notices = new OutcomeNotices(options.host);
    this.#unseenLabels = new UnseenLabels(options, options.documents, options.notifier);
    this.position = options.position;
    this.session = options.host.id();
    this.tell = (trouble) => options.host.report(trouble);
    this.#documents.newcomers = this;
  }

  /** A document was created in memory: it may be the receipt of a pending commit. */
  met(document: ReplicaDocument): void {
    if (!isReceiptName(document.id)) return;
    for (const commit of this.#pending) {
      const { receipt } = commit;
      if (receipt?.id === document.id && receipt.scope === document.scope) commit.shareReceipt(document, receipt);
    }
  }

  otherHistory(): void {
    this.catchUp().catch(() => {
      // `FeedWatch` looks again.
    });
  }

  /** The outcome of a read-only transaction is that of the commits it read from. */
  async outcomeOfReading(claims: readonly ReadClaim[], dependsOn: readonly number[]): Promise<CommitOutcome> {
    const { position } = this;
    const notLoaded = firstNotHere(claims);
    if (notLoaded !== undefined) return notLoaded;
    for (const beneath of dependsOn.map((local) => this.#pending.get(local))) {
      const outcome = await beneath?.outcome;
      if (outcome?.kind !== "rejected") continue;
      return rejected(outcome.class, "fell-with", `read from a commit that was rejected: ${outcome.message}`);
    }
    return { kind: "committed", sequence: position, journalIds: [], replayed: false };
  }

  get pending(): CommitList<PendingCommit> {
    return this.#pending;
  }

  /** Resolves with whether all pending commits with writes are confirmed; undefined if there are none. */
  standing(): Promise<boolean> | undefined {
    const outcomes: Promise<CommitOutcome>[] = [];
    for (const { shares, outcome } of this.#pending) if (shares.length > 0) outcomes.push(outcome);
    if (outcomes.length === 0) return undefined;
    return Promise.all(outcomes).then((answers) => answers.every(({ kind }) => kind === "committed"));
  }

  /** Sends an applied commit and waits for its outcome. With a `refusal` it is rolled back without being sent. */
  send(pending: PendingCommit, refusal: Rejection | undefined = this.#refusal(pending)): void {
    this.#pending.add(pending);
    const listener = (answer: CommitOutcome | Error) =>
      this.#answered(pending, answer instanceof Error ? rejectionFor(answer) : answer);
    const answer = refusal ? Promise.resolve(refusal) : this.#store.commit(pending.request, listener);
    answer?.then(listener, (error: unknown) => this.#answered(pending, rejectionFor(error)));
  }

  /** A commit can depend only on commits of its own session. */
  #refusal(pending: PendingCommit): Rejection | undefined {
    for (const localSequence of pending.request.dependsOn) {
      if (this.#pending.get(localSequence)?.session === pending.session) continue;
      const message = `stands on commit ${localSequence} of an earlier session, which has no answer yet; run it again`;
      return rejected("stale", "read-moved", message);
    }
    return undefined;
  }

  #answered(pending: PendingCommit, outcome: CommitOutcome): void {
    if (pending.state === "fallen") return;
    this.#documents.turn?.seal();
    if (outcome.kind === "rejected") {
      this.#fall(pending, outcome);
    } else if (pending.state === "integrated") {
      this.#acknowledged.add(pending);
      pending.finish("confirmed", outcome, this.#notices);
    } else if (!pending.movesSpace || outcome.sequence <= this.position + 1) {
      this.#acknowledged.add(pending);
      this.#confirm(pending, outcome.sequence);
      pending.finish("confirmed", outcome, this.#notices);
    } else {
      this.#acknowledged.add(pending);
      pending.answer = outcome;
      // The commit is durable even if the feed cannot be read now.
      this.catchUp().catch(() => pending.finish("confirmed", outcome, this.#notices));
    }
  }

  /** The commit's changes become part of the confirmed state. */
  #confirm(pending: PendingCommit, sequence: number): void {
    this.#pending.delete(pending.localSequence);
    if (pending.movesSpace) this.position = Math.max(this.position, sequence);
    for (const share of pending.shares) share.document.confirm(share, sequence);
    for (const ref of pending.request.labels)
      this.#documents.find(ref)?.relabel((labels) => labels.confirm(pending, sequence));
  }

  // The feed ---------------------------------------------------------------------------------------------------------

  /** Integrates foreign commits. Runs once at a time; a call during a run makes it read again. */
  catchUp(): Promise<void> {
    this.#again = true;
    this.#catchingUp ??= this.#readFeed();
    return this.#catchingUp;
  }

  async #readFeed(): Promise<void> {
    try {
      while (this.#again) {
        this.#again = false;
        await this.#readPage();
      }
    } finally {
      // Synchronous with the last check of `#again`: a later call must start a new run.
      this.#catchingUp = undefined;
    }
  }

  async #readPage(): Promise<void> {
    if (this.#isLossDue) await this.#reportLoss();
    const asked = this.position;
    const page = await this.#store.changesSince(this.#space, asked, FEED_PAGE_COMMITS);
    this.#documents.turn?.seal();
    // Data that lost commits may have kept their id, if a file was copied by hand.
    if (page.history !== this.#documents.history || page.head < asked) return this.#beginHistory();
    // Own commits confirmed meanwhile can explain the gap. Behind a real gap no commit is confirmed until the reload
    // ends.
    if (page.gap && asked === this.position) await this.#reload();
    else if (this.#documents.isLabelled || page.commits.some(({ labels }) => labels.length > 0))
      await this.#integrateLabelled(page.commits);
    else for (const commit of page.commits) this.#integrate(commit);
    if (this.position < page.head) this.#again = true;
  }

  async #integrateLabelled(commits: readonly FeedCommit[]): Promise<void> {
    this.#documents.isLabelled = true;
    await this.#see(commits);
    for (const commit of commits) {
      // An own commit before it may have created another document.
      const labels = this.#see([commit]);
      if (labels !== undefined) await labels;
      this.#integrate(commit);
    }
  }

  /** Loads the labels of documents that other sessions wrote; mostly none are needed. */
  #see(commits: readonly FeedCommit[]): Promise<void> | undefined {
    const isNews = (commit: FeedCommit) => commit.sequence > this.position && this.#own(commit) === undefined;
    const labels = this.#unseenLabels.before(commits.filter(isNews));
    return labels?.then(() => this.#documents.turn?.seal());
  }

  #own({ session, localSequence }: FeedCommit): PendingCommit | undefined {
    const own = this.#pending.get(localSequence);
    return own?.session === session ? own : undefined;
  }

  #integrate(commit: FeedCommit): void {
    if (commit.sequence <= this.position) return;
    const own = this.#own(commit);
    if (own !== undefined) {
      this.#confirm(own, commit.sequence);
      own.state = "integrated";
      if (own.answer) own.finish("confirmed", own.answer, this.#notices);
      return;
    }
    this.position = commit.sequence;
    if (this.foreignReceipts !== undefined)
      for (const { id } of commit.patches) if (isReceiptName(id)) this.foreignReceipts.noted(id);
    for (const ref of commit.patches) this.#documents.lookAgain(ref);
    for (const ref of commit.labels) this.#documents.lookAgain(ref);
    const changes = commit.patches.flatMap((patch) => {
      const document = this.#documents.find(patch);
      return document ? document.integrate(patch.operations, commit.sequence) : [];
    });
    const { session, localSequence } = commit;
    this.#documents.written(changes);
    const labels = commit.labels.flatMap(
      (write) => this.#documents.find(write)?.integrateLabels(write, commit.sequence) ?? [],
    );
    this.#notifier.tell({ kind: "integrate", changes, labels, commit: { session, localSequence } });
  }

  /**
   * The data have another history: sequences are given a second time, so no confirmed state and no position stands.
   * Whether the store has the commits that wait is unknown; each is sent again by its caller.
   */
  async #beginHistory(): Promise<void> {
    this.#rollBackAll("the data have another history since a restore or failover; it may be there");
    this.position = 0;
    this.foreignReceipts?.missed();
    const reload = this.#newReload();
    this.position = await reload.run(true);
    this.session = this.#host.id();
    this.#again = true;
    this.#confirmReloaded();
    if (reload.trouble !== undefined) this.tell(reload.trouble);
    this.#isLossDue = true;
    await this.#reportLoss();
  }

  /** Asked again with the next look at the feed if the store does not answer. */
  async #reportLoss(): Promise<void> {
    const lost = await this.#acknowledged.lostIn(this.#store, this.#space);
    this.#isLossDue = false;
    if (lost === undefined) return;
    this.historyLost = lost.message;
    this.tell(lost);
  }

  #newReload(): Reload {
    const source = { store: this.#store, space: this.#space, host: this.#host };
    return new Reload(source, this.#documents, this.#notifier);
  }

  /** The feed no longer reaches back to the current position. */
  async #reload(): Promise<void> {
    this.foreignReceipts?.missed();
    const reload = this.#newReload();
    const position = await reload.run(false);
    this.position = Math.max(this.position, position);
    this.#confirmReloaded();
    if (reload.trouble !== undefined) this.tell(reload.trouble);
  }

  /** Confirms the answered commits that a reload has included. */
  #confirmReloaded(): void {
    const isOpen = isAfter(this.position);
    for (const pending of this.#pending) {
      if (pending.answer === undefined || isOpen(pending)) continue;
      for (const { document } of pending.shares) if (document.state !== "loaded") this.#forget(document, isOpen);
      this.#confirm(pending, pending.answer.sequence);
      pending.finish("confirmed", pending.answer, this.#notices);
    }
  }

  /**
   * Drops the effect of own commits on an unloaded document: later foreign writes to it may be missing from the feed.
   */
  #forget(document: ReplicaDocument, isKept: (commit: StackedCommit) => boolean): void {
    const changes = document.rebase(() => {}, [], isKept);
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes });
    this.#documents.lookAgain(document);
  }

  // Falls ------------------------------------------------------------------------------------------------------------

  #fall(pending: PendingCommit, rejection: Rejection): void {
    const fallen = new Map([[pending.localSequence, pending]]);
    for (const other of this.#pending) {
      if (other.request.dependsOn.some((local) => fallen.has(local))) fallen.set(other.localSequence, other);
    }
    for (const localSequence of fallen.keys()) this.#pending.delete(localSequence);
    if (rejection.class === "unknown") this.session = this.#host.id();
    const documents = new Set([...fallen.values()].flatMap(({ shares }) => shares.map(({ document }) => document)));
    if (documents.size > 0) this.reverts++;
    const isKept = (commit: CommitIdentity) => !fallen.has(commit.localSequence);
    const changes = [...documents].flatMap((document) => document.rebase(() => {}, [], isKept));
    this.#documents.written(changes);
    const labels = [...fallen.values()].flatMap((commit) => this.#dropLabels(commit));
    for (const commit of fallen.values()) {
      const message = `stacked on commit ${pending.localSequence}, which was rejected: ${rejection.message}`;
      const outcome = commit === pending ? rejection : rejected(rejection.class, "fell-with", message);
      commit.finish("fallen", outcome, this.#notices);
    }
    const { session, localSequence } = pending;
    this.#notifier.tell({ kind: "revert", changes, labels, commit: { session, localSequence } });
  }

  /** Rolls back all unanswered commits and returns their number. Whether the store has them is unknown. */
  giveUp(why: string): number {
    const open = [...this.#pending].filter(({ state }) => state === "pending");
    // Answered commits that only wait for the feed are durable.
    for (const pending of open) if (pending.answer) pending.finish("confirmed", pending.answer, this.#notices);
    const unanswered = open.filter(({ state }) => state === "pending");
    const rejection = rejected("unknown", "no-answer", why);
    for (const pending of unanswered) if (pending.state === "pending") this.#fall(pending, rejection);
    return unanswered.length;
  }

  /** Rolls back every commit that is not confirmed, also those that were answered and wait for the feed. */
  #rollBackAll(why: string): void {
    const rejection = rejected("unknown", "history-lost", why);
    for (const pending of [...this.#pending]) if (pending.state === "pending") this.#fall(pending, rejection);
  }

  #dropLabels(fallen: PendingCommit): LabelChange[] {
    const refs = fallen.request.labels;
    const drop = (labels: DocumentLabels) => labels.drop((commit) => commit === fallen);
    return refs.flatMap((ref) => this.#documents.find(ref)?.relabel(drop) ?? []);
  }
}

/** The rejection that corresponds to an error of the backend. */
function rejectionFor(error: unknown): Rejection {
  const message = thrownText(error);
  if (!(error instanceof StoreError)) return rejected("unknown", "no-answer", message);
  // The store gave up waiting for its server: the commit may have been in the batch that got no answer.
  if (error.code === "STORE_AWAY") return rejected("unknown", "no-answer", message);
  // Misuse is detected before a write; a stopped store writes no more.
  if (error.code === "STORE_MISUSE") return rejected("refused", "protocol", message);
  return rejected("failed", "store-stopped", message);
}
