/**
 * The documents of a replica: which are here, which are being loaded, which may be dropped, and what was written to them since
 * the oldest open transaction began. Bounded: beyond its maximum it drops documents that nobody holds and nothing pends on,
 * those not touched since the last sweep first. SPEC: S60-S66.
 *
 * Nothing is dropped under the feet of code that runs: a sweep has a microtask of its own, before which every turn is sealed. So whoever
 * looks a document up may use it until he lets go of the thread, and after that looks it up again or has held it.
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
import type { PendingCommit } from "./pending-commit.ts";
import { ReplicaDocument } from "./replica-document.ts";
import { type LoadedDocument, type LoadResult, type Store, StoreError } from "./store.ts";
import type { DocumentPart } from "./transaction.ts";

/** Changes that were made to documents in place and are not a commit yet. */
export interface OpenTurn {
  /** Makes them one (`Replica.adopt`). */
  seal(): void;
}

/** Hears of documents that are met for the first time. */
export interface Newcomers {
  met(document: ReplicaDocument): void;
}

export class DocumentTable {
  readonly loader: DocumentLoader;
  /** Sealed before anything else happens to the documents, so that every change lies in its commit's place. */
  turn: OpenTurn | undefined;
  newcomers: Newcomers | undefined;
  /** Loads of an older state than this come too late: the feed has no more of what lies between. */
  loadsFrom = 0;
  /** Something of the space is labelled, or may be. */
  isLabelled = false;
  readonly #documents = new DocumentMap<ReplicaDocument>();
  readonly #absentHolds = new AbsentHolds();
  readonly #residentMax: number;
  /** The size at which to look again for what can be dropped. */
  #sweepAt: number;
  #isSweepDue = false;
  readonly #host: Host;
  readonly #notifier: Notifier;
  /** Counts what was applied here, by whomever; reads remember it. */
  #tick = 1;
  #openTransactions = 0;
  /** Documents that remember writes for the open transactions. */
  readonly #remembering = new Set<ReplicaDocument>();

  constructor(options: { store: Store; space: string; host: Host; residentMax: number; notifier: Notifier }) {
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

  /** The document if it is known here; asks for no load. */
  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.get(ref);
  }

  /** The document, after asking for its load if it is not here. */
  touch(ref: DocumentRef): ReplicaDocument {
    const document = this.place(ref);
    if (document.state === "absent") this.loader.request(document);
    return document;
  }

  /** The document as far as it is known, for whoever replaces it whole without reading it. */
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

  /** Keeps a document in memory once it is here, and has it looked at again when others write it; makes none. Gives it if it is here. */
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

  /** Nobody can tell what others have stored in place of what is computed here. */
  doubtDerived(): void {
    for (const document of this.all()) if (document.derived) document.overwritten = true;
  }

  /** Others have written a document: whoever rests on it without having it here is told what it is now, by a load. */
  lookAgain(ref: DocumentRef): void {
    const document = this.find(ref);
    if (document === undefined) this.#absentHolds.moved(ref);
    else if (document.isRestedOn) this.touch(document);
  }

  /** Others may have written any document. */
  lookAgainAtAll(): void {
    this.#absentHolds.allMoved();
    for (const document of this.all()) if (document.isRestedOn) this.touch(document);
  }

  /** Documents that are here as they were stored before that sequence, or as a commit has put them that may be as old. */
  behind(sequence: number): ReplicaDocument[] {
    const isHere = ({ state, pending, loadError }: ReplicaDocument) =>
      state === "loaded" || (state === "absent" && pending.length > 0 && loadError === undefined);
    return [...this.all()].filter((document) => document.loadedAt < sequence && !document.derived && isHere(document));
  }

  // Writes that open transactions have to know of ----------------------------------------------------------------------

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

  /** Every change of a document's value passes here. */
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

  /** Puts the labels that a backend has said under the pending ones; before the value, which has taken what was missed then. */
  relabelOn(document: ReplicaDocument, loaded: LoadedDocument, sequence: number): readonly LabelChange[] {
    // A load that was asked for earlier may come later.
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

  /** Puts what a backend has said under the pending commits of a document. */
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
    // What was answered with an earlier sequence is in what was loaded, even if the feed has not come to it yet.
    return document.rebase(rebase, [[]], isAfter(sequence));
  }

  /** It was here, and nobody can tell any more what it is. */
  lose(document: ReplicaDocument, error: unknown): Change[] {
    this.loader.lost(document, error);
    return document.lost(error);
  }

  // Memory -----------------------------------------------------------------------------------------------------------

  /** Calls back when no code is under way that may have looked something up. */
  whenUnused(work: () => void): void {
    this.#host.microtask(() => {
      // What was written in place is pending from here on, so that it stays.
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

  /** Drops what is above the maximum and a tenth: one sweep spares what was touched since the last, a second does not. */
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
    // What cannot be dropped now is not looked at again for every single document that is added.
    this.#sweepAt = Math.max(this.#residentMax, this.size + step);
  }

  #drop(document: ReplicaDocument): void {
    this.#documents.delete(document);
    document.dropped();
  }
}

const NO_LABELS: readonly LabelChange[] = Object.freeze([]);
const NO_COMMITS: readonly never[] = Object.freeze([]);

/** Whether a commit is not yet part of what a backend has said as of a sequence. */
export function isAfter(sequence: number): (commit: PendingCommit) => boolean {
  return ({ answer }) => answer === undefined || answer.sequence > sequence;
}

function isDroppable(document: ReplicaDocument): boolean {
  if (document.labels?.isUnstored) return false;
  return document.state !== "loading" && document.observers === 0 && document.pending.length === 0;
}
