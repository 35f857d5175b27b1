/**
 * What a replica does when the feed no longer reaches back to its position: every document that is here is read anew, so many at a time,
 * and the thread is given back between. SPEC: S68.
 *
 * Each batch is as of its own sequence, none before the position that is the result: the feed goes on from there, and passes over what a
 * document has seen already. Until all have come they are of different moments, as documents are that are loaded one by one; a commit that read
 * such is stale, because what it claims is dated document by document, and the old ones before the feed's horizon.
 *
 * A document that is damaged is here no longer (`ReplicaDocument.lost`): what was known of it is as of a moment that nobody can tell any more.
 * That is told once for each reload, and the loader tries again where somebody holds it. Any other error ends the reload; whoever looked into the feed looks again.
 */
import { RELOAD_BATCH_DOCUMENTS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Change } from "./change.ts";
import type { LabelChange } from "./document-labels.ts";
import type { DocumentTable } from "./document-table.ts";
import { isDamage, type LoadHome, type LoadSource, loadApart } from "./load-apart.ts";
import type { Notifier } from "./notifier.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type LoadedDocument, type LoadResult, StoreError } from "./store.ts";

export class Reload implements LoadHome {
  readonly #source: LoadSource;
  readonly #documents: DocumentTable;
  readonly #notifier: Notifier;
  /** From which the feed goes on. */
  #position = 0;
  #lost = 0;
  /** The first of them, and why. */
  #firstLost: string | undefined;

  constructor(source: LoadSource, documents: DocumentTable, notifier: Notifier) {
    this.#source = source;
    this.#documents = documents;
    this.#notifier = notifier;
  }

  /** Resolves with the position from which the feed goes on. */
  async run(): Promise<number> {
    const { store, space, host } = this.#source;
    const documents = this.#documents;
    documents.doubtDerived();
    documents.lookAgainAtAll();
    const { sequence: position, isLabelled } = await store.load(space, []);
    if (isLabelled) documents.isLabelled = true;
    this.#position = position;
    // What is on its way must not be older.
    documents.loadsFrom = position;
    // What is loaded meanwhile may have been asked for before, so look until there is none of that.
    for (let left = documents.behind(position); left.length > 0; left = documents.behind(position)) {
      for (let from = 0; from < left.length; from += RELOAD_BATCH_DOCUMENTS) {
        await loadApart(this.#source, left.slice(from, from + RELOAD_BATCH_DOCUMENTS), this);
        await host.yield();
      }
    }
    return position;
  }

  /** What has become unreadable, for people; undefined where nothing has. */
  get trouble(): StoreError | undefined {
    if (this.#firstLost === undefined) return undefined;
    const others = this.#lost === 1 ? "" : `, and ${this.#lost - 1} more`;
    const message =
      `documents of space "${this.#source.space}" were here and cannot be read any more: ${this.#firstLost}${others}; ` +
      "they read as absent and nothing is committed on that; see `millrace verify`, and put them whole or restore a backup";
    return new StoreError("STORE_CORRUPT", message);
  }

  arrived(asked: readonly ReplicaDocument[], { documents, sequence }: LoadResult): void {
    this.#documents.turn?.seal();
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

  /** Those that are damaged; any other error is that of the store, and ends the reload. */
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

  /** It may have been dropped meanwhile, be on its way by somebody else's wish or have come so, newer, or be computed here from now on. */
  #isStillBehind({ state, derived, loadedAt }: ReplicaDocument): boolean {
    return (state === "loaded" || state === "absent") && !derived && loadedAt < this.#position;
  }
}
