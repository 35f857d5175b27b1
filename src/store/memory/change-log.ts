/**
 * The last commits of a space, oldest first: what the feed answers from, and how far back a conflict can be told. Older commits
 * are forgotten: whoever is behind the horizon reloads. SPEC: S10, S20, S21.
 */
import type { Path } from "../../message/path.ts";
import type { DocumentPatch } from "../commit.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import type { FeedCommit } from "../store.ts";
import { copyJson } from "./json-copy.ts";

/** A document's writes, oldest first, from `first` on: what is forgotten is cut off now and then, not one by one. */
interface DocumentWrites {
  writes: DocumentWrite[];
  first: number;
}

interface DocumentWrite {
  readonly sequence: number;
  readonly session: string;
  readonly paths: readonly Path[];
}

export class ChangeLog {
  readonly #keptMax: number;
  /** By sequence, which has no holes. */
  readonly #commits = new Map<number, FeedCommit>();
  /** Writes of the commits in the log by document, oldest first. */
  readonly #writes = new Map<string, DocumentWrites>();
  /** The newest sequence that is forgotten; 0 while none is. */
  #horizon = 0;

  constructor(keptMax: number) {
    this.#keptMax = keptMax;
  }

  add(commit: FeedCommit): void {
    const { sequence, session } = commit;
    this.#commits.set(sequence, commit);
    for (const patch of commit.patches) {
      const write = { sequence, session, paths: patch.operations.map((operation) => operation.path) };
      const key = documentKey(patch);
      const known = this.#writes.get(key);
      if (known === undefined) this.#writes.set(key, { writes: [write], first: 0 });
      else known.writes.push(write);
    }
    if (this.#commits.size > this.#keptMax) this.#forgetOldest();
  }

  /** At most `limit` commits after the sequence; undefined when some of them are forgotten. */
  after(sequence: number, limit: number): FeedCommit[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const commits: FeedCommit[] = [];
    for (let next = sequence + 1; commits.length < limit; next++) {
      const commit = this.#commits.get(next);
      if (commit === undefined) break;
      commits.push({ ...commit, patches: copyJson(commit.patches), labels: copyJson(commit.labels) });
    }
    return commits;
  }

  /** The paths written after the sequence by others than the session; undefined when that is forgotten. */
  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string | undefined): Path[] | undefined {
    if (sequence < this.#horizon) return undefined;
    const paths: Path[] = [];
    const known = this.#writes.get(documentKey(ref));
    if (known === undefined) return paths;
    const { writes, first } = known;
    // Newest first: a reader is seldom far behind, and the log may be long.
    for (let at = writes.length - 1; at >= first; at--) {
      const write = writes[at]!;
      if (write.sequence <= sequence) break;
      if (write.session !== exceptSession) paths.push(...write.paths);
    }
    return paths;
  }

  problems(head: number): string[] {
    const kept = head - this.#horizon;
    return kept === this.#commits.size ? [] : [`the log holds ${this.#commits.size} of the last ${kept} commits`];
  }

  #forgetOldest(): void {
    const sequence = ++this.#horizon;
    const { patches } = this.#commits.get(sequence)!;
    this.#commits.delete(sequence);
    for (const patch of patches) this.#forgetWrites(patch, sequence);
  }

  #forgetWrites(patch: DocumentPatch, sequence: number): void {
    const key = documentKey(patch);
    const known = this.#writes.get(key);
    if (known === undefined) return;
    const { writes } = known;
    while (known.first < writes.length && writes[known.first]!.sequence <= sequence) known.first++;
    if (known.first === writes.length) this.#writes.delete(key);
    else if (known.first * 2 > writes.length) {
      known.writes = writes.slice(known.first);
      known.first = 0;
    }
  }
}
