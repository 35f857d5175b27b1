/**
 * The data of memory stores apart from the journal: documents, remembered commits and watchers. Stores that share a
 * disk see each other's writes, like processes on one file. `MemoryDisk` adds the journal; `DocumentsOnly` refuses it,
 * for programs that use signals alone. SPEC: S22, S24, K142.
 */

import { guarded } from "../../host/hook.ts";
import type { Host } from "../../host/host.ts";
import { CHANGES_KEPT_MAX, COMMITS_REMEMBERED_MAX, JOURNAL_LANES_MAX, PAYLOAD_BYTES_MAX } from "../../limits.ts";
import type { CommitIdentity } from "../commit.ts";
import { CommitList } from "../commit-list.ts";
import type { StoredCommit } from "../commit-rules.ts";
import type { Erased, EraseRequest } from "../erase.ts";
import { newHistory } from "../history.ts";
import { eventOf } from "../receipt-name.ts";
import { checkPayloadBound } from "../request-check.ts";
import type { StoreChange } from "../store.ts";
import { type ForgetRequest, StoreError } from "../store.ts";
import type { WriteNote } from "../write-note.ts";
import { UntoldWrites } from "../write-note.ts";
import type { CommitRecord } from "./commit-record.ts";
import type { ConsumerRows } from "./consumer-table.ts";
import type { DueTable } from "./due-table.ts";
import type { JournalTable } from "./journal-table.ts";
import { MemoryLane } from "./lane.ts";
import type { LeaseTable } from "./lease-table.ts";
import { SpaceTable } from "./space-table.ts";

export interface MemoryDiskOptions {
  /** Commits of a space that the feed and conflict detection reach back to. */
  readonly changesKept?: number;
  /** Commits over all spaces whose results are kept for the replay check and as origins. */
  readonly commitsRemembered?: number;
  /** Gives each store object its own lane of the journal, as a database server does. */
  readonly isLaned?: boolean;
  /** Limit of bytes of a journal message's data; larger ones are refused. Default and maximum: 1 MiB. */
  readonly payloadBytesMax?: number;
}

/** Receives change notices; `MemoryStore` creates one per `watch`. */
export interface DiskWatcher {
  /** The changed space, if any, and whether the journal or the due table changed. */
  note(note: WriteNote, by: object): void;
}

/** The journal and the tables that belong to it. */
export interface JournalTables {
  readonly leases: LeaseTable;
  readonly consumers: ConsumerRows;
  readonly journal: JournalTable;
  readonly due: DueTable;
}

export abstract class DocumentDisk {
  /** Throws a `StoreError` if the disk has none. */
  abstract readonly tables: JournalTables;
  abstract readonly hasJournal: boolean;
  /** Removes the data of a subject from documents and journal. */
  abstract erase(request: EraseRequest): Erased;
  readonly spaces = new Map<string, SpaceTable>();
  /** Copied on every change, because every commit iterates it. */
  #watchers: readonly DiskWatcher[] = [];
  /** Receipts of messages made before this time may have been removed. */
  horizonMs = 0;
  /** Commits by session and local sequence. */
  readonly #sessions = new Map<string, CommitList<CommitRecord>>();
  /** All commits, oldest first, from `#first` on. */
  #remembered: CommitRecord[] = [];
  #first = 0;
  readonly #changesKept: number;
  readonly #commitsRemembered: number;
  readonly payloadBytesMax: number;
  readonly #isLaned: boolean;
  /** Lanes of open store objects. */
  readonly #lanesTaken = new Set<number>();
  /** The id of the data's history; empty before the first store object. */
  history = "";

  constructor(options: MemoryDiskOptions = {}) {
    const { changesKept = CHANGES_KEPT_MAX, commitsRemembered = COMMITS_REMEMBERED_MAX } = options;
    this.#changesKept = changesKept;
    this.#commitsRemembered = commitsRemembered;
    this.payloadBytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX;
    checkPayloadBound(this.payloadBytesMax);
    this.#isLaned = options.isLaned ?? false;
  }

