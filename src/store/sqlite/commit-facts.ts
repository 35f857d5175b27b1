/**
 * The facts of `commit-rules.ts` for a commit to be decided, looked up inside its transaction. One object serves all
 * commits. SPEC: S6-S11.
 */
import { DOCUMENT_BYTES_MAX } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import type { CommitIdentity, MembershipClaim } from "../commit.ts";
import type { CommitFacts, DocumentHead, OversizedDocument, StoredCommit } from "../commit-rules.ts";
import type { DocumentRef } from "../document.ts";
import type { Settlement } from "../journal.ts";
import type { EncodedPatch } from "./document-table.ts";
import { feedStart, type SpaceRow } from "./space-table.ts";
import type { Tables } from "./tables.ts";

/** A session row that does not exist. */
const NOBODY = 0;
const NOTHING: readonly Path[] = [];

export interface DecidedCommit {
  readonly request: { readonly space: string };
  readonly patches: readonly EncodedPatch[];
  readonly births: readonly EncodedPatch[];
}

export class SqliteCommitFacts implements CommitFacts {
  readonly #tables: Tables;
  readonly #feedCommits: number;
  #space: SpaceRow | undefined;
  #patches: readonly EncodedPatch[] = [];
  #births: readonly EncodedPatch[] = [];
  #nowMs = 0;
  /** Whether `lostClaim` settles the claim, because no later check can refuse the commit. */
  #settles = false;

  constructor(tables: Tables, feedCommits: number) {
    this.#tables = tables;
    this.#feedCommits = feedCommits;
  }

  /**
   * Switches to another commit. `births` are patches of documents that must be absent; looking up their heads creates
   * them. `settles`: `lostClaim` is asked for a single claim and settles it.
   */
  turnTo({ request, patches, births }: DecidedCommit, settles: boolean, nowMs: number): this {
    this.#space = this.#tables.spaces.find(request.space);
    this.#patches = patches;
    this.#births = births;
    this.#settles = settles;
    this.#nowMs = nowMs;
    return this;
  }

  get history(): string {
    return this.#tables.history;
  }

  get horizonMs(): number {
    return this.#tables.receipts.horizonMs;
  }

  get consumersVersion(): number {
    return this.#tables.consumers.version;
  }

  commitOf(identity: CommitIdentity): StoredCommit | undefined {
    return this.#tables.commits.commitOf(identity);
  }

  wasMade(identity: CommitIdentity): boolean {
    return this.#tables.commits.wasMade(identity);
  }

  head(ref: DocumentRef): DocumentHead | undefined {
    const space = this.#space;
    if (!space) return undefined;
    const birth = this.#births.find(({ scope, id }) => id === ref.id && scope === ref.scope);
    return birth ? this.#tables.documents.headOrBirth(space, birth) : this.#tables.documents.head(space, ref);
  }

  get feedStart(): number {
    return this.#space === undefined ? 0 : feedStart(this.#space, this.#feedCommits);
  }

  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): readonly Path[] | undefined {
    const { documents, commits } = this.#tables;
    const space = this.#space;
    const document = space && documents.find(space, ref);
    if (!space || !document) return NOTHING;
    // Beyond the feed the answer is unknown, even if the rows still exist: all backends answer alike.
    if (sequence < feedStart(space, this.#feedCommits)) return undefined;
    return documents.writtenSince(document, sequence, commits.findSessionId(exceptSession) ?? NOBODY);
  }

  membersChanged(claim: MembershipClaim): boolean | undefined {
    const space = this.#space;
    if (!space) return false;
    if (claim.sequence < feedStart(space, this.#feedCommits)) return undefined;
    return this.#tables.documents.membersChanged(space, claim);
  }

  oversized(): OversizedDocument | undefined {
    const { documents } = this.#tables;
    for (const patch of this.#patches) {
      if (patch.isBirth) continue;
      const { scope, id } = patch;
      const { measured, patches } = documents.bytesWith(this.#space, patch);
      const bytes = measured + patches;
      if (bytes <= DOCUMENT_BYTES_MAX) continue;
      if (this.#space) documents.measureSoon(this.#space, patch);
      return { scope, id, bytes, isEstimate: patches > 0 && measured <= DOCUMENT_BYTES_MAX };
    }
    return undefined;
  }

  hasDueRow(kind: string, key: string, was?: Json): boolean {
    return this.#tables.due.has(kind, key, was);
  }

  lostClaim(settlements: readonly Settlement[]): Settlement | undefined {
    const { journal } = this.#tables;
    if (this.#settles) return journal.settle(settlements[0]!, this.#nowMs) ? undefined : settlements[0];
    return settlements.find((settlement) => !journal.holdsClaim(settlement));
  }
}
