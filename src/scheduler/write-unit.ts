/**
 * Writes of synchronous code, made to the documents in place and rolled back if the code throws: one unit is one
 * commit. The ambient turn of a space is a unit, and a node's side-writes are another. A repeated write to a place
 * costs one assignment: readers get the difference since their last report, and the backend the last value.
 */
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { placeText } from "../message/path.ts";
import { admit, handOut, isPlainLeaf, notAdmitted, ownUnlessHandedOut } from "../store/admit.ts";
import type { LabelWrite, ReadClaim } from "../store/commit.ts";
import { sequenceSeen } from "../store/commit-request.ts";
import { incomingDiff, jsonDiff } from "../store/json-diff.ts";
import { applyOperation, isRange, PatchError } from "../store/patch.ts";
import { movesElements, type PathOperation } from "../store/path-operation.ts";
import type { Replica, Share } from "../store/replica.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import { StoreError } from "../store/store.ts";
import { netChanges, supersededBy, type Untold } from "./net-changes.ts";
import type { DocumentIndex, NodeAddress } from "./node.ts";

interface WriteRecord {
  readonly address: NodeAddress;
  /** The operation to send; a `set` takes its value from `value` when the unit is sealed. */
  readonly operation: PathOperation;
  readonly inverse: PathOperation;
  value: Json | undefined;
  /** The value that readers know. */
  told: Json | undefined;
  untold: boolean;
  /** The next unreported record, in the order of the writes. */
  nextUntold: WriteRecord | null;
}

/** The target of writes: a unit, which applies them in place, or an attempt, which keeps them until its commit. */
export interface WriteTarget {
  set(address: NodeAddress, value: unknown): void;
  /** Removes an object's key or, at the root, the document. */
  remove(address: NodeAddress): void;
  splice(address: NodeAddress, index: number, remove: number, insert: readonly unknown[]): void;
  /** Adds elements at the end of an array, which is created if it is absent. */
  append(address: NodeAddress, items: readonly unknown[]): void;
}

/** Told of changed values; `Invalidation` implements it. */
export interface ChangeListener {
  changed(
    address: NodeAddress,
    before: Json | undefined,
    after: Json | undefined,
    source?: object,
    changeGroup?: string,
  ): void;
}

/** Called when a unit has its first unreported write. */
export interface WriteTeller {
  hasToTell(unit: WriteUnit): void;
}

const NO_LABELS: readonly LabelWrite[] = Object.freeze([]);
const NO_UNTOLD: readonly (readonly Untold[])[] = Object.freeze([]);

let lastUnit = 0;

export class WriteUnit implements WriteTarget {
  readonly replica: Replica;
  /** Labels that are committed with the writes. */
  labels: readonly LabelWrite[] = NO_LABELS;
  /** Documents that it claims and that are not loaded. */
  missing: Set<DocumentIndex> | undefined;
  /** Links of the list of units with unreported writes; owned by `turns.ts`. */
  isListed = false;
  nextUntold: WriteUnit | null = null;
  /** Addresses store the id of the unit that wrote them last, so that a second write finds its record. */
  readonly #id = ++lastUnit;
  readonly #records: WriteRecord[] = [];
  /** Unreported records, linked: arrays cost a quarter of the time of a small change. */
  #firstUntold: WriteRecord | null = null;
  #lastUntold: WriteRecord | null = null;
  readonly #claims: ReadClaim[] = [];
  /** Claimed addresses, so that reads in a loop claim once; created by the first claim. */
  #claimedDeep: Set<NodeAddress> | undefined;
  #claimedShallow: Set<NodeAddress> | undefined;
  /** The last container that was claimed because of a write into it. */
  #reached: NodeAddress | undefined;
  /**
   * The last write, if it set a whole document: another value is then assigned directly. No other code writes there
   * meanwhile, since an open turn is sealed before other writes in its space.
   */
  #again: WriteRecord | null = null;
  /**
   * The number of records at the start of the innermost nested transaction, and their values before it changed them.
   */
  #kept = 0;
  #rewritten: { readonly at: number; readonly value: Json | undefined }[] | undefined;
  /** Documents written at several depths, or several times at one place by operations other than `set`. */
  #nested: Set<DocumentIndex> | undefined;
  /** Called about writes to report before the commit; null for a unit that reports when it is committed. */
  readonly #teller: WriteTeller | null;

  constructor(replica: Replica, teller: WriteTeller | null = null) {
    replica.requireOpen();
    this.replica = replica;
    this.#teller = teller;
  }

  get isEmpty(): boolean {
    return this.#records.length === 0 && this.labels.length === 0;
  }

