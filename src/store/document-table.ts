/**
 * The documents of a replica: loaded, loading, evictable, and their writes since the oldest open transaction began.
 * Bounded: above the maximum it drops documents without holders and pending commits, those not touched since the last
 * sweep first. SPEC: S60-S66.
 *
 * Eviction never happens under running code: a sweep has its own microtask and first seals every turn. A looked-up
 * document may be used until the caller yields the thread; afterwards the caller looks it up again, or must have held
 * it.
 */
import type { Host } from "../host/host.ts";
import { isCleanText } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { AbsentHolds } from "./absent-holds.ts";
import { admit } from "./admit.ts";
import type { Change } from "./change.ts";
import type { DocumentRef } from "./document.ts";
import type { LabelChange } from "./document-labels.ts";
import { DocumentLoader } from "./document-loader.ts";
import { DocumentMap } from "./document-map.ts";
import type { Notifier } from "./notifier.ts";
import { applyOperations } from "./patch.ts";
import type { StackedCommit } from "./pending-index.ts";
import { ReplicaDocument } from "./replica-document.ts";
import { type LoadedDocument, type LoadResult, type Store, StoreError } from "./store.ts";
import type { DocumentPart } from "./transaction.ts";

/** Changes made in place that are not a commit yet. */
export interface OpenTurn {
  /** Commits them (`Replica.adopt`). */
  seal(): void;
}

/** Notified when a document is first created in memory. */
export interface Newcomers {
  met(document: ReplicaDocument): void;
  /** A load came from data with another history. */
  otherHistory(): void;
}

export class ReplicaDocuments {
  readonly loader: DocumentLoader;
  /** Sealed before any other change to the documents, so that changes keep their order in the commits. */
  turn: OpenTurn | undefined;
  newcomers: Newcomers | undefined;
  /** Loads of an older state are ignored: the feed no longer has the commits in between. */
  loadsFrom = 0;
  /** The space has labels, or may have. */
  isLabelled = false;
  /** Of the data that the documents are from. */
  history: string;
  readonly #documents = new DocumentMap<ReplicaDocument>();
  readonly #absentHolds = new AbsentHolds();
  readonly #residentMax: number;
  /** The size at which the next sweep runs. */
  #sweepAt: number;
  #isSweepDue = false;
  readonly #host: Host;
  readonly #notifier: Notifier;
  /** Counts the changes applied here, from any source; reads record it. */
  #tick = 1;
  #openTransactions = 0;
  /** Documents that record writes for the open transactions. */
  readonly #remembering = new Set<ReplicaDocument>();

  constructor(options: {
    store: Store;
    space: string;
    host: Host;
    residentMax: number;
    notifier: Notifier;
    history: string;
  }) {
    this.history = options.history;
    this.loader = new DocumentLoader(options, this);
    this.#residentMax = options.residentMax;
    this.#sweepAt = options.residentMax;
    this.#host = options.host;
    this.#notifier = options.notifier;
  }

  get tick(): number {
    return this.#tick;
  }

  get size(): number {
    return this.#documents.size;
  }

