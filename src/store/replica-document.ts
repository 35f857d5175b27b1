/**
 * One document in a replica: its current value (confirmed state plus pending commits), its pending commits, and its
 * recent writes.
 *
 * ```
 *   absent ──first read──> loading ──arrives──> loaded ──unobserved, memory limit──> dropped
 *     │                       │└──load fails──> absent (`loadError`; retried by the next read, or the loader if held)
 *     ├──own commit replaces the whole document and is confirmed──> loaded
 *     └<──damaged, and its changes are not in the feed──── loaded (`lost`)
 * ```
 *
 * Before the document is loaded, the first pending commit must replace it whole. After `lost`, or once that commit is
 * confirmed and may be overwritten, pending commits are not visible until the document is loaded again. A dropped
 * object is not reused: look the document up again.
 */
import { RECENT_WRITES_MAX } from "../limits.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import { admit, handOut, isHandedOut, ownUnlessHandedOut } from "./admit.ts";
import type { Change } from "./change.ts";
import type { LabelWrite } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { DocumentLabels, type LabelChange } from "./document-labels.ts";
import { type Applied, applyOperation, type Container, copyOnce, PatchError } from "./patch.ts";
import type { ReadDepth } from "./path-operation.ts";
import { outermost, overlap, type PathOperation, writeTouchesRead } from "./path-operation.ts";
import { addBeneath, type Foundation, PendingIndex, type StackedCommit, type StackedShare } from "./pending-index.ts";
import type { LoggedRead } from "./read-log.ts";

/** A value that readers hold, and its path. */
interface Held {
  readonly path: Path;
  readonly value: Json | undefined;
}

/** A commit of another session that arrived while a document was loading. */
interface Missed {
  readonly sequence: number;
  readonly operations: readonly PathOperation[];
  readonly labels: readonly LabelWrite[];
}

/** Shared empty list: most documents have no pending commits. */
const NONE: readonly never[] = Object.freeze([]);

/** Up to this many pending shares are scanned linearly. */
const LISTED_MAX = 8;

/** Data that another component attaches to a document. */
export interface Attachment {
  /** The document is dropped; this object is no longer updated. */
  dropped(): void;
}

export class ReplicaDocument implements DocumentRef {
  // The fields that every read uses come first.
  state: "absent" | "loading" | "loaded" | "dropped" = "absent";
  value: Json | undefined;
  /** Undefined if the document never had labels. */
  labels: DocumentLabels | undefined;
  readonly scope: string;
  readonly id: string;
  /** The error of the last load; cleared by a successful one. */
  loadError: unknown;
  /** The sequence of the load; the value includes all commits up to it. */
  loadedAt = 0;
  /** The sequence of the last commit that changed the loaded value; not updated afterwards. */
  changedAt = 0;
  /** The sequence at which labels were loaded; negative if they never were. */
  labelsAt = -1;
  /** Shares of pending commits, in commit order; their operations are applied to `value`. Changed only here. */
  pending: readonly StackedShare[] = NONE;
  /**
   * Commits of other sessions that arrived during the load; applied if the load does not include them. Only their
   * labels remain once the document is known by other means.
   */
  missed: readonly Missed[] = NONE;
  /** Number of holders (observers, open transactions). While above zero, the document is not dropped. */
  observers = 0;
  /** Data of the scheduler; opaque to the store. */
  attachment: Attachment | undefined;
  /** Read or written since the last sweep of the eviction clock. */
  touched = true;
  /** Computed here, so stored values of other sessions are ignored. */
  derived = false;
  /** Another session has stored a different value since this flag was last checked. */
  overwritten = false;
  /** Exists while many shares are pending. */
  #pendingIndex: PendingIndex | undefined;
  /** Writes since the oldest open transaction began, as (tick, path). */
  #recent: { readonly tick: number; readonly path: Path }[] | undefined;
  /** Reads up to this tick cannot be checked: later writes were dropped from `recent`. */
  #recentFrom = 0;

  constructor(ref: DocumentRef) {
    this.scope = ref.scope;
    this.id = ref.id;
  }

  read(path: Path): Json | undefined {
    return at(this.value, path);
  }

  /** Whether the value is complete: loaded, or replaced whole by a pending commit. */
  get isKnown(): boolean {
    return this.state === "loaded" || (this.pending.length > 0 && this.pending.some(isWhole));
  }

  /** Whether a read returns the value: it is known, or an open turn has written the whole document. */
  get isReadable(): boolean {
    return this.state === "loaded" || (this.value !== undefined && !this.derived) || this.isKnown;
  }

  /** Whether changes must be reported although it is not loaded: a resumed node has not loaded its inputs. */
  get isRestedOn(): boolean {
    return this.isHeldAbsent && !this.derived;
  }

  /** Held but not loaded. The output of a resumed node is derived and only stored. */
  get isHeldAbsent(): boolean {
    return this.state === "absent" && this.observers > 0 && !this.isKnown;
  }

  /** Created here without a load: writes of other sessions may carry labels that this replica does not know. */
  get isUnseen(): boolean {
    return this.state === "loaded" && this.labelsAt < 0 && !this.derived;
  }

