/**
 * One document in a replica: its current value (confirmed state with this replica's pending commits applied), what is pending
 * on it, and what was written to it lately.
 *
 * ```
 *   absent ──first read──> loading ──arrives──> loaded ──nobody observes it, memory is short──> dropped (absent)
 *     │                       └──load fails──> absent (`loadError` says why; the next read tries again)
 *     └──replaced whole by an own commit that is confirmed──> loaded
 * ```
 */
import { RECENT_WRITES_MAX } from "../limits.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import { handOut, ownUnlessHandedOut } from "./admit.ts";
import type { Change } from "./change.ts";
import type { ReadDepth } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { applyOperation, type Container, copyOnce, PatchError } from "./patch.ts";
import { isPrefix, type PathOperation, writeTouchesRead } from "./path-operation.ts";
import type { PendingCommit } from "./pending-commit.ts";
import type { LoggedRead } from "./read-log.ts";

/** A pending commit's share of one document. */
export interface PendingShare {
  readonly commit: PendingCommit;
  readonly operations: readonly PathOperation[];
  /** Take the operations back, last first; made anew whenever the share is applied again over another base. */
  inverses: PathOperation[];
}

export class ReplicaDocument implements DocumentRef {
  readonly scope: string;
  readonly id: string;
  state: "absent" | "loading" | "loaded" = "absent";
  /** Why the last load failed; cleared by one that succeeds. */
  loadError: unknown;
  value: Json | undefined;
  /** The sequence as of which the document was loaded; commits up to it are in the value already. */
  loadedAt = 0;
  labels: readonly { readonly path: readonly string[]; readonly labels: readonly string[] }[] = [];
  /** Pending shares in commit order; their operations are applied to `value`. */
  readonly pending: PendingShare[] = [];
  /** Confirmed operations that arrived while the document was loading, to be applied where the load did not see them. */
  missed: { readonly sequence: number; readonly operations: readonly PathOperation[] }[] = [];
  /** How many hold on to it; while above zero it is not dropped. */
  observers = 0;
  /** What the scheduler keeps beside the document; the store never looks at it. */
  attachment: object | undefined;
  /** Read or written since the last sweep of the eviction clock. */
  touched = true;
  /** Writes since the oldest open transaction began, as (tick, path). */
  #recent: { readonly tick: number; readonly path: Path }[] = [];
  /** Reads up to this tick can no longer be checked: writes after it were dropped from `recent`. */
  #recentFrom = 0;

  constructor(ref: DocumentRef) {
    this.scope = ref.scope;
    this.id = ref.id;
  }

  read(path: Path): Json | undefined {
    return this.value === undefined ? undefined : getAt(this.value, path);
  }

  /** Applies one operation in place and tells what changed. */
  apply(operation: PathOperation): { readonly change: Change; readonly inverse: PathOperation } {
    const before = handOut(this.read(operation.path));
    const { root, inverse } = applyOperation(this.value, operation, ownUnlessHandedOut);
    this.value = root;
    return { change: this.#change(operation.path, before, handOut(this.read(operation.path))), inverse };
  }

  /**
   * Takes back all pending shares, lets `change` alter what lies beneath, and applies the shares in `keep` again. Returns the net
   * changes. A share that no longer fits loses its effect here; the backend will reject its commit for the same reason.
   */
  rebase(change: () => void, foreignPaths: readonly Path[], keep: (commit: PendingCommit) => boolean): Change[] {
    const written = this.pending.flatMap((share) => share.operations.map((operation) => operation.path));
    const paths = outermost([...foreignPaths, ...written]);
    const befores = paths.map((path) => handOut(this.read(path)));
    for (const share of this.pending.toReversed()) this.#undo(share);
    change();
    const kept = this.pending.filter((share) => keep(share.commit));
    this.pending.length = 0;
    for (const share of kept) {
      this.#redo(share);
      this.pending.push(share);
    }
    return paths
      .map((path, i) => this.#change(path, befores[i], handOut(this.read(path))))
      .filter(({ before, after }) => !Object.is(before, after));
  }

  #undo(share: PendingShare): void {
    for (const inverse of share.inverses.toReversed()) {
      this.value = applyOperation(this.value, inverse, ownUnlessHandedOut).root;
    }
    share.inverses = [];
  }

  #redo(share: PendingShare): void {
    for (const operation of share.operations) {
      try {
        const { root, inverse } = applyOperation(this.value, operation, ownUnlessHandedOut);
        this.value = root;
        share.inverses.push(inverse);
      } catch (error) {
        if (!(error instanceof PatchError)) throw error;
      }
    }
  }

  /** A pending share's operations became part of the confirmed state, with that sequence. */
  confirmed(operations: readonly PathOperation[], sequence: number): void {
    if (this.state === "loading") {
      this.missed.push({ sequence, operations });
    } else if (this.state === "absent" && operations[0]?.op === "set" && operations[0].path.length === 0) {
      // Made or replaced whole without having been read: it is exactly what we wrote, nobody has to load it.
      this.state = "loaded";
      this.loadedAt = sequence;
    }
  }

  /** What a share that has just been applied changed, outermost paths only; made from its inverses and the present value. */
  changesOf({
    operations,
    inverses,
  }: {
    operations: readonly PathOperation[];
    inverses: readonly PathOperation[];
  }): Change[] {
    const paths = outermost(operations.map((operation) => operation.path));
    const after = this.value;
    let before = after;
    const fresh = new Set<Container>();
    for (const inverse of inverses.toReversed()) {
      before = applyOperation(before, inverse, (container) => copyOnce(container, fresh)).root;
    }
    return paths
      .map((path) => this.#change(path, handOut(at(before, path)), handOut(at(after, path))))
      .filter((change) => !equal(change.before, change.after));
  }

  #change(path: Path, before: Json | undefined, after: Json | undefined): Change {
    return { scope: this.scope, id: this.id, path, before, after };
  }

  /** Remembers a write for the transactions that are open now. */
  remember(tick: number, path: Path): void {
    this.#recent.push({ tick, path });
    if (this.#recent.length <= RECENT_WRITES_MAX) return;
    this.#recentFrom = (this.#recent[RECENT_WRITES_MAX >> 1] as { tick: number }).tick;
    this.#recent = this.#recent.slice((RECENT_WRITES_MAX >> 1) + 1);
  }

  /** Forgets the writes, as no transaction is open. */
  forget(): void {
    this.#recent = [];
    this.#recentFrom = 0;
  }

  /** Whether something read then has been written since. */
  hasMoved(read: LoggedRead): boolean {
    if (read.tick < this.#recentFrom) return true;
    return this.#recent.some(({ tick, path }) => tick > read.tick && writeTouchesRead(path, read.path, read.depth));
  }

  /** The pending commits whose writes a read (or a write) at this path stands on, newest first. */
  *pendingBeneath(path: Path, depth: ReadDepth): Iterable<PendingCommit> {
    for (const share of this.pending.toReversed()) {
      const touching = share.operations.find((operation) => writeTouchesRead(operation.path, path, depth));
      if (!touching) continue;
      yield share.commit;
      // It wrote all of what was read, and itself stands on whatever was there before.
      if (isPrefix(touching.path, path)) return;
    }
  }
}

function at(value: Json | undefined, path: Path): Json | undefined {
  return value === undefined ? undefined : getAt(value, path);
}

/** The paths without those that lie beneath another of them. */
function outermost(paths: readonly Path[]): Path[] {
  const result: Path[] = [];
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    if (!result.some((outer) => isPrefix(outer, path))) result.push(path);
  }
  return result;
}
