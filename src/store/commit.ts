/**
 * The atomic request that a replica sends to a backend, and its answer. Plain data that can be sent, stored and
 * replayed. All parts of a request land in one backend transaction or none does.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { DocumentRef } from "./document.ts";
import type { DueChange } from "./due.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import type { PathOperation, ReadDepth } from "./path-operation.ts";
import type { Rejection } from "./rejection.ts";
import type { SqlStatement } from "./sql-statement.ts";

export interface ReadClaim extends DocumentRef {
  readonly path: Path;
  readonly depth: ReadDepth;
  /** The space's commit sequence that the read saw, or `NOT_HERE`. */
  readonly sequence: number;
}

/**
 * Replaces the sequence of a read of a document that was not loaded and so read as absent. The read conflicts with
 * every write, also of the same session, because the replica may have unloaded its own write.
 */
export const NOT_HERE = -1;

export interface DocumentPatch extends DocumentRef {
  readonly operations: readonly PathOperation[];
}

/** The origin of a commit: a session unique per replica incarnation, and a number in the order of application. */
export interface CommitIdentity {
  readonly session: string;
  readonly localSequence: number;
}

/** A condition on documents that must hold for a commit. */
export type Precondition =
  | ({
      readonly kind: "absent";
      /**
       * The document is the receipt of a message made at this time, which is encoded in its name (`receipt.ts`). Such a
       * receipt is refused for a message older than the horizon, and is removed later.
       */
      readonly madeAtMs?: number | undefined;
    } & DocumentRef)
  | ({ readonly kind: "originCommitted" } & CommitIdentity)
  | MembershipClaim;

/**
 * Claims that the documents of a scope with an id prefix are those that `list` returned at a sequence. It fails (stale)
 * if a later commit created or removed one, also a commit of the same session: a list shows only confirmed documents.
 */
export interface MembershipClaim {
  readonly kind: "members";
  readonly scope: string;
  readonly prefix: string;
  /** Sequence of the first page that was read. */
  readonly sequence: number;
}

/** The inputs of a node's last run, so that a restart can tell whether the node must run again. */
export interface NodeBasis {
  /** Durable identity of the node, unique in its space. */
  readonly node: string;
  readonly fingerprint: string;
  /** Gate settings and similar data; opaque to the store. */
  readonly settings?: Json;
  /**
   * The sequence at which the node's output is the one described by this row, or `THIS_COMMIT`. Absent for a node
   * without an output.
   */
  readonly output?: number;
  readonly inputs: readonly BasisInput[];
}

/** Stands for the sequence of the commit that carries the basis: the input is written in the same commit. */
export const THIS_COMMIT = -1;

export interface BasisInput extends DocumentRef {
  /** The space's sequence at which the node saw the document, or `THIS_COMMIT`. */
  readonly sequence: number;
  readonly reads: readonly { readonly path: Path; readonly depth: "deep" | "shallow" }[];
}

/** Replaces the labels of one address; an empty set removes them. */
export interface LabelWrite extends DocumentRef {
  readonly path: Path;
  readonly labels: readonly string[];
}

/** Marks a request made by a replica of this process. No entry point exports it, so other code cannot set it. */
export const ADMITTED: unique symbol = Symbol("admitted");

export interface CommitRequest extends CommitIdentity {
  readonly space: string;
  /** Digest of the payload for the replay check: the same commit sent twice carries the same digest. */
  readonly digest: string;
  /**
   * Set for a finished transaction of a replica in this process: names, reads and patches are checked, patch values are
   * frozen and the lists no longer change. A backend may keep the request without a copy.
   */
  readonly admitted?: typeof ADMITTED | undefined;
  /**
   * The history that the sequences of this request belong to (`connection.ts`). A store with another history refuses
   * the request (`history-lost`). Absent for a request without such sequences.
   */
  readonly history?: string | undefined;
  readonly reads: readonly ReadClaim[];
  readonly patches: readonly DocumentPatch[];
  readonly preconditions: readonly Precondition[];
  /** Local sequences of pending commits of the same session that this one was stacked on. */
  readonly dependsOn: readonly number[];
  readonly entries: readonly JournalEntry[];
  readonly settlements: readonly Settlement[];
  readonly due: readonly DueChange[];
  readonly basis: readonly NodeBasis[];
  /** Nodes whose basis rows are removed (the node was removed, or must run fresh). */
  readonly basisRemoved: readonly string[];
  readonly labels: readonly LabelWrite[];
  /** Run on the user's tables in the same transaction, after all checks. Absent for none. */
  readonly statements?: readonly SqlStatement[] | undefined;
}

/** A commit was accepted. */
export interface Committed {
  readonly kind: "committed";
  /** The space's sequence after this commit; a commit without patches or labels does not change it. */
  readonly sequence: number;
  /** Journal ids of `entries`, in order. */
  readonly journalIds: readonly number[];
  /** True if the answer comes from the replay check. */
  readonly replayed: boolean;
}

/** The store's answer to a commit. */
export type CommitOutcome = Committed | Rejection;

/** A commit that was applied to the replica; `outcome` resolves when it is confirmed or rejected. */
export interface Commit extends CommitIdentity {
  /** Set if it was not applied; known at once. */
  readonly rejection?: Rejection;
  readonly outcome: Promise<CommitOutcome>;
}
