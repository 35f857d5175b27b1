/**
 * The one change channel (Scheduler v2, P1): everything that can make somebody's view of a space out of date arrives as a
 * notification of a replica, with the values before and after, at the moment the replica itself has changed.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { CommitIdentity } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { LabelChange } from "./document-labels.ts";

/**
 * Values are frozen; undefined stands for nothing there. An element that is gone was the last of its array: what moves elements
 * is a change of the array. SPEC: S47.
 */
export interface Change extends DocumentRef {
  readonly path: Path;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

export interface Notification {
  /**
   * - `commit`: this replica's own transaction was applied, before the backend has seen it;
   * - `integrate`: somebody else's commit arrived through the feed;
   * - `pull`: a document was loaded for the first time (or again after it was dropped, of which nobody is told);
   * - `revert`: commits of this replica were rejected and taken back.
   */
  readonly kind: "commit" | "integrate" | "pull" | "revert";
  readonly changes: readonly Change[];
  /** Documents that are known now and read as before, mostly because they do not exist; only on `pull`. */
  readonly unchanged?: readonly DocumentRef[];
  /** Documents whose labels are others than before; absent where there are none, which is almost always. */
  readonly labels?: readonly LabelChange[];
  /** Whoever ran the transaction (a node), for self-suppression; only on `commit`. */
  readonly source?: object | undefined;
  /** The transaction's change group, for subscribers that filter their own edits; only on `commit`. */
  readonly changeGroup?: string | undefined;
  /** The commit that was applied or taken back; absent on `pull`, and on the `integrate` of a reload. */
  readonly commit?: CommitIdentity;
}

export type NotificationListener = (notification: Notification) => void;
