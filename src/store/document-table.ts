/**
 * The documents of a replica: which are here, which are being loaded, which may be dropped, and what was written to them since
 * the oldest open transaction began. Bounded: beyond its maximum it drops documents that nobody observes and nothing pends on,
 * those not touched since the last sweep first.
 */
import type { Host } from "../host/host.ts";
import type { Path } from "../message/path.ts";
import { admit } from "./admit.ts";
import type { Change } from "./change.ts";
import { type DocumentRef, documentKey } from "./document.ts";
import { DocumentLoader } from "./document-loader.ts";
import type { Notifier } from "./notifier.ts";
import { applyOperations } from "./patch.ts";
import { ReplicaDocument } from "./replica-document.ts";
import type { LoadedDocument, LoadResult, Store } from "./store.ts";

/** Changes that were made to documents in place and are not a commit yet. */
export interface OpenTurn {
  /** Makes them one (`Replica.adopt`). */
  seal(): void;
}

export class DocumentTable {
  readonly loader: DocumentLoader;
  /** Sealed before anything else happens to the documents, so that every change lies in its commit's place. */
  turn: OpenTurn | undefined;
  readonly #documents = new Map<string, ReplicaDocument>();
  readonly #residentMax: number;
  readonly #notifier: Notifier;
  /** Counts what was applied here, by whomever; reads remember it. */
  #tick = 1;
  #openTransactions = 0;
  /** Documents that remember writes for the open transactions. */
  readonly #remembering = new Set<ReplicaDocument>();

  constructor(options: { store: Store; space: string; host: Host; residentMax: number; notifier: Notifier }) {
    this.loader = new DocumentLoader(options.store, options.space, options.host, this);
    this.#residentMax = options.residentMax;
    this.#notifier = options.notifier;
  }

  get tick(): number {
    return this.#tick;
  }

  get size(): number {
    return this.#documents.size;
  }

  /** The document if it is known here; asks for no load. */
  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.get(documentKey(ref));
  }

  /** The document, after asking for its load if it is not here. */
  touch(ref: DocumentRef): ReplicaDocument {
    const document = this.place(ref);
    if (document.state === "absent") this.loader.request(document);
    return document;
  }

  /** The document as far as it is known, for whoever replaces it whole without reading it. */
  place(ref: DocumentRef): ReplicaDocument {
    const key = documentKey(ref);
    let document = this.#documents.get(key);
    if (!document) {
      if (this.#documents.size >= this.#residentMax) this.#dropSome();
      document = new ReplicaDocument(ref);
      this.#documents.set(key, document);
    }
    document.touched = true;
    return document;
  }

  loaded(): ReplicaDocument[] {
    return [...this.#documents.values()].filter((document) => document.state === "loaded");
  }

  // Writes that open transactions have to know of ----------------------------------------------------------------------

  transactionOpened(): void {
    this.#openTransactions++;
  }

  transactionEnded(): void {
    this.#openTransactions--;
    if (this.#openTransactions > 0) return;
    for (const document of this.#remembering) document.forget();
    this.#remembering.clear();
  }

  /** Every change of a document's value passes here. */
  written(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.#tick++;
    if (this.#openTransactions === 0) return;
    for (const change of changes) {
      const document = this.find(change);
      if (!document) continue;
      document.remember(this.#tick, change.path);
      this.#remembering.add(document);
    }
  }

  /** A change made in place by a turn. */
  writtenAt(document: ReplicaDocument, path: Path): void {
    this.#tick++;
    if (this.#openTransactions === 0) return;
    document.remember(this.#tick, path);
    this.#remembering.add(document);
  }

  // Loads ------------------------------------------------------------------------------------------------------------

  /** A load came back. */
  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void {
    this.turn?.seal();
    const changes = documents.flatMap((document, i) => {
      document.state = "loaded";
      document.loadError = undefined;
      return this.rebaseOn(document, result.documents[i] as LoadedDocument, result.sequence);
    });
    this.written(changes);
    this.#notifier.tell({ kind: "pull", changes });
  }

  /** Puts what a backend has said under the pending commits of a document. */
  rebaseOn(document: ReplicaDocument, loaded: LoadedDocument, sequence: number): Change[] {
    const missed = document.missed.filter((commit) => commit.sequence > sequence);
    document.missed = [];
    document.loadedAt = sequence;
    document.labels = loaded.labels;
    const rebase = () => {
      const next = applyOperations(
        loaded.value,
        missed.flatMap((commit) => commit.operations),
      );
      document.value = next === undefined || document.value === undefined ? next : admit(next, document.value);
    };
    return document.rebase(rebase, [[]], () => true);
  }

  // Memory -----------------------------------------------------------------------------------------------------------

  /** Drops up to a tenth of the documents: one sweep spares what was touched since the last, a second does not. */
  #dropSome(): void {
    let wanted = Math.max(1, Math.floor(this.#residentMax / 10));
    for (let sweep = 0; sweep < 2 && wanted > 0; sweep++) {
      for (const [key, document] of this.#documents) {
        if (wanted === 0) return;
        if (document.touched) {
          document.touched = false;
        } else if (this.#isDroppable(document)) {
          this.#documents.delete(key);
          wanted--;
        }
      }
    }
  }

  #isDroppable(document: ReplicaDocument): boolean {
    // An open transaction may have read any document; it must meet the same one when it commits.
    return (
      document.state !== "loading" &&
      document.observers === 0 &&
      document.pending.length === 0 &&
      this.#openTransactions === 0
    );
  }
}