  /** The address of each record. */
  *addresses(): Iterable<NodeAddress> {
    for (const { address } of this.#records) yield address;
  }

  set(address: NodeAddress, value: unknown): void {
    try {
      this.#set(address, value);
    } catch (error) {
      throw notAdmitted(error, address);
    }
  }

  #set(address: NodeAddress, value: unknown): void {
    const before = address.value;
    const { home, level } = address;
    if (typeof value === "object" && value !== before && this.#setNarrow(address, before, value)) return;
    const after = admit(value, before);
    // An admitted value is neither NaN nor -0, so `===` is enough.
    if (before === after) return;
    if (address.turn !== this.#id || home.turn !== this.#id || home.turnLevel !== level) {
      this.#setFirst(address, before, after);
      return;
    }
    const record = this.#records[address.turnRecord] as WriteRecord;
    if (address.turnRecord < this.#kept) this.#keep(address.turnRecord, record);
    if (level === 0) home.document.value = after;
    else this.#apply(home, { op: "set", path: record.operation.path, value: after });
    record.value = after;
    if (level === 0) this.#again = record;
    if (!record.untold) this.#tellLater(record);
  }

  /** Assigns a plain value to the document that the unit has set last; false if more is needed. */
  setAgain(address: NodeAddress, value: unknown): boolean {
    const record = this.#again;
    if (record === null || record.address !== address) return false;
    const { document } = address;
    // A computation may own the place since: then the normal path throws.
    if (document.derived || !isPlainLeaf(value, document.value)) return false;
    document.value = value;
    record.value = value;
    if (!record.untold) this.#tellLater(record);
    return true;
  }

  #setFirst(address: NodeAddress, before: Json | undefined, after: Json): void {
    const { home, level, path } = address;
    const differences = jsonDiff(path, before, after);
    if (differences) return this.#setDifferences(address, differences);
    if (level > 0) this.#claimContainer(address.parent as NodeAddress, before);
    this.#keepTold(address);
    // After a rollback, the values set above it must be as before.
    if (this.#kept > 0) this.#keepAbove(address);
    const operation: PathOperation = { op: "set", path, value: after };
    this.#record(address, operation, this.#apply(home, operation), before, after);
  }

  /** Writes a wide object as its differences from the present one; false if it must be set whole. */
  #setNarrow(address: NodeAddress, before: Json | undefined, value: unknown): boolean {
    if (address.turn === this.#id) return false;
    const differences = incomingDiff(address.path, before, value);
    if (differences) this.#setDifferences(address, differences);
    return differences !== undefined;
  }

  /** Removes an object's key or, at the root, the document. */
  remove(address: NodeAddress): void {
    const before = address.value;
    if (before === undefined) return this.#claim(address, "deep");
    if (address.parent !== null) this.#claim(address.parent, "reach");
    this.#keepTold(address);
    this.#keepAbove(address);
    const operation: PathOperation = { op: "delete", path: address.path };
    this.#record(address, operation, this.#apply(address.home, operation), before, undefined);
  }

  splice(address: NodeAddress, index: number, remove: number, insert: readonly unknown[]): void {
    // Frozen, because readers know this value and the splice makes a new one.
    const before = handOut(address.value);
    if (!Array.isArray(before)) throw misuse(`cannot splice ${address}: there is no array`);
    if (!isRange(index, remove, before.length))
      throw misuse(`cannot splice ${address} at ${index} over ${remove}: it has ${before.length} elements`);
    // `map` would skip holes, which are no values.
    const items = Array.from(insert, (item, i) => admit(item, before[index + i]));
    this.#claim(address, movesElements(before, index, remove, insert) ? "deep" : "shallow");
    this.#keepTold(address);
    this.#keepAbove(address);
    const operation: PathOperation = { op: "splice", path: address.path, index, remove, insert: items };
    this.#record(address, operation, this.#apply(address.home, operation), before, address.value);
  }

  /**
   * Adds elements at the end of an array. If it is absent it is created, unless another writer creates it meanwhile.
   */
  append(address: NodeAddress, items: readonly unknown[]): void {
    const { value } = address;
    if (value !== undefined) return this.splice(address, Array.isArray(value) ? value.length : 0, 0, items);
    this.#claim(address, "deep");
    this.set(address, items);
  }

  /** The code has just read the place. */
  read(address: NodeAddress, shallow: boolean): void {
    if (!this.hasPut(address.home)) this.claimRead(address, shallow);
  }

  /** The commit claims the value at the place before its own writes. */
  claimRead(address: NodeAddress, shallow: boolean): void {
    if (shallow) this.#claimedShallow ??= new Set();
    else this.#claimedDeep ??= new Set();
    const claimed = (shallow ? this.#claimedShallow : this.#claimedDeep) as Set<NodeAddress>;
    if (claimed.has(address)) return;
    claimed.add(address);
    this.#restOn(address, shallow ? "shallow" : "deep");
  }

  /** Tells readers of the changes since the last report. */
  publish(listener: ChangeListener, source?: object, changeGroup?: string): void {
    let record = this.#firstUntold;
    // Invalidation only marks and queues nodes, so there are no writes meanwhile.
    this.#firstUntold = null;
    this.#lastUntold = null;
    const nested = this.#nested === undefined ? undefined : new Map<DocumentIndex, Untold[]>();
    while (record !== null) {
      const { told, address } = record;
      const now = address.value;
      record.untold = false;
      record.told = now;
      if (this.#nested?.has(address.home)) addTo(nested as Map<DocumentIndex, Untold[]>, { address, told });
      // A value that was changed and changed back invalidates no reader.
      else if (!equal(told, now)) listener.changed(address, told, now, source, changeGroup);
      const next: WriteRecord | null = record.nextUntold;
      record.nextUntold = null;
      record = next;
    }
    for (const untold of nested?.values() ?? NO_UNTOLD) {
      for (const { address, before } of netChanges(untold)) {
        const now = address.value;
        if (!equal(before, now)) listener.changed(address, before, now, source, changeGroup);
      }
    }
  }

  undo(): void {
    for (const { address, inverse } of this.#records.toReversed()) this.#apply(address.home, inverse);
    this.#records.length = 0;
    this.#tellUpTo(null);
    this.#again = null;
  }

  /** Runs code as part of the unit: if it throws, only its own writes are rolled back. */
  atomically<T>(code: () => T): T {
    const { labels } = this;
    const [records, lastUntold, outer] = [this.#records.length, this.#lastUntold, this.#kept];
    const rewritten = this.#rewritten?.length ?? 0;
    this.#kept = records;
    // The earlier writes must stay separate records.
    this.#again = null;
    try {
      return code();
    } catch (error) {
      this.#undoTo(records, rewritten);
      this.#tellUpTo(lastUntold);
      this.labels = labels;
      throw error;
    } finally {
      this.#kept = outer;
      if (outer === 0) this.#rewritten = undefined;
    }
  }

  #keep(at: number, { value }: WriteRecord): void {
    this.#rewritten ??= [];
    this.#rewritten.push({ at, value });
  }

  /** No reader was told of the writes, because a unit with a teller has no nested transactions. */
  #undoTo(length: number, rewritten: number): void {
    for (const { address, inverse } of this.#records.splice(length).reverse()) {
      this.#apply(address.home, inverse);
      if (address.turnRecord >= length) address.turn = 0;
      address.home.turnLevel = -1;
    }
    for (const { at, value } of this.#rewritten?.splice(rewritten).reverse() ?? []) {
      const record = this.#records[at];
      if (record === undefined) continue;
      this.#apply(record.address.home, { op: "set", path: record.operation.path, value: value as Json });
      record.value = value;
    }
    this.#again = null;
    // A claim may have been skipped because of a container that the rollback removes.
    this.#reached = undefined;
  }

  /** The contents of the commit: operations by document with frozen values, and claims. */
  seal(): { shares: Map<ReplicaDocument, Share>; reads: readonly ReadClaim[] } {
    const shares = new Map<ReplicaDocument, Share>();
    const superseded = this.#nested === undefined ? undefined : supersededBy(this.#records, this.#nested);
    for (const record of this.#records) {
      const { address, operation, inverse, value } = record;
      if (operation.op === "set" && inverse.op === "set" && Object.is(inverse.value, value)) continue;
      const { document } = address.home;
      let share = shares.get(document);
      if (!share) {
        share = { operations: [], inverses: [] };
        shares.set(document, share);
      }
      if (!superseded?.has(record)) share.operations.push(frozenOf(operation, value));
      share.inverses.push(inverse);
    }
    return { shares, reads: this.#claims };
  }

  #setDifferences(address: NodeAddress, differences: readonly PathOperation[]): void {
    if (differences.length === 0) return;
    // Differences are equal to the whole value only if the rest is unchanged.
    this.#claim(address, "deep");
    const { home } = address;
    for (const operation of differences) {
      const at = home.root.at(operation.path);
      this.#keepTold(at);
      if (this.#kept > 0) this.#keepAbove(at);
      const before = operation.op === "splice" ? handOut(at.value) : at.value;
      const inverse = this.#apply(home, operation);
      this.#record(at, operation, inverse, before, at.value);
      home.turnLevel = -1;
    }
  }

  #record(
    address: NodeAddress,
    operation: PathOperation,
    inverse: PathOperation,
    told: Json | undefined,
    value: Json | undefined,
  ): void {
    const { home, level } = address;
    // Writes at one level of a document cannot overlap, so their order does not matter and each may be repeated in
    // place.
    const sameLevel = operation.op === "set" && (home.turn !== this.#id || home.turnLevel === level);
    if (!sameLevel && home.turn === this.#id) this.#nested = (this.#nested ?? new Set()).add(home);
    home.turn = this.#id;
    home.turnLevel = sameLevel ? level : -1;
    const record: WriteRecord = { address, operation, inverse, value, told, untold: false, nextUntold: null };
    this.#records.push(record);
    this.#again = sameLevel && level === 0 ? record : null;
    // An unreported earlier record of the place covers this write too.
    if (address.turn === this.#id && this.#records[address.turnRecord]?.untold) return;
    address.turn = this.#id;
    address.turnRecord = this.#records.length - 1;
    this.#tellLater(record);
  }

  /** Operations follow each other in the commit, so a value that this unit set above must stay as it was set. */
  #keepAbove(address: NodeAddress): void {
    if (address.home.turn !== this.#id) return;
    for (let above = address.parent; above !== null; above = above.parent) {
      if (above.turn === this.#id) handOut(above.value);
    }
  }

  /** The values that readers know above a place share parts with the present ones, which are written in place. */
  #keepTold(address: NodeAddress): void {
    if (address.home.turn !== this.#id) return;
    for (let above = address.parent; above !== null; above = above.parent) {
      const record = above.turn === this.#id ? this.#records[above.turnRecord] : undefined;
      if (record?.untold) handOut(record.told);
    }
  }

  #tellLater(record: WriteRecord): void {
    if (record.untold) return;
    record.untold = true;
    const last = this.#lastUntold;
    this.#lastUntold = record;
    if (last !== null) {
      last.nextUntold = record;
      return;
    }
    this.#firstUntold = record;
    this.#teller?.hasToTell(this);
  }

  /** Drops the unreported records after `last`. */
  #tellUpTo(last: WriteRecord | null): void {
    this.#lastUntold = last;
    if (last === null) this.#firstUntold = null;
    else last.nextUntold = null;
  }

  /** A write requires that its container still exists; a write at the end of an array also requires the same length. */
  #claimContainer(container: NodeAddress, before: Json | undefined): void {
    const depth = before === undefined && Array.isArray(container.value) ? "shallow" : "reach";
    // Writes into one container claim it once.
    if (depth === "reach" && container === this.#reached) return;
    if (depth === "reach") this.#reached = container;
    this.#claim(container, depth);
  }

  #claim(address: NodeAddress, depth: ReadClaim["depth"]): void {
    if (!this.hasPut(address.home)) this.#restOn(address, depth);
  }

  /** Whether the unit has set a whole document that is not loaded: its reads there see its own value. */
  hasPut({ root, document }: DocumentIndex): boolean {
    return root.turn === this.#id && !document.isKnown;
  }

  #restOn({ home, path }: NodeAddress, depth: ReadClaim["depth"]): void {
    const { scope, id } = home.document;
    if (!home.document.isKnown) this.#ask(home);
    this.#claims.push({ scope, id, path, depth, sequence: sequenceSeen(home.document, this.replica.position) });
  }

  #ask(home: DocumentIndex): void {
    if (home.document.state === "absent") home.replica.touch(home.document);
    this.missing ??= new Set();
    this.missing.add(home);
  }

  #apply(home: DocumentIndex, operation: PathOperation): PathOperation {
    try {
      const { root, inverse } = applyOperation(home.document.value, operation, ownUnlessHandedOut);
      home.document.value = root;
      return inverse;
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      const advice = `${home.document.isKnown ? "" : "pull it, or "}write its parent first`;
      throw misuse(`cannot write ${placeText(String(home.root), operation.path)}: ${error.message}; ${advice}`);
    }
  }
}

function addTo(lists: Map<DocumentIndex, Untold[]>, untold: Untold): void {
  const { home } = untold.address;
  const list = lists.get(home);
  if (list === undefined) lists.set(home, [untold]);
  else list.push(untold);
}

/** The operation with frozen values, which later writes in place do not change. */
function frozenOf(operation: PathOperation, value: Json | undefined): PathOperation {
  if (operation.op === "set") return { ...operation, value: handOut(value as Json) };
  if (operation.op === "splice") for (const item of operation.insert) handOut(item);
  return operation;
}

function misuse(message: string): StoreError {
  return new StoreError("STORE_MISUSE", message);
}
