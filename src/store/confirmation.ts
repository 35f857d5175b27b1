/**
 * What becomes of a replica's commits, and what others have committed: the pending commits in order, the position up to which
 * the feed is integrated, and the three things that move them: the backend's answer, the feed, a fall.
 *
 * An own commit is confirmed in feed order. Its answer may overtake others' commits that were made before it; then it waits
 * until the feed has brought those. A commit that falls takes with it whatever was stacked on it.
 */
import { FEED_PAGE_COMMITS } from "../limits.ts";
import { equal } from "../message/equality.ts";
import { admit } from "./admit.ts";
import type { Change } from "./change.ts";
import type { CommitOutcome } from "./commit.ts";
import type { DocumentTable } from "./document-table.ts";
import type { Notifier } from "./notifier.ts";
import type { PathOperation } from "./path-operation.ts";
import type { PendingCommit } from "./pending-commit.ts";
import { type Rejection, rejected } from "./rejection.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { FeedCommit, Store } from "./store.ts";

export class Confirmation {
  /** Everything up to this commit sequence is integrated. */
  position: number;
  readonly #space: string;
  readonly #session: string;
  readonly #store: Store;
  readonly #documents: DocumentTable;
  readonly #notifier: Notifier;
  /** In the order they were applied; what stands on another comes after it. */
  #pending: PendingCommit[] = [];
  #catchingUp: Promise<void> | undefined;
  /** Something happened while catching up, so that one more look is needed. */
  #again = false;

  constructor(options: {
    space: string;
    session: string;
    store: Store;
    documents: DocumentTable;
    notifier: Notifier;
    position: number;
  }) {
    this.#space = options.space;
    this.#session = options.session;
    this.#store = options.store;
    this.#documents = options.documents;
    this.#notifier = options.notifier;
    this.position = options.position;
  }

  get pending(): readonly PendingCommit[] {
    return this.#pending;
  }