  /** Applies one operation in place and returns the change and its inverse. */
  apply(operation: PathOperation): { readonly change: Change; readonly inverse: PathOperation } {
    const { path } = operation;
    const before = handOut(this.read(path));
    const { inverse } = this.#apply(operation);
    return { change: this.#change(path, before, handOut(this.read(path))), inverse };
  }

  /** Integrates confirmed operations of another session beneath the pending commits. Returns the net changes. */
  integrate(operations: readonly PathOperation[], sequence: number): Change[] {
    if (this.state === "loading") this.missed = [...this.missed, { sequence, operations, labels: NONE }];
    if (this.state !== "loaded" || sequence <= this.loadedAt) return [];
    if (this.derived) {
      this.overwritten = true;
      return [];
    }
    const foreign = operations.map((operation) => operation.path);
    const isPendingAbove = this.pending.some((share) =>
      share.operations.some((own) => foreign.some((path) => overlap(path, own.path))),
    );
    // For writes to overlapping paths, only the net change is reported.
    const isNested = operations.length > 1 && outermost(foreign).length < foreign.length;
    const changes: Change[] = [];
    const take = () => {
      for (const operation of operations) this.#take(operation, changes);
    };
    if (isPendingAbove || isNested) return this.rebase(take, foreign, () => true);
    take();
    return changes;
  }

  /** Changes the labels of the document. Returns the difference, or undefined if there is none. */
  relabel(change: (labels: DocumentLabels) => void): LabelChange | undefined {
    this.labels ??= new DocumentLabels();
    const before = this.labels.places;
    change(this.labels);
    const after = this.labels.places;
    if (before.length === 0 && after.length === 0) return undefined;
    return equal(before as never, after as never) ? undefined : { scope: this.scope, id: this.id, before, after };
  }

  /** Integrates a confirmed label write of another session. */
  integrateLabels(write: LabelWrite, sequence: number): LabelChange | undefined {
    if (this.state === "loading") this.missed = [...this.missed, { sequence, operations: NONE, labels: [write] }];
    if (this.state !== "loaded" || sequence <= Math.max(this.loadedAt, this.labelsAt)) return undefined;
    return this.relabel((labels) => labels.integrate(write, sequence));
  }

  /** Applies a foreign operation; equal subtrees keep their identity. */
  #take(operation: PathOperation, changes: Change[]): void {
    if (operation.op !== "set") {
      const { change } = this.apply(operation);
      // A splice may insert elements equal to those it removes.
      if (isDifferent(change)) changes.push(change);
      return;
    }
    const { op, path } = operation;
    const before = this.read(path);
    const value = before === undefined ? operation.value : admit(operation.value, before);
    if (!Object.is(value, before)) changes.push(this.apply({ op, path, value }).change);
  }

  /**
   * Undoes all pending shares, lets `change` alter the confirmed state, and applies the shares in `keep` again. Returns
   * the net changes; equal values keep their identity. A share that no longer fits has no effect here; the backend will
   * reject its commit for the same reason.
   */
  rebase(change: () => void, foreignPaths: readonly Path[], keep: (commit: StackedCommit) => boolean): Change[] {
    const written = this.pending.flatMap((share) => share.operations.map((operation) => operation.path));
    const paths = outermost([...foreignPaths, ...written]);
    const befores = paths.map((path) => handOut(this.read(path)));
    const held = outermost(paths.map((path) => this.#heldAlong(path))).map((path) => ({
      path,
      value: this.read(path),
    }));
    for (let i = this.pending.length - 1; i >= 0; i--) this.#undo(this.pending[i] as StackedShare);
    change();
    const shares = this.pending;
    this.#clearPending();
    for (const share of shares) if (keep(share.commit)) this.#redo(share);
    for (const one of held) this.#keepIdentity(one);
    const changes = paths.map((path, i) => this.#change(path, befores[i], handOut(this.read(path))));
    // Report removals last first, so that an array loses its elements from the end.
    const gone = changes.filter((change) => change.after === undefined).reverse();
    return [...gone, ...changes.filter((change) => change.after !== undefined)].filter(isDifferent);
  }

