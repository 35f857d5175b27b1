/**
 * A commit as a memory store keeps it: for long, what a repeated one is compared with; for as long as the log reaches back to it, also what it
 * changed. One object for both, since every commit has one.
 */
import type { CommitIdentity, LabelWrite } from "../commit.ts";
import type { StoredCommit } from "../commit-rules.ts";
import { NONE } from "../few.ts";
import type { LoggedCommit, LoggedPatch } from "./change-log.ts";

export class CommitRecord implements StoredCommit, LoggedCommit {
  readonly session: string;
  readonly localSequence: number;
  readonly digest: string;
  /** Of the space after it. */
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
