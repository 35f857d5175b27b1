/**
 * One document in a replica: its current value (confirmed state with this replica's pending commits applied), what is pending
 * on it, and what was written to it lately.
 *
 * ```
 *   absent ──first read──> loading ──arrives──> loaded ──nobody holds it, memory is short──> dropped
 *     │                       │└──load fails──> absent (`loadError` says why; the next read tries again, or the loader if it is held)
 *     ├──replaced whole by an own commit that is confirmed──> loaded
 *     └<──is damaged, and the feed does not tell what became of it──── loaded (`lost`)
 * ```
 *
 * Before it is loaded, the first thing pending on it replaces it whole, since nothing else can be written to it. Where that is no longer so (it is
 * lost, or what was put is confirmed and may be overwritten), what is pending shows nothing until it is loaded again. A dropped one is dead: whoever comes next gets another object for the document, and whoever still has
 * this one has to look it up again.
 */
import { RECENT_WRITES_MAX } from "../limits.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import { admit, handOut, isHandedOut, ownUnlessHandedOut } from "./admit.ts";
import type { Change } from "./change.ts";
import type { LabelWrite, ReadDepth } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { DocumentLabels, type LabelChange } from "./document-labels.ts";
import { type Applied, applyOperation, type Container, copyOnce, PatchError } from "./patch.ts";
import { isPrefix, overlap, type PathOperation, writeTouchesRead } from "./path-operation.ts";
import type { PendingCommit, PendingShare } from "./pending-commit.ts";
import { addBeneath, type Foundation, PendingIndex } from "./pending-index.ts";
import type { LoggedRead } from "./read-log.ts";

/** A value that readers hold, and where it stood. */
interface Held {
  readonly path: Path;
  readonly value: Json | undefined;
}

/** A commit of somebody else that arrived while a document was loading. */
interface Missed {
  readonly sequence: number;
  readonly operations: readonly PathOperation[];
  readonly labels: readonly LabelWrite[];
}

/** What a list of a document is while there is nothing in it, shared by all: most documents are at rest. */
const NONE: readonly never[] = Object.freeze([]);

/** Pending shares that are looked through one by one. */
const LISTED_MAX = 8;

/** What somebody keeps beside a document. */
export interface Attachment {
  /** The document is dropped: it leads nowhere any more. */
  dropped(): void;
}

export class ReplicaDocument implements DocumentRef {
  // First what every read looks at.
  state: "absent" | "loading" | "loaded" | "dropped" = "absent";
  value: Json | undefined;
  /** Undefined where nothing of it is labelled and nothing ever was. */
  labels: DocumentLabels | undefined;
  readonly scope: string;
  readonly id: string;
  /** Why the last load failed; cleared by one that succeeds. */
  loadError: unknown;
  /** The sequence as of which the document was loaded; commits up to it are in the value already. */
  loadedAt = 0;
  /** The sequence of the last commit that changed the value which was loaded; not kept up to date afterwards. */
  changedAt = 0;
  /** The sequence as of which its labels were loaded; below zero if they never were. */
  labelsAt = -1;
  /** Pending shares in commit order; their operations are applied to `value`. Changed only here. */
  pending: readonly PendingShare[] = NONE;
  /** Others' commits that arrived while it was loading, to be applied where the load did not see them; labels alone, once it is here otherwise. */
  missed: readonly Missed[] = NONE;
  /** How many hold on to it (observers, open transactions); while above zero it is not dropped. */
  observers = 0;
  /** What the scheduler keeps beside the document; the store never looks into it. */
  attachment: Attachment | undefined;
  /** Read or written since the last sweep of the eviction clock. */
  touched = true;
  /** Computed here: what others have stored of it comes too late. */
  derived = false;
  /** Others have stored something else than what is here, since that was last asked. */
  overwritten = false;
  /** Exists while much is pending. */
  #pendingIndex: PendingIndex | undefined;
  /** Writes since the oldest open transaction began, as (tick, path). */
  #recent: { readonly tick: number; readonly path: Path }[] | undefined;
  /** Reads up to this tick can no longer be checked: writes after it were dropped from `recent`. */
  #recentFrom = 0;

  constructor(ref: DocumentRef) {
    this.scope = ref.scope;
    this.id = ref.id;
  }

  read(path: Path): Json | undefined {
    return at(this.value, path);
  }

  /** Whether the value is all there is to know: loaded, or replaced whole by a pending commit. */
  get isKnown(): boolean {
    return this.state === "loaded" || (this.pending.length > 0 && this.pending.some(isWhole));
  }

