/**
 * How documents are labelled that were put here without ever having been loaded. As long as only this replica writes them, it has nothing of
 * anybody else's to hide. Before what others have written to one of them is taken in, its labels are loaded. SPEC: S76.
 *
 * Not asked for where nothing of the store is labelled: then nothing can be missed.
 */
import type { DocumentTable } from "./document-table.ts";
import { isDamage, type LoadHome, type LoadSource, loadApart } from "./load-apart.ts";
import type { Notifier } from "./notifier.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { FeedCommit, LoadedDocument, LoadResult } from "./store.ts";

export class UnseenLabels implements LoadHome {
  readonly #source: LoadSource;
  readonly #documents: DocumentTable;
  readonly #notifier: Notifier;

  constructor(source: LoadSource, documents: DocumentTable, notifier: Notifier) {
    this.#source = source;
    this.#documents = documents;
    this.#notifier = notifier;
  }

  /** Loads what has to be known before these commits of others are taken in; undefined where that is nothing, which it mostly is. */
  before(commits: readonly FeedCommit[]): Promise<void> | undefined {
    const written = commits.flatMap(({ patches }) => patches.map((patch) => this.#documents.find(patch)));
    const unseen = new Set(written.filter((document) => document?.isUnseen === true) as ReplicaDocument[]);
    return unseen.size === 0 ? undefined : loadApart(this.#source, [...unseen], this);
  }

  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void {
    this.#documents.turn?.seal();
    const relabel = (document: ReplicaDocument, at: number) =>
      this.#documents.relabelOn(document, result.documents[at] as LoadedDocument, result.sequence);
    this.#notifier.tell({ kind: "pull", changes: [], labels: documents.flatMap(relabel) });
  }

  /** What is damaged nobody knows any more. Any other error is that of the store; whoever looked into the feed looks again. */
  failed(documents: readonly ReplicaDocument[], error: unknown): void {
    if (!isDamage(error)) throw error;
    this.#documents.turn?.seal();
    const changes = documents.flatMap((document) => this.#documents.lose(document, error));
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes });
  }
}
