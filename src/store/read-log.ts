/**
 * What one transaction has read, document by document: path, depth and the replica's tick at the first read. The commit is
 * checked against it twice: here, against what this process has applied since, and by the backend, against other sessions.
 */
import type { Path } from "../message/path.ts";
import type { ReadDepth } from "./commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";

export interface LoggedRead {
  readonly path: Path;
  readonly depth: ReadDepth;
  /** The replica's tick when it was read; later writes that touch it make the transaction stale. */
  readonly tick: number;
}

const DEPTHS: readonly ReadDepth[] = ["reach", "shallow", "deep"];

export class ReadLog {
  /** Reads by document, then by path and depth; the first read of a path counts, it saw the oldest state. */
  readonly #documents = new Map<ReplicaDocument, Map<string, LoggedRead>>();

  add(document: ReplicaDocument, path: Path, depth: ReadDepth, tick: number): void {
    let reads = this.#documents.get(document);
    if (!reads) {
      reads = new Map();
      this.#documents.set(document, reads);
    }
    // A NUL is in no key, so this is one text per path; the depth goes first.
    const key = `${DEPTHS.indexOf(depth)}\0${path.join("\0")}`;
    if (!reads.has(key)) reads.set(key, { path, depth, tick });
  }

  *entries(): Iterable<readonly [ReplicaDocument, Iterable<LoggedRead>]> {
    for (const [document, reads] of this.#documents) yield [document, reads.values()];
  }
}
