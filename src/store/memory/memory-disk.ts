/**
 * The data of memory stores: the tables and their watchers. Store objects that share a disk see each other's writes,
 * like processes on one file. It ends with the process. SPEC: S22, S24.
 */
import { CHANGES_KEPT_MAX, COMMITS_REMEMBERED_MAX, PAYLOAD_BYTES_MAX } from "../../limits.ts";
import type { CommitIdentity } from "../commit.ts";
import { CommitList } from "../commit-list.ts";
import type { StoredCommit } from "../commit-rules.ts";
import { eventOf } from "../receipt-name.ts";
import { checkPayloadBound } from "../request-check.ts";
import type { ForgetRequest } from "../store.ts";
import type { CommitRecord } from "./commit-record.ts";
import { ConsumerRows } from "./consumer-table.ts";
import { DueTable } from "./due-table.ts";
import { JournalTable } from "./journal-table.ts";
import { LeaseTable } from "./lease-table.ts";
import { SpaceTable } from "./space-table.ts";

export interface MemoryDiskOptions {
  /** Commits of a space that the feed and conflict detection reach back to. */
  readonly changesKept?: number;
  /** Commits over all spaces whose results are kept for the replay check and as origins. */
  readonly commitsRemembered?: number;
  /** Limit of bytes of a journal message's data; larger ones are refused. Default and maximum: 1 MiB. */
  readonly payloadBytesMax?: number;
}

/** Receives change notices; `MemoryStore` creates one per `watch`. */
export interface Watcher {
  /** The changed space, if any, and whether the journal or the due table changed. */
  note(space: string | undefined, journal: boolean): void;
}

export class MemoryDisk {
  readonly spaces = new Map<string, SpaceTable>();
  readonly leases = new LeaseTable();
  readonly consumers = new ConsumerRows(this.leases);
  readonly journal = new JournalTable(this.leases, this.consumers);
  readonly due = new DueTable();
  /** Copied on every change, because every commit iterates it. */
  #watchers: readonly Watcher[] = [];
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

  constructor(options: MemoryDiskOptions = {}) {
    const { changesKept = CHANGES_KEPT_MAX, commitsRemembered = COMMITS_REMEMBERED_MAX } = options;
    this.#changesKept = changesKept;
    this.#commitsRemembered = commitsRemembered;
    this.payloadBytesMax = options.payloadBytesMax ?? PAYLOAD_BYTES_MAX;
    checkPayloadBound(this.payloadBytesMax);
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
      return event !== undefined && this.journal.isUnsettled(event.id);
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

  watch(watcher: Watcher): void {
    this.#watchers = [...this.#watchers, watcher];
  }

  unwatch(watcher: Watcher): void {
    this.#watchers = this.#watchers.filter((other) => other !== watcher);
  }

  announce(space: string | undefined, journal: boolean): void {
    for (const watcher of this.#watchers) watcher.note(space, journal);
  }
}
