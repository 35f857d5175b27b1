/**
 * A commit in memory: decided by the common rules, prepared without side effects, then stored. No step of the store
 * phase can fail, which makes it atomic. SPEC: S5-S13.
 */
import type { Host } from "../../host/host.ts";
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import type { CommitIdentity, CommitOutcome, CommitRequest, MembershipClaim } from "../commit.ts";
import {
  type CommitFacts,
  type DocumentHead,
  decideCommit,
  type OversizedDocument,
  type StoredCommit,
} from "../commit-rules.ts";
import type { DocumentRef } from "../document.ts";
import type { Settlement } from "../journal.ts";
import { PatchError } from "../patch.ts";
import { StoreError } from "../store.ts";
import { CommitRecord } from "./commit-record.ts";
import type { DocumentDisk } from "./document-disk.ts";
import { findRefusal } from "./entry-refusal.ts";
import type { LaneWriter } from "./journal-table.ts";
import { type PreparedPatch, type SizedPatch, type SpaceTable, sizedPatches } from "./space-table.ts";

/** The store object that commits. */
export interface Committer {
  readonly host: Host;
  readonly lane: LaneWriter;
  readonly work: { bytesWritten: number };
}

export function commitTo(disk: DocumentDisk, request: CommitRequest, { host, lane, work }: Committer): CommitOutcome {
  const space = disk.space(request.space);
  const patches = sizedPatches(request.patches);
  const decision = decideCommit(request, new MemoryFacts(disk, space, patches));
  if (decision.kind !== "apply") return decision;
  const refusal = request.entries.length === 0 ? undefined : findRefusal(request.entries, disk);
  if (refusal !== undefined) return refusal;
  const prepared = prepare(space, patches, request);
  for (const { bytes } of patches) work.bytesWritten += bytes;

  const record = new CommitRecord(request);
  disk.spaces.set(request.space, space);
  space.apply(request, prepared, record);
  if (request.entries.length > 0) record.journalIds = disk.tables.journal.append(request.entries, host.now(), lane);
  for (const settlement of request.settlements) disk.tables.journal.settle(settlement, host.now());
  for (const change of request.due) disk.tables.due.change(change);
  disk.remember(record);
  const { sequence, journalIds } = record;
  return {
    kind: "committed",
    sequence,
    journalIds: journalIds.length === 0 ? NO_IDS : [...journalIds],
    replayed: false,
  };
}

const NO_IDS: readonly number[] = Object.freeze([]);

/** The facts for one commit; a class because every commit creates one. */
class MemoryFacts implements CommitFacts {
  readonly #disk: DocumentDisk;
  readonly #space: SpaceTable;
  readonly #patches: readonly SizedPatch[];

  constructor(disk: DocumentDisk, space: SpaceTable, patches: readonly SizedPatch[]) {
    this.#disk = disk;
    this.#space = space;
    this.#patches = patches;
  }

  get history(): string {
    return this.#disk.history;
  }

  get horizonMs(): number {
    return this.#disk.horizonMs;
  }

  get consumersVersion(): number {
    return this.#disk.hasJournal ? this.#disk.tables.consumers.version : 0;
  }

  commitOf(identity: CommitIdentity): StoredCommit | undefined {
    return this.#disk.commitOf(identity);
  }

  wasMade(identity: CommitIdentity): boolean {
    return this.#disk.commitOf(identity) !== undefined;
  }

  head(ref: DocumentRef): DocumentHead | undefined {
    return this.#space.head(ref);
  }

  get feedStart(): number {
    return this.#space.feedStart;
  }

  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): readonly Path[] | undefined {
    return this.#space.writtenSince(ref, sequence, exceptSession);
  }

  membersChanged(claim: MembershipClaim): boolean | undefined {
    return this.#space.membersChanged(claim);
  }

  oversized(): OversizedDocument | undefined {
    return this.#space.oversized(this.#patches);
  }

  hasDueRow(kind: string, key: string, was?: Json): boolean {
    return this.#disk.tables.due.has(kind, key, was);
  }

  lostClaim(settlements: readonly Settlement[]): Settlement | undefined {
    return settlements.find((settlement) => !this.#disk.tables.journal.holdsClaim(settlement));
  }
}

function prepare(space: SpaceTable, patches: readonly SizedPatch[], request: CommitRequest): readonly PreparedPatch[] {
  try {
    return space.prepare(patches, request);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw new StoreError("STORE_MISUSE", `${error.message}; a write must claim its parent with a reach read`, {
      cause: error,
    });
  }
}
