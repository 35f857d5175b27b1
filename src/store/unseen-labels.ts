/**
 * Labels of documents that were created here without a load. While only this replica writes them, they hold no labelled
 * data of other sessions. Before foreign writes to one of them are integrated, its labels are loaded. SPEC: S76.
 *
 * Skipped if the store has no labels at all.
 */
import type { ReplicaDocuments } from "./document-table.ts";
import { isDamage, type LoadHome, type LoadSource, loadApart } from "./load-apart.ts";
import type { Notifier } from "./notifier.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { FeedCommit, LoadedDocument, LoadResult } from "./store.ts";

export class UnseenLabels implements LoadHome {
  readonly #source: LoadSource;
  readonly #documents: ReplicaDocuments;
  readonly #notifier: Notifier;

  constructor(source: LoadSource, documents: ReplicaDocuments, notifier: Notifier) {
    this.#source = source;
    this.#documents = documents;
    this.#notifier = notifier;
  }

  /** Loads the labels needed before these foreign commits are integrated; undefined if none are needed, as is usual. */
  before(commits: readonly FeedCommit[]): Promise<void> | undefined {
    const written = commits.flatMap(({ patches }) => patches.map((patch) => this.#documents.find(patch)));
    const unseen = new Set(written.filter((document) => document?.isUnseen === true) as ReplicaDocument[]);
    return unseen.size === 0 ? undefined : loadApart(this.#source, [...unseen], this);
  }

  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void {
    this.#documents.turn?.seal();
    // The next look at the feed reloads.
    if (result.history !== this.#documents.history) return;
    const relabel = (document: ReplicaDocument, at: number) =>
      this.#documents.relabelOn(document, result.documents[at] as LoadedDocument, result.sequence);
    this.#notifier.tell({ kind: "pull", changes: [], labels: documents.flatMap(relabel) });
  }

  /** Damaged documents are lost. Any other error concerns the store, and the feed is read again later. */
  failed(documents: readonly ReplicaDocument[], error: unknown): void {
    if (!isDamage(error)) throw error;
    this.#documents.turn?.seal();
    const changes = documents.flatMap((document) => this.#documents.lose(document, error));
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes });
  }
}