  /** Sends a commit that has been applied, and awaits its fate. */
  send(pending: PendingCommit): void {
    this.#pending.push(pending);
    this.#store.commit(pending.request).then(
      (outcome) => this.#answered(pending, outcome),
      (error: unknown) => this.#answered(pending, rejected("failed", "store-stopped", messageOf(error))),
    );
  }

  #answered(pending: PendingCommit, outcome: CommitOutcome): void {
    if (pending.state === "fallen") return;
    this.#documents.turn?.seal();
    if (outcome.kind === "rejected") {
      this.#fall(pending, outcome);
    } else if (pending.state === "integrated") {
      pending.finish("confirmed", outcome);
    } else if (pending.documents.length === 0 || outcome.sequence <= this.position + 1) {
      this.#confirm(pending, outcome.sequence);
      pending.finish("confirmed", outcome);
    } else {
      pending.answer = outcome;
      // A feed that cannot be read now changes nothing about the answer: the commit is durable.
      this.catchUp().catch(() => pending.finish("confirmed", outcome));
    }
  }

  /** The commit's changes are now part of the confirmed state. */
  #confirm(pending: PendingCommit, sequence: number): void {
    this.#pending = this.#pending.filter((other) => other !== pending);
    if (pending.documents.length > 0) this.position = Math.max(this.position, sequence);
    for (const document of pending.documents) {
      const index = document.pending.findIndex((share) => share.commit === pending);
      const [share] = document.pending.splice(index, 1);
      if (share) document.confirmed(share.operations, sequence);
    }
  }

  // The feed ---------------------------------------------------------------------------------------------------------

  /** Integrates what others have committed. One at a time; a call during another makes it look once more. */
  catchUp(): Promise<void> {
    this.#again = true;
    this.#catchingUp ??= this.#readFeed().finally(() => {
      this.#catchingUp = undefined;
    });
    return this.#catchingUp;
  }

  async #readFeed(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      const page = await this.#store.changesSince(this.#space, this.position, FEED_PAGE_COMMITS);
      this.#documents.turn?.seal();
      if (page.gap) await this.#reload();
      else for (const commit of page.commits) this.#integrate(commit);
      if (this.position < page.head) this.#again = true;
    }
  }

  #integrate(commit: FeedCommit): void {
    if (commit.sequence <= this.position) return;
    const own = commit.session === this.#session ? this.#ownPending(commit.localSequence) : undefined;
    if (own) {
      this.#confirm(own, commit.sequence);
      own.state = "integrated";
      if (own.answer) own.finish("confirmed", own.answer);
      return;
    }
    this.position = commit.sequence;
    const changes = commit.patches.flatMap((patch) => {
      const document = this.#documents.find(patch);
      return document ? integrateInto(document, patch.operations, commit.sequence) : [];
    });
    this.#documents.written(changes);
    const { session, localSequence } = commit;
    this.#notifier.tell({ kind: "integrate", changes, commit: { session, localSequence } });
  }

  #ownPending(localSequence: number): PendingCommit | undefined {
    return this.#pending.find((pending) => pending.localSequence === localSequence);
  }

  /** The feed no longer reaches back to our position: every document that is here is read anew. */
  async #reload(): Promise<void> {
    const documents = this.#documents.loaded();
    const result = await this.#store.load(this.#space, documents);
    this.#documents.turn?.seal();
    this.position = Math.max(this.position, result.sequence);
    // What the load has seen is no longer pending on top of it.
    for (const pending of this.#pending) {
      if (pending.answer?.kind !== "committed" || pending.answer.sequence > this.position) continue;
      this.#confirm(pending, pending.answer.sequence);
      pending.finish("confirmed", pending.answer);
    }
    const changes = documents.flatMap((document, i) => {
      const loaded = result.documents[i];
      return loaded ? this.#documents.rebaseOn(document, loaded, result.sequence) : [];
    });
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes });
  }

  // Falls ------------------------------------------------------------------------------------------------------------

  #fall(pending: PendingCommit, rejection: Rejection): void {
    const fallen = new Set([pending]);
    for (const other of this.#pending) {
      if (other.request.dependsOn.some((local) => isAmong(fallen, local))) fallen.add(other);
    }
    this.#pending = this.#pending.filter((other) => !fallen.has(other));
    const touched = new Set([...fallen].flatMap((commit) => commit.documents));
    const changes = [...touched].flatMap((document) =>
      document.rebase(
        () => {},
        [],
        (commit) => !fallen.has(commit),
      ),
    );
    this.#documents.written(changes);
    for (const commit of fallen) {
      const message = `stacked on commit ${pending.localSequence}, which was rejected: ${rejection.message}`;
      commit.finish("fallen", commit === pending ? rejection : rejected(rejection.class, "fell-with", message));
    }
    const { session, localSequence } = pending;
    this.#notifier.tell({ kind: "revert", changes, commit: { session, localSequence } });
  }
}

function integrateInto(document: ReplicaDocument, operations: readonly PathOperation[], sequence: number): Change[] {
  if (document.state === "loading") document.missed.push({ sequence, operations });
  if (document.state !== "loaded" || sequence <= document.loadedAt) return [];
  const adopt = (operation: PathOperation): PathOperation => {
    if (operation.op !== "set") return operation;
    return { ...operation, value: admit(operation.value, document.read(operation.path)) };
  };
  if (document.pending.length === 0) {
    return operations.map((operation) => document.apply(adopt(operation)).change).filter((change) => !isSame(change));
  }
  const apply = () => {
    for (const operation of operations) document.apply(adopt(operation));
  };
  return document.rebase(
    apply,
    operations.map((operation) => operation.path),
    () => true,
  );
}

function isSame(change: Change): boolean {
  return equal(change.before, change.after);
}

function isAmong(commits: ReadonlySet<PendingCommit>, localSequence: number): boolean {
  for (const commit of commits) if (commit.localSequence === localSequence) return true;
  return false;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
