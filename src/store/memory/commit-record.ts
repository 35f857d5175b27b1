/**
 * A stored commit of the memory backend: the replay check uses it for long, the change log for as long as it reaches
 * back. One object for both, because every commit has one.
 */
import type { CommitIdentity, LabelWrite } from "../commit.ts";
import type { StoredCommit } from "../commit-rules.ts";
import { NONE } from "../small-list.ts";
import type { LoggedCommit, LoggedPatch } from "./change-log.ts";

export class CommitRecord implements StoredCommit, LoggedCommit {
  readonly session: string;
  readonly localSequence: number;
  readonly digest: string;
  /** Sequence of the space after it. */
  sequence = 0;
  journalIds: readonly number[] = NONE;
  patches: readonly LoggedPatch[] = NONE;
  labels: readonly LabelWrite[] = NONE;

  constructor({ session, localSequence, digest }: CommitIdentity & { readonly digest: string }) {
    this.session = session;
    this.localSequence = localSequence;
    this.digest = digest;
  }
}