  /** Whether a read gives the value: it is known, or code whose turn is still open has put the document whole. */
  get isReadable(): boolean {
    return this.state === "loaded" || (this.value !== undefined && !this.derived) || this.isKnown;
  }

  /** Whether somebody needs to hear of changes though it is not here: a node that was taken up again has not loaded its inputs. */
  get isRestedOn(): boolean {
    return this.isHeldAbsent && !this.derived;
  }

  /** Held and not here. That of a resumed node is derived, and still only stored. */
  get isHeldAbsent(): boolean {
    return this.state === "absent" && this.observers > 0 && !this.isKnown;
  }

  /** Put here without having been loaded: what others write to it may be labelled as nobody here knows. */
  get isUnseen(): boolean {
    return this.state === "loaded" && this.labelsAt < 0 && !this.derived;
  }

  /** Applies one operation in place; says what changed, and what takes it back. */
  apply(operation: PathOperation): { readonly change: Change; readonly inverse: PathOperation } {
    const { path } = operation;
    const before = handOut(this.read(path));
    const { inverse } = this.#apply(operation);
    return { change: this.#change(path, before, handOut(this.read(path))), inverse };
  }

  /** Others' operations, confirmed with that sequence. They go beneath what is pending; the net changes come back. */
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
    // Of writes to one place, or to places within each other, only the net change is told.
    const isNested = operations.length > 1 && outermost(foreign).length < foreign.length;
    const changes: Change[] = [];
    const take = () => {
      for (const operation of operations) this.#take(operation, changes);
    };
    if (isPendingAbove || isNested) return this.rebase(take, foreign, () => true);
    take();
    return changes;
  }

  /** Does something to the document's labels, and says what has become of them; undefined where they are what they were. */
  relabel(change: (labels: DocumentLabels) => void): LabelChange | undefined {
    this.labels ??= new DocumentLabels();
    const before = this.labels.places;
    change(this.labels);
    const after = this.labels.places;
    if (before.length === 0 && after.length === 0) return undefined;
    return equal(before as never, after as never) ? undefined : { scope: this.scope, id: this.id, before, after };
  }

  /** Somebody else's label write, confirmed with that sequence. */
  integrateLabels(write: LabelWrite, sequence: number): LabelChange | undefined {
    if (this.state === "loading") this.missed = [...this.missed, { sequence, operations: NONE, labels: [write] }];
    if (this.state !== "loaded" || sequence <= Math.max(this.loadedAt, this.labelsAt)) return undefined;
    return this.relabel((labels) => labels.integrate(write, sequence));
  }

