/**
 * The reads of one transaction in one document: path, depth and the replica's tick at the first read. Validated twice
 * at commit: against later changes of this process, and by the backend against other sessions. The backend receives the
 * logged objects themselves, without a copy.
 */
import type { Path } from "../message/path.ts";
import type { ReadClaim } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { ReadDepth } from "./path-operation.ts";
import { ownPath } from "./path-operation.ts";
import { NONE, withOne } from "./small-list.ts";

export class LoggedRead implements ReadClaim {
  readonly scope: string;
  readonly id: string;
  readonly path: Path;
  readonly depth: ReadDepth;
  /** The replica's tick at the read; a later write that touches it makes the transaction stale. */
  readonly tick: number;
  /** The space's sequence at the read; set when the transaction commits. */
  sequence = 0;

  constructor({ scope, id }: DocumentRef, path: Path, depth: ReadDepth, tick: number) {
    this.scope = scope;
    this.id = id;
    this.path = path;
    this.depth = depth;
    this.tick = tick;
  }
}

/** Up to this many reads are scanned linearly; beyond, a set of keys is used. */
const LISTED_MAX = 16;

export class ReadLog {
  /** Each path and depth once: the first read counts because it saw the oldest state. */
  reads: readonly LoggedRead[] = NONE;
  #names: Set<string> | undefined;

  add(document: DocumentRef, path: Path, depth: ReadDepth, tick: number): void {
    if (this.#isKnown(path, depth)) return;
    this.reads = withOne(this.reads, new LoggedRead(document, ownPath(path), depth, tick));
    this.#names?.add(nameOf(path, depth));
  }

  #isKnown(path: Path, depth: ReadDepth): boolean {
    if (this.reads.length <= LISTED_MAX) {
      for (const read of this.reads) if (read.depth === depth && samePath(read.path, path)) return true;
      return false;
    }
    this.#names ??= new Set(this.reads.map((read) => nameOf(read.path, read.depth)));
    return this.#names.has(nameOf(path, depth));
  }
}

function nameOf(path: Path, depth: ReadDepth): string {
  return `${depth} ${JSON.stringify(path)}`;
}

function samePath(a: Path, b: Path): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
