/**
 * Reloads all documents in memory in batches when the feed no longer reaches back to the replica's position. The thread
 * is yielded between batches. SPEC: S68.
 *
 * Each batch has its own sequence, at or after the resulting position. The feed continues there and skips commits that
 * a document already includes. Until all batches have arrived, documents are from different moments, like documents
 * loaded one by one; a commit that read outdated ones is stale, because each read claim has its own sequence.
 *
 * A damaged document is dropped (`ReplicaDocument.lost`) because its current value is unknown. That is reported once
 * per reload, and the loader retries held ones. Any other error ends the reload, and the feed is read again later.
 */
import { RELOAD_BATCH_DOCUMENTS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Change } from "./change.ts";
import type { LabelChange } from "./document-labels.ts";
import type { ReplicaDocuments } from "./document-table.ts";
import { isDamage, type LoadHome, type LoadSource, loadApart } from "./load-apart.ts";
import type { Notifier } from "./notifier.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type LoadedDocument, type LoadResult, StoreError } from "./store.ts";

export class Reload implements LoadHome {
  readonly #source: LoadSource;
  readonly #documents: ReplicaDocuments;
  readonly #notifier: Notifier;
  /** The feed continues after this sequence. */
  #position = 0;
  #lost = 0;
  /** The first lost document and its error. */
  #firstLost: string | undefined;

  constructor(source: LoadSource, documents: ReplicaDocuments, notifier: Notifier) {
    this.#source = source;
    this.#documents = documents;
    this.#notifier = notifier;
  }

  /** Resolves with the position from which the feed continues. With `isOther`, the data have another history. */
  async run(isOther: boolean): Promise<number> {
    const { store, space, host } = this.#source;
    const documents = this.#documents;
    documents.doubtDerived();
    documents.lookAgainAtAll();
    const { sequence: position, history, isLabelled } = await store.load(space, []);
    if (isOther) {
      documents.turn?.seal();
      documents.beginHistory(history);
    }
    this.#requireHistory(history);
    if (isLabelled) documents.isLabelled = true;
    this.#position = position;
    // Loads under way must not be older.
    documents.loadsFrom = position;
    // Documents that arrive meanwhile may come from an older request, so check until none is behind.
    for (let left = documents.behind(position); left.length > 0; left = documents.behind(position)) {
      for (let from = 0; from < left.length; from += RELOAD_BATCH_DOCUMENTS) {
        await loadApart(this.#source, left.slice(from, from + RELOAD_BATCH_DOCUMENTS), this);
        await host.yield();
      }
    }
    return position;
  }

  /** Report about unreadable documents; undefined if there are none. */
  get trouble(): StoreError | undefined {
    if (this.#firstLost === undefined) return undefined;
    const others = this.#lost === 1 ? "" : `, and ${this.#lost - 1} more`;
    const message =
      `documents of space "${this.#source.space}" were here and cannot be read any more: ${this.#firstLost}${others}; ` +
      "they read as absent and nothing is committed on that; see `millrace verify`, and put them whole or restore a backup";
    return new StoreError("STORE_CORRUPT", message);
  }

  /** The reload begins again with the next look at the feed. */
  #requireHistory(history: string): void {
    if (history !== this.#documents.history) throw new StoreError("STORE_BUSY", "the data have another history again");
  }

  arrived(asked: readonly ReplicaDocument[], { documents, sequence, history }: LoadResult): void {
    this.#documents.turn?.seal();
    this.#requireHistory(history);
    const changes: Change[] = [];
    const labels: LabelChange[] = [];
    asked.forEach((document, i) => {
      if (!this.#isStillBehind(document)) return;
      const loaded = documents[i] as LoadedDocument;
      labels.push(...this.#documents.relabelOn(document, loaded, sequence));
      changes.push(...this.#documents.rebaseOn(document, loaded, sequence));
    });
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes, labels });
  }

  /** Damaged documents; any other error concerns the store and ends the reload. */
  failed(documents: readonly ReplicaDocument[], error: unknown): void {
    if (!isDamage(error)) throw error;
    this.#documents.turn?.seal();
    const lost = documents.filter((document) => this.#isStillBehind(document));
    for (const { scope, id } of lost) this.#firstLost ??= `${scope}/${id} (${thrownText(error)})`;
    this.#lost += lost.length;
    const changes = lost.flatMap((document) => this.#documents.lose(document, error));
    this.#documents.written(changes);
    this.#notifier.tell({ kind: "integrate", changes });
  }

  /** Meanwhile it may have been dropped, loaded anew by another caller, or become derived. */
  #isStillBehind({ state, derived, loadedAt }: ReplicaDocument): boolean {
    return (state === "loaded" || state === "absent") && !derived && loadedAt < this.#position;
  }
}
