/**
 * The ambient turn of each space, and committing units. What plain code writes before it lets go of the thread is one commit:
 * it is told to readers when the pass begins and handed to the replica in a microtask.
 */
import type { Host } from "../host/host.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { NOTHING_ELSE } from "../store/commit-request.ts";
import type { OpenTurn } from "../store/document-table.ts";
import { join, type Label, PUBLIC } from "../store/label.ts";
import { whenOver } from "../store/pending-commit.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Commit } from "../store/transaction.ts";
import { isThenable } from "../work/handler-call.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen, requireWritable } from "./address-label.ts";
import type { Waker } from "./agenda.ts";
import type { Closure } from "./closure.ts";
import { isDerived, sourceReads } from "./graph-walk.ts";
import type { Invalidation } from "./invalidation.ts";
import type { SchedulerNode } from "./node.ts";
import { ReadsElsewhere } from "./reads-elsewhere.ts";
import type { TraceLog } from "./trace.ts";
import { type UntoldWrites, WriteUnit } from "./write-unit.ts";

class AmbientTurn implements OpenTurn {
  readonly replica: Replica;
  unit: WriteUnit | undefined;
  readonly #seal: () => void;

  constructor(replica: Replica, seal: () => void) {
    this.replica = replica;
    this.#seal = seal;
  }

  seal(): void {
    this.#seal();
  }
}

/** Hears of ambient commits that fell: nobody awaits them, so somebody has to be told. */
export interface LostWrites {
  lostWrite(space: string, message: string): void;
}

/** What a transaction gave, and its commit if it wrote anything. */
export interface Transacted<T> {
  readonly result: T;
  readonly commit: Commit | undefined;
  /** Whether what it has read stands, where it wrote nothing and read what is not confirmed yet. */
  readonly standing?: Promise<CommitOutcome> | undefined;
  /** Documents that it has taken for absent because they are not here; they are being loaded. */
  readonly missing?: ReadonlySet<DocumentIndex> | undefined;
  /** What it has read is labelled with, where it was one of its own. */
  readonly label?: Label;
}

/** A transaction threw after it had looked at documents that are not here, which may be why. Nothing of it has happened. */
export class ReadTooEarly extends Error {
  override readonly name = "ReadTooEarly";
  readonly missing: ReadonlySet<DocumentIndex>;

  constructor(cause: unknown, missing: ReadonlySet<DocumentIndex>) {
    super("a transaction threw that had read documents before they were loaded", { cause });
    this.missing = missing;
  }
}

/** A transaction threw after it had read what is not confirmed yet, which may be why. Nothing of it has happened. */
export class ReadTentative extends Error {
  override readonly name = "ReadTentative";
  readonly standing: Promise<CommitOutcome>;

  constructor(cause: unknown, standing: Promise<CommitOutcome>) {
    super("a transaction threw that had read what is not confirmed yet", { cause });
    this.standing = standing;
  }
}

/** A transaction has read what nodes write and what was not up to date. Nothing of it has happened, whatever its code has made of that. */
export class ReadBehind extends Error {
  override readonly name = "ReadBehind";
  /** What it has read so, and whether only shallow. */
  readonly behind: ReadonlyMap<Address, boolean>;

  constructor(behind: ReadonlyMap<Address, boolean>) {
    super("a transaction has read computed values before they were up to date");
    this.behind = behind;
  }
}

export class Turns implements UntoldWrites {
  readonly #host: Host;
  readonly #invalidation: Invalidation;
  readonly #lostWrites: LostWrites;
  readonly #trace: TraceLog;
  readonly #turns = new Map<Replica, AmbientTurn>();
  /** The one that was asked for last: mostly the one that is asked for next. */
  #latest: AmbientTurn | undefined;
  /** The unit of the last write, as long as it is open: the next one in its space may just follow. */
  #ready: WriteUnit | undefined;
  #waker: Waker | undefined;
  /** Units of plain code with writes that readers have not been told of, the latest first; mostly one, so they are linked. */
  #untold: WriteUnit | null = null;
  /** The turn whose unit is a transaction's: it ends with the transaction. Transactions are synchronous, so there is one. */
  #transacting: AmbientTurn | undefined;
  /** What nodes write that the transaction reads, and what of it was not up to date. */
  #closure: Closure | undefined;
  #behind: Map<Address, boolean> | undefined;
  /** What it has read in other spaces. */
  #elsewhere: ReadsElsewhere | undefined;

  constructor(host: Host, invalidation: Invalidation, lostWrites: LostWrites, trace: TraceLog) {
    this.#host = host;
    this.#invalidation = invalidation;
    this.#lostWrites = lostWrites;
    this.#trace = trace;
  }