  #undo(share: StackedShare): void {
    for (let i = share.inverses.length - 1; i >= 0; i--) this.#apply(share.inverses[i] as PathOperation);
    share.inverses = [];
  }

  /** Registers the share of a newly applied commit as pending. */
  addPending(share: StackedShare): void {
    this.touched = true;
    if (this.pending.length === 0) this.pending = [share];
    else (this.pending as StackedShare[]).push(share);
    this.#pendingIndex?.add(share);
  }

  #clearPending(): void {
    this.pending = NONE;
    this.#pendingIndex = undefined;
  }

  #redo(share: StackedShare): void {
    this.addPending(share);
    for (const operation of share.operations) {
      try {
        share.inverses.push(this.#apply(operation).inverse);
      } catch (error) {
        if (!(error instanceof PatchError)) throw error;
      }
    }
  }

  /** The shortest prefix of the path whose value a reader holds. */
  #heldAlong(path: Path): Path {
    let value = this.value;
    for (let depth = 0; depth < path.length; depth++) {
      if (typeof value !== "object" || value === null || isHandedOut(value)) return path.slice(0, depth);
      value = at(value, path.slice(depth, depth + 1));
    }
    return path;
  }

  /** Restores the identity of a value that readers hold if it is equal again. */
  #keepIdentity({ path, value }: Held): void {
    const now = this.read(path);
    if (now === undefined || Object.is(now, value)) return;
    const shared = admit(now, value);
    if (Object.is(shared, now)) return;
    this.#apply({ op: "set", path, value: shared });
  }

  #apply(operation: PathOperation): Applied {
    const applied = applyOperation(this.value, operation, ownUnlessHandedOut);
    this.value = applied.root;
    return applied;
  }

  /** The replica has unloaded it. Labels stay, so that remaining holders do not treat it as public. */
  dropped(): void {
    this.state = "dropped";
    this.value = undefined;
    this.attachment?.dropped();
  }

  /** The load failed. The next read loads again, and that load includes the missed commits. */
  loadFailed(error: unknown): void {
    this.state = "absent";
    this.loadError = error;
    this.missed = NONE;
  }

  /**
   * The loaded value is outdated and the missing changes are unknown. Pending commits stay and are applied after the
   * next load; a pending whole replacement is visible.
   */
  lost(error: unknown): Change[] {
    const before = () => {
      this.value = undefined;
    };
    const changes = this.rebase(before, [[]], () => true);
    this.loadFailed(error);
    return changes;
  }

  /** Sequences of an earlier history say nothing any more. */
  beginHistory(): void {
    this.loadedAt = -1;
    this.labelsAt = -1;
    this.changedAt = 0;
    this.missed = NONE;
  }

  /** The value is computed: no load is needed, and one under way or failed is ignored. */
  madeHere(): void {
    this.state = "loaded";
    this.loadError = undefined;
    this.missed = NONE;
  }

  /** A pending share became part of the confirmed state at this sequence. */
  confirm(share: StackedShare, sequence: number): void {
    const index = this.pending.indexOf(share);
    // A load that included the commit has removed the share already.
    if (index < 0) return;
    if (this.pending.length === 1) this.#clearPending();
    else {
      if (index === 0) (this.pending as StackedShare[]).shift();
      else (this.pending as StackedShare[]).splice(index, 1);
      this.#pendingIndex?.remove(share);
    }
    if (this.state === "loaded") return;
    if (!isWhole(share)) {
      // Written before the document was lost. A load under way may not include it.
      if (this.state === "loading")
        this.missed = [...this.missed, { sequence, operations: share.operations, labels: NONE }];
      return;
    }
    // Created or replaced whole without a read: the confirmed write is the value, no load is needed.
    this.state = "loaded";
    this.loadError = undefined;
    this.loadedAt = sequence;
    // Labels are still unknown if a load is under way.
    if (this.missed.length > 0) this.missed = this.missed.filter(({ labels }) => labels.length > 0);
  }

  /** The changes of a share that has just been applied, outermost paths only; computed from its inverses. */
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

  /** Records a write for the open transactions. */
  remember(tick: number, path: Path): void {
    this.#recent ??= [];
    this.#recent.push({ tick, path });
    if (this.#recent.length <= RECENT_WRITES_MAX) return;
    this.#recentFrom = (this.#recent[RECENT_WRITES_MAX >> 1] as { tick: number }).tick;
    this.#recent = this.#recent.slice((RECENT_WRITES_MAX >> 1) + 1);
  }

  /** Drops the recorded writes; no transaction is open. */
  forget(): void {
    this.#recent = undefined;
    this.#recentFrom = 0;
  }

  /** Whether the read value has been written since. */
  hasMoved(read: LoggedRead): boolean {
    if (read.tick < this.#recentFrom) return true;
    if (this.#recent === undefined) return false;
    for (const { tick, path } of this.#recent) {
      if (tick > read.tick && writeTouchesRead(path, read.path, read.depth)) return true;
    }
    return false;
  }

  /** Adds the pending commits that a read or write at this path depends on. */
  addPendingBeneath(path: Path, depth: ReadDepth, foundation: Foundation): void {
    if (this.pending.length > LISTED_MAX) {
      this.#pendingIndex ??= new PendingIndex(this.pending);
      if (this.#pendingIndex.addBeneath(path, depth, foundation)) return;
    }
    addBeneath(this.pending, path, depth, foundation);
  }
}

function at(value: Json | undefined, path: Path): Json | undefined {
  return value === undefined ? undefined : getAt(value, path);
}

/** Whether the result is independent of the earlier value. */
function isWhole({ operations }: { readonly operations: readonly PathOperation[] }): boolean {
  return operations.some(({ op, path }) => op === "set" && path.length === 0);
}

/** Compared by value: when a list gets shorter, an element may be replaced by an equal one. */
function isDifferent({ before, after }: Change): boolean {
  return !equal(before, after);
}