  /** A store object opens the disk; the first makes the history. */
  open(host: Host): MemoryLane {
    if (this.history === "") this.history = newHistory(host);
    if (!this.#isLaned) return new MemoryLane(0, false);
    let lane = 0;
    while (this.#lanesTaken.has(lane)) lane++;
    if (lane >= JOURNAL_LANES_MAX) throw new StoreError("STORE_FULL", `${lane} store objects are open on this disk`);
    this.#lanesTaken.add(lane);
    return new MemoryLane(lane, true);
  }

  /** A store object was closed: the next one may take its lane. */
  close({ lane }: MemoryLane): void {
    this.#lanesTaken.delete(lane);
  }

  commitOf({ session, localSequence }: CommitIdentity): StoredCommit | undefined {
    return this.#sessions.get(session)?.get(localSequence);
  }

  remember(commit: CommitRecord): void {
    let commits = this.#sessions.get(commit.session);
    if (commits === undefined) {
      commits = new CommitList();
      this.#sessions.set(commit.session, commits);
    }
    commits.add(commit);
    this.#remembered.push(commit);
    if (this.#remembered.length - this.#first > this.#commitsRemembered) this.#forgetOldest();
  }

  #forgetOldest(): void {
    const { session, localSequence } = this.#remembered[this.#first++] as CommitRecord;
    const commits = this.#sessions.get(session);
    commits?.delete(localSequence);
    if (commits?.size === 0) this.#sessions.delete(session);
    // Compacted when more than half is empty, so each entry is moved at most once on average.
    if (this.#first <= this.#commitsRemembered) return;
    this.#remembered = this.#remembered.slice(this.#first);
    this.#first = 0;
  }

  /** Raises the horizon, removes receipts behind it, and returns their number. */
  forgetReceipts({ madeBeforeMs, limit }: ForgetRequest): number {
    this.horizonMs = Math.max(this.horizonMs, madeBeforeMs);
    const isNeeded = (name: string) => {
      const event = eventOf(name);
      return event !== undefined && this.hasJournal && this.tables.journal.isUnsettled(event.id);
    };
    let removed = 0;
    for (const space of this.spaces.values())
      removed += space.forgetReceipts(this.horizonMs, limit - removed, isNeeded);
    return removed;
  }

  /** The space, or an empty one if it was never written. */
  space(name: string): SpaceTable {
    return this.spaces.get(name) ?? new SpaceTable(this.#changesKept);
  }

  watch(watcher: DiskWatcher): void {
    this.#watchers = [...this.#watchers, watcher];
  }

  unwatch(watcher: DiskWatcher): void {
    this.#watchers = this.#watchers.filter((other) => other !== watcher);
  }

  /** `by`: the store object that made the change. */
  announce(note: WriteNote, by: object): void {
    for (const watcher of this.#watchers) watcher.note(note, by);
  }
}

/** A disk without a journal. */
export class DocumentsOnly extends DocumentDisk {
  readonly hasJournal = false;

  erase(): never {
    return this.tables;
  }

  get tables(): never {
    throw new StoreError("STORE_MISUSE", "this store keeps documents only; use memoryStore() for events and timers");
  }
}

/**
 * Notifies one listener of changes in a microtask of its host; changes until then are merged. SPEC: S23.
 *
 * Delayed by one extra microtask, so that the answers to writes of the current task arrive first and the replica that
 * made them need not read the feed.
 */
export class ChangeWatcher implements DiskWatcher {
  readonly #host: Host;
  readonly #listener: (change: StoreChange) => void;
  readonly #store: object;
  #untold = new UntoldWrites();
  #isForeign = false;
  #state: "idle" | "scheduled" | "stopped" = "idle";

  /** `store`: the store object whose `watch` was called. */
  constructor(host: Host, store: object, listener: (change: StoreChange) => void) {
    this.#host = host;
    this.#store = store;
    this.#listener = guarded(host, listener);
  }

  note(note: WriteNote, by: object): void {
    if (this.#state === "stopped") return;
    this.#untold.add(note);
    this.#isForeign ||= by !== this.#store;
    if (this.#state === "scheduled") return;
    this.#state = "scheduled";
    this.#host.microtask(() => this.#host.microtask(this.#tell));
  }

  stop(): void {
    this.#state = "stopped";
  }

  readonly #tell = (): void => {
    if (this.#state === "stopped") return;
    const change = this.#untold.notice(this.#isForeign);
    this.#untold = new UntoldWrites();
    this.#isForeign = false;
    this.#state = "idle";
    this.#listener(change);
  };
}