  set waker(waker: Waker) {
    this.#waker = waker;
  }

  /** The unit that plain code in this space writes into, now. */
  ambient(replica: Replica): WriteUnit {
    const ready = this.#ready;
    return ready !== undefined && ready.replica === replica ? ready : this.#makeReady(replica);
  }

  /** A write of plain code to a place that it has just written; false where it is not that. */
  writeAgain(address: Address, value: unknown): boolean {
    return this.#ready?.setAgain(address, value) ?? false;
  }

  #makeReady(replica: Replica): WriteUnit {
    const turn = this.#latest?.replica === replica ? this.#latest : this.#turn(replica);
    this.#ready =
      this.#transacting === undefined ? (turn.unit ?? this.#open(turn)) : this.#transactionUnit(turn, replica);
    return this.#ready;
  }

  #open(turn: AmbientTurn): WriteUnit {
    const unit = new WriteUnit(turn.replica, this);
    turn.unit = unit;
    this.#host.microtask(() => turn.seal());
    this.#waker?.wake();
    return unit;
  }

  #transactionUnit(turn: AmbientTurn, replica: Replica): WriteUnit {
    // Not by whether the turn has one: plain code may have written to that space just before.
    if (turn === this.#transacting && turn.unit !== undefined) return turn.unit;
    throw new StoreError(
      "STORE_MISUSE",
      `a transaction is one commit of one space; write to "${replica.space}" before or after it`,
    );
  }

  get isTransacting(): boolean {
    return this.#transacting !== undefined;
  }

  /** The space of the transaction that runs now. */
  get transactsOn(): Replica | undefined {
    return this.#transacting?.replica;
  }

  /** What the transaction that runs now has read so far is labelled with. */
  get label(): Label {
    return this.#transacting?.unit?.label ?? PUBLIC;
  }

  /** A read by plain code: what a transaction has read, its commit rests on. */
  read(address: Address, shallow: boolean): void {
    const unit = this.#transacting?.unit;
    if (unit === undefined) return;
    if (address.document.labels !== undefined) unit.label = join(unit.label, labelSeen(address, shallow));
    // It may not run anything itself, since nodes would see what it has written so far. It goes on, so as to find all that it needs, for nothing.
    if (this.#closure?.shows(address, shallow) === false) {
      this.#behind ??= new Map();
      this.#behind.set(address, shallow && this.#behind.get(address) !== false);
    }
    if (!isDerived(address.home)) return this.#restOn(unit, address, shallow);
    for (const edge of sourceReads(address.home)) this.#restOn(unit, edge.address, edge.shallow);
  }

  #restOn(unit: WriteUnit, address: Address, shallow: boolean): void {
    if (unit.replica === address.home.replica) return unit.read(address, shallow);
    this.#elsewhere ??= new ReadsElsewhere();
    this.#elsewhere.read(address, shallow);
  }

  #turn(replica: Replica): AmbientTurn {
    let turn = this.#turns.get(replica);
    if (!turn) {
      turn = new AmbientTurn(replica, () => this.seal(replica));
      this.#turns.set(replica, turn);
      replica.turn = turn;
    }
    this.#latest = turn;
    return turn;
  }

  /** The space has closed: nothing is written there any more. */
  forget(replica: Replica): void {
    this.#turns.delete(replica);
    if (this.#latest?.replica === replica) this.#latest = undefined;
  }

  get hasUntold(): boolean {
    return this.#untold !== null;
  }

  /** A unit of plain code has writes that readers do not know. */
  hasToTell(unit: WriteUnit): void {
    if (unit.isListed) return;
    unit.isListed = true;
    unit.nextUntold = this.#untold;
    this.#untold = unit;
  }

  /** Tells readers of what plain code has written so far. */
  publish(): void {
    for (let unit = this.#untold; unit !== null; unit = this.#untold) {
      this.#untold = unit.nextUntold;
      unit.nextUntold = null;
      unit.isListed = false;
      unit.publish(this.#invalidation);
    }
  }

  /** Tells and commits what plain code has written so far. */
  settle(replica: Replica): void {
    if (this.isTransacting) return;
    this.publish();
    this.seal(replica);
  }

  /** Commits what plain code has written so far. */
  seal(replica: Replica): void {
    const turn = this.#turns.get(replica);
    const unit = turn?.unit;
    if (turn === undefined || unit === undefined || turn === this.#transacting) return;
    turn.unit = undefined;
    this.#ready = undefined;
    const commit = this.commit(unit);
    if (commit === undefined) return;
    whenOver(commit, (outcome) => {
      if (outcome.kind === "rejected") this.#lostWrites.lostWrite(replica.space, outcome.message);
    });
  }

  /** Runs code as one commit of its own. With a closure, what has read something of nodes that was not up to date is undone: `ReadBehind`. */
  transact<T>(replica: Replica, code: () => T, changeGroup?: string, closure?: Closure): Transacted<T> {
    const turn = this.#turn(replica);
    this.seal(replica);
    const unit = new WriteUnit(replica);
    turn.unit = unit;
    this.#ready = unit;
    this.#transacting = turn;
    this.#closure = closure;
    let result: T;
    let elsewhere: ReadsElsewhere | undefined;
    try {
      result = synchronous(code);
      if (this.#behind !== undefined) throw new ReadBehind(this.#behind);
      // By what is missing in its own space its commit would be stale; by what is missing elsewhere it would not.
      if (this.#elsewhere?.missing !== undefined) throw notLoaded(this.#elsewhere.missing);
      if (unit.label.length > 0)
        for (const address of unit.addresses()) requireWritable(unit.label, address, "a transaction");
    } catch (error) {
      unit.undo();
      if (this.#behind !== undefined) throw new ReadBehind(this.#behind);
      const missing = [...(unit.missing ?? NO_DOCUMENTS), ...(this.#elsewhere?.missing ?? NO_DOCUMENTS)];
      if (missing.length > 0) throw new ReadTooEarly(error, new Set(missing));
      const standing = standingOf(unit, this.#elsewhere);
      throw standing === undefined ? error : new ReadTentative(error, standing);
    } finally {
      elsewhere = this.#elsewhere;
      turn.unit = undefined;
      this.#ready = undefined;
      this.#transacting = undefined;
      this.#closure = undefined;
      this.#behind = undefined;
      this.#elsewhere = undefined;
    }
    const commit = this.commit(unit, undefined, changeGroup);
    const standing = commit === undefined ? standingOf(unit, elsewhere) : undefined;
    return { result, commit, standing, missing: unit.missing, label: unit.label };
  }

  /** Runs code as a part of the transaction that runs now, which must be one of the same space. */
  atomically<T>(replica: Replica, code: () => T): T {
    return this.#transactionUnit(this.#turn(replica), replica).atomically(code);
  }

  /** Tells readers of a unit's writes and hands them to the replica; nothing when it wrote nothing. */
  commit(unit: WriteUnit, source?: SchedulerNode, changeGroup?: string): Commit | undefined {
    unit.publish(this.#invalidation, source, changeGroup);
    const sealed = unit.seal();
    if (sealed.shares.size === 0 && unit.labels.length === 0) return undefined;
    const commit = unit.replica.adopt(sealed.shares, {
      reads: sealed.reads,
      ...(unit.labels.length === 0 ? {} : { extras: { ...NOTHING_ELSE, labels: [...unit.labels] } }),
      except: this.#invalidation.listener(unit.replica),
      ...(source === undefined ? {} : { source }),
      ...(changeGroup === undefined ? {} : { changeGroup }),
    });
    if (this.#trace.on) this.#note(commit, source?.id ?? unit.replica.space);
    return commit;
  }

  #note({ session, localSequence }: Commit, node: string): void {
    const because = [`${session} ${localSequence}`];
    this.#trace.note({ node, kind: "committed", because, detail: "commit" });
  }
}

const NO_DOCUMENTS: ReadonlySet<DocumentIndex> = new Set();

/** Whether what a transaction has read stands, in all spaces; undefined where all of it is confirmed. */
function standingOf(unit: WriteUnit, elsewhere: ReadsElsewhere | undefined): Promise<CommitOutcome> | undefined {
  const here = unit.replica.standingOf(unit.seal().reads);
  const others = elsewhere?.standings();
  if (others === undefined || others.length === 0) return here;
  const all = here === undefined ? others : [here, ...others];
  return Promise.all(all).then((outcomes) => {
    return outcomes.find(({ kind }) => kind === "rejected") ?? (outcomes[0] as CommitOutcome);
  });
}

/** Told only if it does not come in time. */
function notLoaded(missing: ReadonlySet<DocumentIndex>): Error {
  const places = [...missing].map(({ root, replica }) => `${root} of space "${replica.space}"`);
  return new Error(`a transaction has read ${places.join(", ")}, which was not loaded in time`);
}

/** What code of a transaction gives. What it did after an await nobody could undo or commit with the rest. */
export function synchronous<T>(code: () => T): T {
  const result = code();
  if (!isThenable(result)) return result;
  // Its rejection is not reported: it has no part in the transaction. A foreign thenable is not called.
  if (result instanceof Promise) result.catch(() => undefined);
  throw new StoreError(
    "STORE_MISUSE",
    "the code of a transaction must not be asynchronous: what it writes after an await would not be part of it; use begin() for a transaction that waits",
  );
}