  /** The document if it is in memory; does not start a load. */
  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.get(ref);
  }

  /** The document; starts its load if it is not in memory. */
  touch(ref: DocumentRef): ReplicaDocument {
    const document = this.place(ref);
    if (document.state === "absent") this.loader.request(document);
    return document;
  }

  /** The document in its current state; for a write that replaces it whole without a read. */
  place(ref: DocumentRef): ReplicaDocument {
    const document = this.find(ref) ?? this.#add(ref);
    document.touched = true;
    return document;
  }

  #add(ref: DocumentRef): ReplicaDocument {
    if (!isCleanText(ref.scope) || !isCleanText(ref.id)) {
      throw new StoreError("STORE_MISUSE", "a document's scope and id must not contain NUL or a lone surrogate");
    }
    if (this.size >= this.#sweepAt && !this.#isSweepDue) this.#sweepLater();
    const document = new ReplicaDocument(ref);
    this.#documents.add(ref, document);
    if (this.#absentHolds.handOver(document)) this.loader.request(document);
    this.newcomers?.met(document);
    return document;
  }

  /**
   * Keeps a document in memory once it is loaded, and re-checks it when another session writes it; does not create it.
   * Returns it if it is in memory.
   */
  hold(ref: DocumentRef): ReplicaDocument | undefined {
    const document = this.find(ref);
    if (document === undefined) this.#absentHolds.hold(ref);
    else document.observers++;
    return document;
  }

  letGo(ref: DocumentRef): void {
    const document = this.find(ref);
    if (document === undefined) this.#absentHolds.letGo(ref);
    else document.observers--;
  }

  all(): Iterable<ReplicaDocument> {
    return this.#documents.values();
  }

  /** Marks all derived documents as possibly overwritten by other sessions. */
  doubtDerived(): void {
    for (const document of this.all()) if (document.derived) document.overwritten = true;
  }

  /** Another session has written a document: if it is held but not loaded, load it for its holders. */
  lookAgain(ref: DocumentRef): void {
    const document = this.find(ref);
    if (document === undefined) this.#absentHolds.moved(ref);
    else if (document.isRestedOn) this.touch(document);
  }

  /** Other sessions may have written any document. */
  lookAgainAtAll(): void {
    this.#absentHolds.allMoved();
    for (const document of this.all()) if (document.isRestedOn) this.touch(document);
  }

  /** Documents loaded before that sequence, or written whole by a commit that may be older. */
  behind(sequence: number): ReplicaDocument[] {
    const isHere = ({ state, pending, loadError }: ReplicaDocument) =>
      state === "loaded" || (state === "absent" && pending.length > 0 && loadError === undefined);
    return [...this.all()].filter((document) => document.loadedAt < sequence && !document.derived && isHere(document));
  }

  // Writes recorded for open transactions ----------------------------------------------------------------------------

  transactionOpened(): void {
    this.#openTransactions++;
  }

  transactionEnded(parts: readonly DocumentPart[]): void {
    for (const { document } of parts) document.observers--;
    this.#openTransactions--;
    if (this.#openTransactions > 0 || this.#remembering.size === 0) return;
    for (const document of this.#remembering) document.forget();
    this.#remembering.clear();
  }

  /** Called for every change of a document's value. */
  written(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.#tick++;
    if (this.#openTransactions === 0) return;
    for (const change of changes) {
      const document = this.find(change);
      if (document) this.#remember(document, change.path);
    }
  }

  /** A change made in place by a turn. */
  writtenAt(document: ReplicaDocument, path: Path): void {
    this.#tick++;
    if (this.#openTransactions > 0) this.#remember(document, path);
  }

  #remember(document: ReplicaDocument, path: Path): void {
    document.remember(this.#tick, path);
    this.#remembering.add(document);
  }

  // Loads ------------------------------------------------------------------------------------------------------------

  /** A load came back. */
  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void {
    this.turn?.seal();
    const changes: Change[] = [];
    const labels: LabelChange[] = [];
    const unchanged: ReplicaDocument[] = [];
    if (result.history !== this.history) return this.#loadAgain(documents);
    documents.forEach((document, i) => {
      if (document.state === "dropped") return;
      const loaded = result.documents[i] as LoadedDocument;
      const wasLoaded = document.state === "loaded";
      if (!wasLoaded && result.sequence < this.loadsFrom) {
        this.loader.request(document);
        return;
      }
      labels.push(...this.relabelOn(document, loaded, result.sequence));
      if (wasLoaded) {
        document.missed = NO_COMMITS;
        return;
      }
      const made = this.rebaseOn(document, loaded, result.sequence);
      if (made.length === 0) unchanged.push(document);
      else changes.push(...made);
    });
    this.written(changes);
    this.#notifier.tell({ kind: "pull", changes, labels, unchanged });
  }

  /** Loads again what came from another history, older or newer than the one that is followed. */
  #loadAgain(documents: readonly ReplicaDocument[]): void {
    for (const document of documents) if (document.state === "loading") this.loader.request(document);
    this.newcomers?.otherHistory();
  }

  /** Another history begins: what is known of each document is older than any load. */
  beginHistory(history: string): void {
    this.history = history;
    this.loadsFrom = 0;
    for (const document of this.all()) document.beginHistory();
  }

  /** Puts loaded labels under the pending ones. Runs before `rebaseOn`, which clears the missed commits. */
  relabelOn(document: ReplicaDocument, loaded: LoadedDocument, sequence: number): readonly LabelChange[] {
    // An earlier load may arrive later.
    if (sequence < document.labelsAt) return NO_LABELS;
    document.labelsAt = sequence;
    const missed = document.missed.filter((commit) => commit.labels.length > 0);
    if (loaded.labels.length === 0 && missed.length === 0 && document.labels === undefined) return NO_LABELS;
    const change = document.relabel((labels) => {
      for (const commit of missed) for (const write of commit.labels) labels.integrate(write, commit.sequence);
      labels.loaded(loaded.labels, sequence, isAfter(sequence));
    });
    return change ? [change] : NO_LABELS;
  }

  /** Puts the loaded value under the pending commits of a document. */
  rebaseOn(document: ReplicaDocument, loaded: LoadedDocument, sequence: number): Change[] {
    const missed = document.missed.filter((commit) => commit.sequence > sequence);
    document.missed = [];
    document.state = "loaded";
    document.loadError = undefined;
    document.loadedAt = sequence;
    document.changedAt = missed.at(-1)?.sequence ?? loaded.sequence;
    const operations = missed.flatMap((commit) => commit.operations);
    const rebase = () => {
      const next = applyOperations(loaded.value, operations);
      document.value = next === undefined || document.value === undefined ? next : admit(next, document.value);
    };
    // The load includes commits answered with an earlier sequence, even if the feed has not reached them yet.
    return document.rebase(rebase, [[]], isAfter(sequence));
  }

  /** Marks a loaded document as lost: its current value is unknown. */
  lose(document: ReplicaDocument, error: unknown): Change[] {
    this.loader.lost(document, error);
    return document.lost(error);
  }

  // Memory -----------------------------------------------------------------------------------------------------------

  /** Calls back when no running code can hold a looked-up document. */
  whenUnused(work: () => void): void {
    this.#host.microtask(() => {
      // Writes made in place become pending, so that their documents are not dropped.
      this.turn?.seal();
      work();
    });
  }

  #sweepLater(): void {
    this.#isSweepDue = true;
    this.whenUnused(() => {
      this.#isSweepDue = false;
      this.#dropSome();
    });
  }

  /**
   * Drops documents down to the maximum minus a tenth. The first sweep spares those touched since the last one, the
   * second does not.
   */
  #dropSome(): void {
    const step = Math.max(1, Math.floor(this.#residentMax / 10));
    const target = this.#residentMax - step;
    for (let sweep = 0; sweep < 2; sweep++) {
      for (const document of this.all()) {
        if (this.size <= target) break;
        if (document.touched) document.touched = false;
        else if (isDroppable(document)) this.#drop(document);
      }
    }
    // Documents that cannot be dropped now are not checked again for every added document.
    this.#sweepAt = Math.max(this.#residentMax, this.size + step);
  }

  #drop(document: ReplicaDocument): void {
    this.#documents.delete(document);
    document.dropped();
  }
}

const NO_LABELS: readonly LabelChange[] = Object.freeze([]);
const NO_COMMITS: readonly never[] = Object.freeze([]);

/** Whether a commit is not yet included in the state at a sequence. */
export function isAfter(sequence: number): (commit: StackedCommit) => boolean {
  return ({ answer }) => answer === undefined || answer.sequence > sequence;
}

function isDroppable(document: ReplicaDocument): boolean {
  if (document.labels?.isUnstored) return false;
  return document.state !== "loading" && document.observers === 0 && document.pending.length === 0;
}
