/**
 * What a memory store keeps between one opening and the next: the tables, and who watches them. Store objects that share a
 * disk see each other's writes as processes on one file do. It is gone with the process. SPEC: S22, S24.
 */
import { CHANGES_KEPT_MAX, COMMITS_REMEMBERED_MAX } from "../../limits.ts";
import type { CommitIdentity } from "../commit.ts";
import type { StoredCommit } from "../commit-rules.ts";
import type { StoreChange } from "../store.ts";
import { DueTable } from "./due-table.ts";
import { JournalTable } from "./journal-table.ts";
import { LeaseTable } from "./lease-table.ts";
import { SpaceTable } from "./space-table.ts";

export interface MemoryDiskOptions {
  /** Commits of a space that the feed and conflict detection reach back to. */
  readonly changesKept?: number;
  /** Commits, over all spaces, whose results are remembered for replay and as origins. */
  readonly commitsRemembered?: number;
}

/** Someone who is told of changes; `MemoryStore` makes one for each `watch`. */
export interface Watcher {
  note(change: StoreChange): void;
}

export class MemoryDisk {
  readonly spaces = new Map<string, SpaceTable>();
  readonly leases = new LeaseTable();
  readonly journal = new JournalTable(this.leases);
  readonly due = new DueTable();
  readonly watchers = new Set<Watcher>();
  /** Results of commits by identity, oldest first. */
  readonly #commits = new Map<string, StoredCommit>();
  readonly #changesKept: number;
  readonly #commitsRemembered: number;

  constructor(options: MemoryDiskOptions = {}) {
    const { changesKept = CHANGES_KEPT_MAX, commitsRemembered = COMMITS_REMEMBERED_MAX } = options;
    this.#changesKept = changesKept;
    this.#commitsRemembered = commitsRemembered;
  }

  commitOf(identity: CommitIdentity): StoredCommit | undefined {
    return this.#commits.get(commitKey(identity));
  }

  remember(identity: CommitIdentity, commit: StoredCommit): void {
    this.#commits.set(commitKey(identity), commit);
    if (this.#commits.size <= this.#commitsRemembered) return;
    const [oldest] = this.#commits.keys();
    this.#commits.delete(oldest!);
  }

  /** The space, which need not have been written to yet. */
  space(name: string): SpaceTable {
    return this.spaces.get(name) ?? new SpaceTable(this.#changesKept);
  }

  announce(change: StoreChange): void {
    for (const watcher of this.watchers) watcher.note(change);
  }
}

/** Unique because a NUL cannot be in a session's name. */
function commitKey({ session, localSequence }: CommitIdentity): string {
  return `${session}\0${localSequence}`;
}
