/**
 * The only change channel: every change of the visible state of a space arrives as a notification of a replica, with
 * the values before and after, at the moment when the replica changes.
 */
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { CommitIdentity } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { LabelChange } from "./document-labels.ts";

/**
 * Values are frozen; undefined means absent. A removed array element was the last of its array: a move of elements is a
 * change of the whole array. SPEC: S47.
 */
export interface Change extends DocumentRef {
  readonly path: Path;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** A change of a replica, as listeners get it. */
export interface Notification {
  /**
   * - `commit`: an own transaction was applied, before the backend has it;
   * - `integrate`: a commit of another session arrived through the feed;
   * - `pull`: a document was loaded for the first time, or again after it was dropped (a drop is not announced);
   * - `revert`: own commits were rejected and rolled back.
   */
  readonly kind: "commit" | "integrate" | "pull" | "revert";
  readonly changes: readonly Change[];
  /** Documents that are now loaded and read as before, mostly because they do not exist; only on `pull`. */
  readonly unchanged?: readonly DocumentRef[];
  /** Documents whose labels changed; mostly absent. */
  readonly labels?: readonly LabelChange[];
  /** The node that ran the transaction, so that it can ignore its own change; only on `commit`. */
  readonly source?: object | undefined;
  /** The transaction's change group, for subscribers that filter their own edits; only on `commit`. */
  readonly changeGroup?: string | undefined;
  /** The commit that was applied or rolled back; absent on `pull` and on the `integrate` of a reload. */
  readonly commit?: CommitIdentity;
}

/** Gets the changes of a replica. */
export type NotificationListener = (notification: Notification) => void;
