/**
 * What the tables say about a commit that is to be decided: the facts of `commit-rules.ts`, looked up inside its transaction.
 * One object for all commits, told of each in turn. SPEC: S6-S11.
 */
import type { Path } from "../../message/path.ts";
import type { CommitIdentity } from "../commit.ts";
import type { CommitFacts, DocumentHead, StoredCommit } from "../commit-rules.ts";
import type { DocumentRef } from "../document.ts";
import type { Settlement } from "../journal.ts";
import type { Space } from "./space-table.ts";
import type { Tables } from "./tables.ts";

/** A session row that there is not. */
const NOBODY = 0;
const NOTHING: readonly Path[] = [];

export class SqliteCommitFacts implements CommitFacts {
  readonly #tables: Tables;
  readonly #feedCommits: number;
  #space: Space | undefined;
  #nowMs = 0;
  /** Whether asking for the claims settles them, because nothing after it can be refused. */
  #settles = false;

  constructor(tables: Tables, feedCommits: number) {
    this.#tables = tables;
    this.#feedCommits = feedCommits;
  }

  /** Turns to another commit. `settles`: `lostClaim` will be asked for a single claim, and is to settle it. */
  turnTo(space: string, settles: boolean, nowMs: number): this {
    this.#space = this.#tables.spaces.find(space);
    this.#settles = settles;
    this.#nowMs = nowMs;
    return this;
  }

  commitOf(identity: CommitIdentity): StoredCommit | undefined {
    return this.#tables.spaces.commitOf(identity);
  }

  wasMade(identity: CommitIdentity): boolean {
    return this.#tables.spaces.wasMade(identity);
  }

  head(ref: DocumentRef): DocumentHead | undefined {
    return this.#space && this.#tables.documents.head(this.#space, ref);
  }

  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): readonly Path[] | undefined {
    const { documents, spaces } = this.#tables;
    const space = this.#space;
    const document = space && documents.find(space, ref);
    if (!space || !document) return NOTHING;
    // Beyond the feed's reach nobody can tell, even where the rows are still there: every backend answers alike.
    if (sequence < space.sequence - this.#feedCommits) return undefined;
    return documents.writtenSince(document, sequence, spaces.findSessionId(exceptSession) ?? NOBODY);
  }

  hasDueRow(kind: string, key: string): boolean {
    return this.#tables.due.has(kind, key);
  }

  lostClaim(settlements: readonly Settlement[]): Settlement | undefined {
    const { journal } = this.#tables;
    if (this.#settles) return journal.settle(settlements[0]!, this.#nowMs) ? undefined : settlements[0];
    return settlements.find((settlement) => !journal.holdsClaim(settlement));
  }
}