  /** Applies an operation from elsewhere, with the identities of what is here already. */
  #take(operation: PathOperation, changes: Change[]): void {
    if (operation.op !== "set") {
      const { change } = this.apply(operation);
      // A splice may put the elements that are there already.
      if (isDifferent(change)) changes.push(change);
      return;
    }
    const { op, path } = operation;
    const before = this.read(path);
    const value = before === undefined ? operation.value : admit(operation.value, before);
    if (!Object.is(value, before)) changes.push(this.apply({ op, path, value }).change);
  }

  /**
   * Takes back all pending shares, lets `change` alter what lies beneath, and applies the shares in `keep` again. Returns the net
   * changes; whatever is equal afterwards keeps its identity. A share that no longer fits loses its effect here; the backend will
   * reject its commit for the same reason.
   */
  rebase(change: () => void, foreignPaths: readonly Path[], keep: (commit: PendingCommit) => boolean): Change[] {
    const written = this.pending.flatMap((share) => share.operations.map((operation) => operation.path));
    const paths = outermost([...foreignPaths, ...written]);
    const befores = paths.map((path) => handOut(this.read(path)));
    const held = outermost(paths.map((path) => this.#heldAlong(path))).map((path) => ({
      path,
      value: this.read(path),
    }));
    for (let i = this.pending.length - 1; i >= 0; i--) this.#undo(this.pending[i] as PendingShare);
    change();
    const shares = this.pending;
    this.#clearPending();
    for (const share of shares) if (keep(share.commit)) this.#redo(share);
    for (const one of held) this.#keepIdentity(one);
    const changes = paths.map((path, i) => this.#change(path, befores[i], handOut(this.read(path))));
    // What went goes last first, so that an array loses its elements from the end.
    const gone = changes.filter((change) => change.after === undefined).reverse();
    return [...gone, ...changes.filter((change) => change.after !== undefined)].filter(isDifferent);
  }

  #undo(share: PendingShare): void {
    for (let i = share.inverses.length - 1; i >= 0; i--) this.#apply(share.inverses[i] as PathOperation);
    share.inverses = [];
  }

  /** A commit was applied that is pending from now on. */
  addPending(share: PendingShare): void {
    this.touched = true;
    if (this.pending.length === 0) this.pending = [share];
    else (this.pending as PendingShare[]).push(share);
    this.#pendingIndex?.add(share);
  }

  #clearPending(): void {
    this.pending = NONE;
    this.#pendingIndex = undefined;
  }

  #redo(share: PendingShare): void {
    this.addPending(share);
    for (const operation of share.operations) {
      try {
        share.inverses.push(this.#apply(operation).inverse);
      } catch (error) {
        if (!(error instanceof PatchError)) throw error;
      }
    }
  }

  /** The shortest part of the path at which a reader was handed what lies there. */
  #heldAlong(path: Path): Path {
    let value = this.value;
    for (let depth = 0; depth < path.length; depth++) {
      if (typeof value !== "object" || value === null || isHandedOut(value)) return path.slice(0, depth);
      value = at(value, path.slice(depth, depth + 1));
    }
    return path;
  }

  /** What is equal to what readers hold becomes that again. */
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

  /** The replica has let go of it. Labels stay: whoever still has it must not take it for public. */
  dropped(): void {
    this.state = "dropped";
    this.value = undefined;
    this.attachment?.dropped();
  }

  /** The load came back with nothing; the next read asks again, and that load will show what is missed until then. */
  loadFailed(error: unknown): void {
    this.state = "absent";
    this.loadError = error;
    this.missed = NONE;
  }

  /**
   * It was loaded, and what is here is as of a moment that nobody can tell any more. What is pending stays, and is applied when it is loaded
   * again; where that replaces it whole, it shows.
   */
  lost(error: unknown): Change[] {
    const before = () => {
      this.value = undefined;
    };
    const changes = this.rebase(before, [[]], () => true);
    this.loadFailed(error);
    return changes;
  }

  /** Its value is computed: there is nothing to load, a load on its way comes too late, and one that has failed does not matter. */
  madeHere(): void {
    this.state = "loaded";
    this.loadError = undefined;
    this.missed = NONE;
  }

  /** A pending share became part of the confirmed state, with that sequence. */
  confirm(share: PendingShare, sequence: number): void {
    const index = this.pending.indexOf(share);
    // A load that saw the commit has taken the share away already.
    if (index < 0) return;
    if (this.pending.length === 1) this.#clearPending();
    else {
      if (index === 0) (this.pending as PendingShare[]).shift();
      else (this.pending as PendingShare[]).splice(index, 1);
      this.#pendingIndex?.remove(share);
    }
    if (this.state === "loaded") return;
    if (!isWhole(share)) {
      // It was written before the document was lost. A load on its way may not have seen it.
      if (this.state === "loading")
        this.missed = [...this.missed, { sequence, operations: share.operations, labels: NONE }];
      return;
    }
    // Made or replaced whole without having been read: it is exactly what we wrote, nobody has to load it.
    this.state = "loaded";
    this.loadError = undefined;
    this.loadedAt = sequence;
    // How it is labelled is still on its way, where it was being loaded.
    if (this.missed.length > 0) this.missed = this.missed.filter(({ labels }) => labels.length > 0);
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
    this.#recent ??= [];
    this.#recent.push({ tick, path });
    if (this.#recent.length <= RECENT_WRITES_MAX) return;
    this.#recentFrom = (this.#recent[RECENT_WRITES_MAX >> 1] as { tick: number }).tick;
    this.#recent = this.#recent.slice((RECENT_WRITES_MAX >> 1) + 1);
  }

  /** Forgets the writes, as no transaction is open. */
  forget(): void {
    this.#recent = undefined;
    this.#recentFrom = 0;
  }

  /** Whether something read then has been written since. */
  hasMoved(read: LoggedRead): boolean {
    if (read.tick < this.#recentFrom) return true;
    if (this.#recent === undefined) return false;
    for (const { tick, path } of this.#recent) {
      if (tick > read.tick && writeTouchesRead(path, read.path, read.depth)) return true;
    }
    return false;
  }

  /** Adds the pending commits whose writes a read (or a write) at this path stands on. */
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

/** Whether what was there before does not matter to what it leaves. */
function isWhole({ operations }: { readonly operations: readonly PathOperation[] }): boolean {
  return operations.some(({ op, path }) => op === "set" && path.length === 0);
}

/** Not by identity: an element of a list that has become shorter may be what an equal one was. */
function isDifferent({ before, after }: Change): boolean {
  return !equal(before, after);
}

/** The paths without those that lie beneath another of them. */
function outermost(paths: readonly Path[]): Path[] {
  const result: Path[] = [];
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    if (!result.some((outer) => isPrefix(outer, path))) result.push(path);
  }
  return result;
}
