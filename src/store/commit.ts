/**
 * What travels from a replica to a backend in one atomic unit, and the answer. Plain data: it can be sent, stored and
 * replayed. Everything in one request lands in one backend transaction or not at all.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { DocumentRef } from "./document.ts";
import type { DueChange } from "./due.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import type { PathOperation } from "./path-operation.ts";
import type { Rejection } from "./rejection.ts";

/** How much of what lies at a path a read depended on; what each conflicts with is in `path-operation.ts`. */
export type ReadDepth = "deep" | "shallow" | "reach";

export interface ReadClaim extends DocumentRef {
  readonly path: Path;
  readonly depth: ReadDepth;
  /** The space's commit sequence that the read saw, or `NOT_HERE`. */
  readonly sequence: number;
}

/**
 * Stands for the sequence that a read saw of a document which was not loaded: it took it for absent. Whoever has written it since, its
 * own session too: the replica may have let go of what it wrote.
 */
export const NOT_HERE = -1;

export interface DocumentPatch extends DocumentRef {
  readonly operations: readonly PathOperation[];
}

/** Who made a commit: unique per replica incarnation, numbered in the order the replica applied them. */
export interface CommitIdentity {
  readonly session: string;
  readonly localSequence: number;
}

export type Precondition =
  | ({
      readonly kind: "absent";
      /** The document is a receipt, of something made then: what its name says (`receipt.ts`). It is not left for what is too old, and has an end. */
      readonly madeAtMs?: number | undefined;
    } & DocumentRef)
  | ({ readonly kind: "originCommitted" } & CommitIdentity)
  | MembershipClaim;

/**
 * The set of documents of a scope with a prefix of their ids is the one that `list` gave at a sequence. It fails (stale) if any commit
 * since then created or removed one of them, also a commit of the same session: a list shows confirmed documents only.
 */
export interface MembershipClaim {
  readonly kind: "members";
  readonly scope: string;
  readonly prefix: string;
  /** Of the page that was read first. */
  readonly sequence: number;
}

/** What one node's last run read, so that a restart can tell whether it must run again (Scheduler v2 §9). */
export interface NodeBasis {
  /** Durable identity of the node, unique in its space. */
  readonly node: string;
  readonly fingerprint: string;
  /** Gate settings and the like; opaque to the store. */
  readonly settings?: Json;
  /**
   * The sequence as of which the node's output is the one that this row describes, or `THIS_COMMIT`. Absent for a node
   * without an output.
   */
  readonly output?: number;
  readonly inputs: readonly BasisInput[];
}

/** Stands for the sequence of the very commit that carries the basis: the input was written together with it. */
export const THIS_COMMIT = -1;

export interface BasisInput extends DocumentRef {
  /** The space's sequence as of which the node saw the document, or `THIS_COMMIT`. */
  readonly sequence: number;
  readonly reads: readonly { readonly path: Path; readonly depth: "deep" | "shallow" }[];
}

/** Replaces the labels of one address; an empty set removes them. */
export interface LabelWrite extends DocumentRef {
  readonly path: Path;
  readonly labels: readonly string[];
}

/** The mark of what a replica of this process has made. No entry point exports it: nobody else can say so. */
export const ADMITTED: unique symbol = Symbol("admitted");

export interface CommitRequest extends CommitIdentity {
  readonly space: string;
  /** Identity of the payload, for the replay check: the same commit sent twice carries the same digest. */
  readonly digest: string;
  /**
   * A replica of this process has made it, of a transaction that is over: names, reads and patches are checked, what the patches put is frozen and
   * nobody changes the lists any more, so a backend may keep it as it is. Not true of what has come from anywhere else.
   */
  readonly admitted?: typeof ADMITTED | undefined;
  readonly reads: readonly ReadClaim[];
  readonly patches: readonly DocumentPatch[];
  readonly preconditions: readonly Precondition[];
  /** Local sequences of the same session's pending commits that this one was stacked on. */
  readonly dependsOn: readonly number[];
  readonly entries: readonly JournalEntry[];
  readonly settlements: readonly Settlement[];
  readonly due: readonly DueChange[];
  readonly basis: readonly NodeBasis[];
  /** Nodes whose basis rows go (removed, or degraded to fresh). */
  readonly basisRemoved: readonly string[];
  readonly labels: readonly LabelWrite[];
}

export interface Committed {
  readonly kind: "committed";
  /** The space's sequence after this commit; unchanged by a commit without patches or labels. */
  readonly sequence: number;
  /** Journal ids of `entries`, in order. */
  readonly journalIds: readonly number[];
  /** True when the answer comes from the replay check. */
  readonly replayed: boolean;
}

export type CommitOutcome = Committed | Rejection;
