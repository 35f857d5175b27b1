/**
 * What a memory store keeps between one opening and the next: the tables, and who watches them. Store objects that share a
 * disk see each other's writes as processes on one file do. It is gone with the process. SPEC: S22, S24.
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
  /** Commits, over all spaces, whose results are remembered for replay and as origins. */
  readonly commitsRemembered?: number;
  /** Bytes of one message's data in the journal; a larger one is refused. At most, and unless given, 1 MiB. */
  readonly payloadBytesMax?: number;
}

/** Someone who is told of changes; `MemoryStore` makes one for each `watch`. */
export interface Watcher {
  /** The space that has moved, if one has; whether the journal or the due table has. */
  note(space: string | undefined, journal: boolean): void;
}

export class MemoryDisk {
  readonly spaces = new Map<string, SpaceTable>();
  readonly leases = new LeaseTable();
  readonly consumers = new ConsumerRows(this.leases);
  readonly journal = new JournalTable(this.leases, this.consumers);
  readonly due = new DueTable();
  /** Another list with every change of it: every commit goes through it. */
  #watchers: readonly Watcher[] = [];
  /** Of what was made before, receipts may have been removed. */
  horizonMs = 0;
  /** Commits by session and local sequence. */
  readonly #sessions = new Map<string, CommitList<CommitRecord>>();
  /** All of them, oldest first, from `#first` on. */
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
    // Cut off when it is more than what is kept: each is moved once at most.
    if (this.#first <= this.#commitsRemembered) return;
    this.#remembered = this.#remembered.slice(this.#first);
    this.#first = 0;
  }

  /** Raises the horizon, and removes what it has passed; resolves with how many went. */
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

  /** The space, which need not have been written to yet. */
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
