/**
 * What becomes of a replica's commits, and what others have committed: the pending commits in order, the position up to which
 * the feed is integrated, and the three things that move them: the backend's answer, the feed, a fall. SPEC: S49-S52, S65-S69.
 *
 * An own commit is confirmed in feed order. Its answer may overtake others' commits that were made before it; then it waits
 * until the feed has brought those. A commit that falls takes with it whatever was stacked on it.
 *
 * The backend lets a session's own writes pass unseen, because its replica has applied them. A commit of which nobody knows
 * whether it landed breaks that: it is taken back here and may be there. So the replica goes on under a new session, to which
 * that commit, should it turn up, is anybody else's.
 */

import type { Host } from "../host/host.ts";
import { FEED_PAGE_COMMITS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { CommitOutcome, ReadClaim } from "./commit.ts";
import { CommitList } from "./commit-list.ts";
import { firstNotHere } from "./commit-request.ts";
import type { DocumentLabels, LabelChange } from "./document-labels.ts";
import { type DocumentTable, isAfter, type Newcomers } from "./document-table.ts";
import type { Notifier } from "./notifier.ts";
import { OutcomeNotices } from "./outcome-notices.ts";
import type { PendingCommit } from "./pending-commit.ts";
import { isReceiptName } from "./receipt-name.ts";
import { type Rejection, rejected } from "./rejection.ts";
import { Reload } from "./reload.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type FeedCommit, type Store, StoreError } from "./store.ts";
import { UnseenLabels } from "./unseen-labels.ts";

/** Hears of receipts that commits of others have left. */
export interface ReceiptListener {
  noted(name: string): void;
  /** Commits were missed. */
  missed(): void;
}

export class Confirmation implements Newcomers {
  /** Everything up to this commit sequence is integrated. */
  position: number;
  /** Under which new commits are made. */
  session: string;
  /** How often something that could be read was taken back. */
  reverts = 0;
  /** Told of what goes wrong where nobody waits for it. */
  tell: (trouble: unknown) => void;
  readonly #space: string;
  readonly #host: Host;
  readonly #store: Store;
  readonly #documents: DocumentTable;
  readonly #notifier: Notifier;
  readonly #notices: OutcomeNotices;
  readonly #unseenLabels: UnseenLabels;
  /** What stands on another comes after it. */
  readonly #pending = new CommitList<PendingCommit>();
  #catchingUp: Promise<void> | undefined;
  /** Something happened while catching up, so that one more look is needed. */
  #again = false;

  foreignReceipts: ReceiptListener | undefined;

  constructor(options: {
    space: string;
    host: Host;
    store: Store;
    documents: DocumentTable;
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

  /** Somebody asks for a document that was not here: it may be what a pending commit leaves. */
  met(document: ReplicaDocument): void {
    if (!isReceiptName(document.id)) return;
    for (const commit of this.#pending) {
      const { receipt } = commit;
      if (receipt?.id === document.id && receipt.scope === document.scope) commit.shareReceipt(document, receipt);
    }
  }

  /** A transaction that only read is as good as the commits it read from. */
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

  /** Whether the pending commits that have written here stand, once that is known; undefined where there are none. */
  standing(): Promise<boolean> | undefined {
    const outcomes: Promise<CommitOutcome>[] = [];
    for (const { shares, outcome } of this.#pending) if (shares.length > 0) outcomes.push(outcome);
    if (outcomes.length === 0) return undefined;
    return Promise.all(outcomes).then((answers) => answers.every(({ kind }) => kind === "committed"));
  }

  /** Sends a commit that has been applied, and awaits its fate; one that cannot be made any more falls at once. */
  send(pending: PendingCommit, refusal: Rejection | undefined = this.#refusal(pending)): void {
    this.#pending.add(pending);
    const listener = (answer: CommitOutcome | Error) =>
      this.#answered(pending, answer instanceof Error ? rejectionFor(answer) : answer);
    const answer = refusal ? Promise.resolve(refusal) : this.#store.commit(pending.request, listener);
    answer?.then(listener, (error: unknown) => this.#answered(pending, rejectionFor(error)));
  }

  /** A commit can name only commits of its own session as those it stands on. */
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
      pending.finish("confirmed", outcome, this.#notices);
    } else if (!pending.movesSpace || outcome.sequence <= this.position + 1) {
      this.#confirm(pending, outcome.sequence);
      pending.finish("confirmed", outcome, this.#notices);
    } else {
      pending.answer = outcome;
      // A feed that cannot be read now changes nothing about the answer: the commit is durable.
      this.catchUp().catch(() => pending.finish("confirmed", outcome, this.#notices));
    }
  }

  /** The commit's changes are now part of the confirmed state. */
  #confirm(pending: PendingCommit, sequence: number): void {
    this.#pending.delete(pending.localSequence);
    if (pending.movesSpace) this.position = Math.max(this.position, sequence);
    for (const share of pending.shares) share.document.confirm(share, sequence);
    for (const ref of pending.request.labels)
      this.#documents.find(ref)?.relabel((labels) => labels.confirm(pending, sequence));
  }

  // The feed ---------------------------------------------------------------------------------------------------------

  /** Integrates what others have committed. One at a time; a call during another makes it look once more. */
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
      // In the same breath as the last look: a call that comes after it must begin another.
      this.#catchingUp = undefined;
    }
  }

  async #readPage(): Promise<void> {
    const asked = this.position;
    const page = await this.#store.changesSince(this.#space, asked, FEED_PAGE_COMMITS);
    this.#documents.turn?.seal();
    // Own commits may have been confirmed meanwhile, and then there was no gap. Behind a real one none can be, until the end.
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
      // An own commit before it may have put one more document.
      const labels = this.#see([commit]);
      if (labels !== undefined) await labels;
      this.#integrate(commit);
    }
  }

  /** How what others have written is labelled; mostly there is nothing to find out. */
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

  /** The feed no longer reaches back to our position. */
  async #reload(): Promise<void> {
    this.foreignReceipts?.missed();
    const reload = new Reload(
      { store: this.#store, space: this.#space, host: this.#host },
      this.#documents,
      this.#notifier,
    );
    const position = await reload.run();
    this.position = Math.max(this.position, position);
    const isOpen = isAfter(this.position);
    for (const pending of this.#pending) {
      if (pending.answer === undefined || isOpen(pending)) continue;
      for (const { document } of pending.shares) if (document.state !== "loaded") this.#forget(document, isOpen);
      this.#confirm(pending, pending.answer.sequence);
      pending.finish("confirmed", pending.answer, this.#notices);
    }
    if (reload.trouble !== undefined) this.tell(reload.trouble);
  }

  /** What own commits had put is not here any more: others may have written over it, and nobody tells of that. */
  #forget(document: ReplicaDocument, isKept: (commit: PendingCommit) => boolean): void {
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
    const isKept = (commit: PendingCommit) => !fallen.has(commit.localSequence);
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

  /** What has no answer falls here: whether the store has it, or gets it, nobody knows. Gives how many there were. */
  giveUp(why: string): number {
    const open = [...this.#pending].filter(({ state }) => state === "pending");
    // Those that wait for the feed alone are durable.
    for (const pending of open) if (pending.answer) pending.finish("confirmed", pending.answer, this.#notices);
    const unanswered = open.filter(({ state }) => state === "pending");
    const rejection = rejected("unknown", "no-answer", why);
    for (const pending of unanswered) if (pending.state === "pending") this.#fall(pending, rejection);
    return unanswered.length;
  }

  #dropLabels(fallen: PendingCommit): LabelChange[] {
    const refs = fallen.request.labels;
    const drop = (labels: DocumentLabels) => labels.drop((commit) => commit === fallen);
    return refs.flatMap((ref) => this.#documents.find(ref)?.relabel(drop) ?? []);
  }
}

/** What an error of the backend means for the commit that it struck. */
function rejectionFor(error: unknown): Rejection {
  const message = thrownText(error);
  if (!(error instanceof StoreError)) return rejected("unknown", "no-answer", message);
  // Misuse is found before anything is written; a store that has stopped takes nothing more.
  if (error.code === "STORE_MISUSE") return rejected("refused", "protocol", message);
  return rejected("failed", "store-stopped", message);
}
