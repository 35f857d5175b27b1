/**
 * One attempt: one call of a handler with one transaction on one space. Cells read and write through it without being
 * told, as long as it is in the slot (`Views.attempt`). It sees its own writes; others see them with the commit.
 * Computed values show their values from before its writes.
 *
 * ```
 *   open ──commit──> applied ──> confirmed | rolled back        (the transaction and `lineage` know)
 *     ├──commitReads──> no effect; the outcome says whether its reads validate
 *     └──abort──> no effect
 * ```
 * A read never gives a value that is about to change. A document that is not loaded, or a computed value that waits for
 * a gate or an asynchronous run, abandons the attempt: `ABANDONED` is thrown through the handler, and `unready` names
 * the missing parts. Attempts that go on instead read absence, and `missing` lists the documents.
 *
 * Other spaces may be read; their documents are in no claim, since a commit is of one space. Only streams may write
 * there (Scheduler v2, decision 11). SPEC: U1-U3, U37-U47, I4, I10, I11.
 */
import { asyncContext, type WorkContext } from "../host/async-context.ts";
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { READY_PAUSE_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { idFrom } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { handOut } from "../store/admit.ts";
import type { Commit, CommitOutcome, Precondition } from "../store/commit.ts";
import { isWithin, join, type Label, labelOf, PUBLIC } from "../store/label.ts";
import { refusal, requireTransactionWritable } from "../store/label-checks.ts";
import type { Receipt } from "../store/receipt.ts";
import type { Replica } from "../store/replica.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import type { Transaction, TransactionMark } from "../store/transaction.ts";
import { Cancellation } from "./cancellation.ts";
import { type Cancellable, isThenable } from "./handler-call.ts";
import { AttemptLineage } from "./lineage.ts";
import type { Refusal } from "./refusal.ts";
import { labelMessages } from "./timer-row.ts";
import { WorkError } from "./work-error.ts";

/** A document as the scheduler knows it. */
export interface Home {
  readonly replica: Replica;
  readonly document: ReplicaDocument;
}

/** A place in a document. */
export interface Place {
  readonly home: Home;
  readonly document: ReplicaDocument;
  readonly parent: Place | null;
  readonly path: Path;
  readonly value: Json | undefined;
}

/** A read of a place. */
export interface PlaceRead {
  readonly address: Place;
  readonly shallow: boolean;
}

/** A demand for computed values; it lasts until it is released. */
export interface Demand {
  /** Brings a place up to date; false where that has to wait. */
  require(place: Place, shallow: boolean): boolean;
  release(): void;
}

/** Computed values and plain code, as attempts need them; the scheduler implements it. */
export interface Views {
  /** The attempt that the executing synchronous code belongs to. */
  attempt: Attempt | null;
  /** Commits the pending writes of plain code, so that an attempt does not read it in place. */
  seal(replica: Replica): void;
  /** Whether the document is the output of a computation. */
  isDerived(home: Home): boolean;
  /** Whether all nodes that write there are up to date. */
  isCurrent(home: Home): boolean;
  /** Reads of stored documents that a derived one goes back to. */
  sourcesOf(home: Home): Iterable<PlaceRead>;
  labelSeen(place: Place, shallow: boolean): Label;
  /** The handler of the attempt goes on after an `await`, and its code does not know the attempt any more. */
  goesOn(attempt: Attempt): void;
}

/** The common part of all attempts of one handler. */
export interface AttemptKind {
  readonly views: Views;
  readonly host: Host;
  /** The handler, for people. */
  readonly name: string;
  readonly clearance?: Label | undefined;
  demand(): Demand;
  /** `go-on`: a document that is not loaded reads as absent, so that one run finds all of them. */
  readonly onMissing: "abandon" | "go-on";
  /** `refuse`: reading a computed value that has to be waited for throws an error for the caller to handle. */
  readonly onBehind: "abandon" | ((place: Place) => Error);
  readonly otherSpaces: "read" | "write";
}

/** A space that entry points make attempts on. */
export interface WorkSpace {
  readonly name: string;
  replica(space: string): Replica;
  /** The kind of the attempts that a handler makes. */
  attemptsOf(handler: string, clearance?: readonly string[]): AttemptKind;
}

/** Which attempt it is. */
export interface AttemptFacts {
  readonly replica: Replica;
  /** The message that it handles; ids that it makes follow from it. */
  readonly id?: string | undefined;
  /** Counts the attempts at the message from 1. */
  readonly number?: number;
  /** The label of its message. */
  readonly label?: Label;
  readonly changeGroup?: string | undefined;
  /** Of an attempt before it. */
  readonly demand?: Demand | undefined;
  /** Of an attempt before it: the time that ids of its messages carry. */
  readonly bornMs?: number | undefined;
}

/** Why an attempt was abandoned. */
export type Unready =
  /** A computed value waits for a gate or an asynchronous run. */
  | { readonly kind: "nodes"; readonly read: PlaceRead }
  /** Documents are being loaded. */
  | { readonly kind: "load"; readonly missing: ReadonlySet<Home> };

/** Thrown through a handler to abandon the attempt; no error, so that it costs no stack trace. */
const ABANDONED = Symbol("abandoned");
const NONE: readonly never[] = Object.freeze([]);
const NO_HOMES: ReadonlySet<Home> = new Set();
/** Of a transaction that was made later. */
const UNWRITTEN: TransactionMark = { operations: NONE, extras: undefined };

export class Attempt implements WorkContext, Cancellable {
  readonly replica: Replica;
  readonly transaction: Transaction;
  readonly lineage: AttemptLineage;
  readonly number: number;
  /** The label of its message and of its reads so far (decision 0010). */
  label: Label;
  /** The reason why it was abandoned, also if the handler caught the exception. */
  unready: Unready | undefined;
  /** Sends of this attempt. */
  sends = 0;
  /** The refusal of its handler, if there is one. */
  refusal: Refusal | undefined;
  /** When the first attempt at the message made the id of a message; undefined if none did. */
  bornMs: number | undefined;
  /** Whether `idle` waits for its handler, which then must not wait for `idle`. */
  holdsRest = false;
  protected readonly kind: AttemptKind;
  /** Transactions on other spaces; made by the first read or write there. */
  #others: Map<Replica, Transaction> | undefined;
  #missing: Set<Home> | undefined;
  /** Derived documents with claimed sources. */
  #claimed: Set<Home> | undefined;
  #demand: Demand | undefined;
  readonly #session: string;
  readonly #id: string | undefined;
  #ids = 0;
  #messages = 0;
  #nowMs: number | undefined;
  #cancellation: Cancellation | undefined;
  #isOver = false;

  constructor(
    kind: AttemptKind,
    { replica, id, number = 1, label = PUBLIC, changeGroup, demand, bornMs }: AttemptFacts,
  ) {
    this.kind = kind;
    this.bornMs = bornMs;
    this.replica = replica;
    this.#id = id;
    this.number = number;
    this.label = label;
    this.transaction = changeGroup === undefined ? replica.transaction() : replica.transaction({ changeGroup });
    this.lineage = new AttemptLineage(replica);
    this.#demand = demand;
    this.#session = replica.session;
  }

  /** The id of its message. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Names the attempt; the origin of its sends. */
  get name(): string {
    return `${this.id ?? "transaction"} ${this.#session} ${this.number}`;
  }

  /** Whether its handler goes on after an await. */
  get isAwaited(): boolean {
    return false;
  }

  toString(): string {
    return this.kind.name;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Documents that were read and are being loaded. */
  get missing(): ReadonlySet<Home> {
    return this.#missing ?? NO_HOMES;
  }

  /** Transactions with writes on other spaces, in the order they were first used. */
  get children(): readonly (readonly [Replica, Transaction])[] {
    if (this.#others === undefined) return NONE;
    return [...this.#others].filter(([, { parts }]) => parts.some(({ draft }) => draft !== undefined));
  }

  /** Whether all its reads were loaded and up to date; otherwise its result must not be used. */
  get isReady(): boolean {
    return this.unready === undefined && this.#missing === undefined;
  }

  get hasWritten(): boolean {
    const { parts, extras } = this.transaction;
    return extras !== undefined || parts.some(({ draft }) => draft !== undefined);
  }

  /** Whether it has read a place that other commits may change. */
  get hasRead(): boolean {
    return this.#others !== undefined || this.transaction.parts.some(({ log }) => log.reads.length > 0);
  }

  /** Whether it has read or written the document. */
  hasTouched({ replica, document }: Home): boolean {
    return this.#known(replica)?.parts.some((part) => part.document === document) ?? false;
  }

  /** Resolves when the missing documents and values are here; false if it is not by the end of the window. */
  async whenReady(isOver: () => boolean): Promise<boolean> {
    await Promise.all([...this.missing].map(({ replica }) => replica.loadsSettled()));
    const { unready } = this;
    if (unready?.kind !== "nodes") return true;
    const { address, shallow } = unready.read;
    const demand = this.#demand ?? this.makeDemand();
    try {
      while (!demand.require(address, shallow)) {
        if (isOver()) return false;
        await pause(this.kind.host, READY_PAUSE_MS);
      }
      return true;
    } finally {
      this.releaseDemand(demand);
    }
  }

  /** Whether the documents that it missed are here by now. */
  get isLoaded(): boolean {
    for (const { document } of this.missing) if (!document.isKnown) return false;
    return true;
  }

  /** The documents or the computed value that it had to wait for, for people. */
  get unreadyText(): string {
    const { unready } = this;
    if (unready?.kind === "nodes")
      return `${unready.read.address} is not up to date: it waits for a gate, a load or an asynchronous run`;
    const missing = [...this.missing].filter(({ document }) => !document.isKnown);
    const texts = missing.map(({ document: { id, loadError } }) =>
      loadError === undefined ? id : `${id} (${thrownText(loadError)})`,
    );
    return texts.length === 0 ? "its documents were being loaded" : `not loaded: ${texts.join(", ")}`;
  }

  /** The clearance of its handler: plain code in it has that too. */
  get clearance(): Label | undefined {
    return this.kind.clearance;
  }

  get views(): Views {
    return this.kind.views;
  }

  // The slot --------------------------------------------------------------------------------------------------------

  /** Runs synchronous code as part of the attempt: its reads, its writes and its launches. */
  within<T>(code: () => T): T {
    this.requireOpen();
    const { views } = this.kind;
    const outer = views.attempt;
    if (outer !== this) views.seal(this.replica);
    views.attempt = this;
    try {
      return code();
    } finally {
      views.attempt = outer;
    }
  }

  /** Calls the handler: the code that follows from it after an `await` is part of the attempt too. */
  enter<T>(code: () => T): T {
    const value = asyncContext.run(this, () => this.within(code));
    this.mayEscape(value);
    return value;
  }

  /** On engines without an async context, plain writes of an asynchronous handler may be no part of the attempt. */
  protected mayEscape(value: unknown): void {
    if (!asyncContext.followsAwait && isThenable(value)) this.kind.views.goesOn(this);
  }

  /** Runs code as a part of the attempt: if it throws, its own writes and launches are taken back, and no others. */
  atomically<T>(code: () => T): T {
    const mark = this.transaction.mark();
    const others = new Map([...(this.#others ?? NONE)].map(([replica, other]) => [replica, other.mark()]));
    try {
      return code();
    } catch (error) {
      this.transaction.backTo(mark);
      for (const [replica, other] of this.#others ?? NONE) other.backTo(others.get(replica) ?? UNWRITTEN);
      throw error;
    }
  }

  /** An id that follows from the message's: every attempt, anywhere, gets the same. */
  newId(name?: string): string {
    if (this.id === undefined) return this.kind.host.id();
    return name === undefined ? `${this.id}#${++this.#ids}` : `${this.id}/${name}`;
  }

  /** The id of a message that it sends, by a key or by counting: the other attempts of this process get the same. */
  messageId(key?: string): string {
    const { host } = this.kind;
    const ordinal = ++this.#messages;
    if (this.id === undefined) return host.id();
    this.bornMs ??= host.now();
    return idFrom(this.bornMs, key === undefined ? `${this.id}#${ordinal}` : `${this.id}/${key}`);
  }

  get host(): Host {
    return this.kind.host;
  }

  /** The time, the same throughout the attempt. */
  get now(): number {
    this.#nowMs ??= this.kind.host.now();
    return this.#nowMs;
  }

  /** Aborted when the handler is left behind. */
  get signal(): AbortSignal {
    this.#cancellation ??= new Cancellation();
    return this.#cancellation.signal;
  }

  /** The handler is left behind: it must not write any more. */
  cancel(reason: Error): void {
    this.#cancellation ??= new Cancellation();
    this.#cancellation.cancel(reason);
    this.abort(reason.message);
  }

  requireOpen(): void {
    if (!this.#isOver) return;
    throw new WorkError(
      "WORK_OVER",
      `${this.kind.name} has ended, and its writes with it; await everything before the handler returns, or use space.transact inside space.outside()`,
    );
  }

  // The end ---------------------------------------------------------------------------------------------------------

  /** The handler has ended: code that still has the attempt cannot use it. */
  end(): void {
    this.#isOver = true;
    this.lineage.label = this.label;
    if (this.#demand !== undefined) this.releaseDemand(this.#demand);
    this.#demand = undefined;
  }

  /** Made by the first read that needs it; an owner may keep it over several attempts. */
  protected makeDemand(): Demand {
    return this.kind.demand();
  }

  protected releaseDemand(demand: Demand): void {
    demand.release();
  }

  /** Takes all its effects back. */
  abort(why: string): void {
    this.end();
    this.transaction.abort();
    this.letGoOfOthers();
    this.lineage.fail(why);
  }

  /** Throws if a reader of its writes may not know its reads. */
  requireWritable(): void {
    if (this.label.length === 0) return;
    requireTransactionWritable(this.label, this.transaction, this.kind.name);
    for (const [, child] of this.children) requireTransactionWritable(this.label, child, this.kind.name);
  }

  /** Leaves a receipt, with the label of the reads. */
  leave(receipt: Receipt, transaction = this.transaction): void {
    const { scope, id } = receipt;
    transaction.leave(receipt);
    if (this.label.length > 0) transaction.labels.push({ scope, id, path: [], labels: [...this.label] });
  }

  /** Before the commit: the receipt and the messages get the label of the reads. Throws like `requireWritable`. */
  seal(receipt?: Receipt): void {
    this.requireWritable();
    if (receipt !== undefined) this.leave(receipt);
    labelMessages(this.label, this.transaction);
  }

  /** Applies the writes, and tells launched work. The attempt has ended. */
  commit(): Commit {
    this.end();
    this.letGoOfOthers();
    const commit = this.transaction.commit();
    if (commit.rejection === undefined)
      this.lineage.applied({ session: commit.session, localSequence: commit.localSequence });
    return commit;
  }

  /** Commits no writes; the outcome says whether the reads validate and the conditions hold. */
  commitReads(why: string, ...conditions: readonly Precondition[]): Commit {
    this.end();
    this.letGoOfOthers();
    this.lineage.fail(why);
    return this.transaction.commitReads(...conditions);
  }

  /** Whether all of its reads stand, also those in other spaces. For attempts without writes, or that threw. */
  async standing(): Promise<CommitOutcome> {
    this.end();
    const spaces = [this.transaction, ...(this.#others?.values() ?? NONE)];
    const outcomes = await Promise.all(spaces.map((transaction) => transaction.commitReads().outcome));
    return outcomes.find(({ kind }) => kind === "rejected") ?? (outcomes[0] as CommitOutcome);
  }

  /** Reads in other spaces are not claimed there. */
  letGoOfOthers(): void {
    if (this.#others !== undefined) for (const other of this.#others.values()) other.abort();
  }

  // Reading ---------------------------------------------------------------------------------------------------------

  read(place: Place, shallow: boolean): Json | undefined {
    const { home } = place;
    this.#bring(place, shallow);
    if (place.document.labels !== undefined) this.#join(place, shallow);
    if (!this.kind.views.isDerived(home))
      return this.#transactionOf(home.replica).read(home.document, place.path, shallow ? "shallow" : "deep");
    this.#claimSources(home);
    return handOut(place.value);
  }

  /** Joins the label of a read; refuses one above the clearance. */
  #join(place: Place, shallow: boolean): void {
    const { views, clearance, name } = this.kind;
    const label = views.labelSeen(place, shallow);
    if (clearance === undefined || isWithin(label, clearance)) {
      this.label = join(this.label, label);
      return;
    }
    // As a run that is refused (`information-flow.ts`).
    if (place.document.derived) this.label = join(this.label, labelOf(clearance));
    throw refusal(name, place);
  }

  /** The value as the attempt sees it, without depending on it. */
  glance(place: Place): Json | undefined {
    const { home } = place;
    if (this.kind.views.isDerived(home)) return place.value;
    const known = this.#known(home.replica);
    // A place that it has removed is absent for it alone.
    return known === undefined ? place.value : known.glance(home.document, place.path);
  }

  /** The place is loaded and up to date, or the attempt ends here. */
  #bring(place: Place, shallow: boolean): void {
    const { home } = place;
    const { views, onBehind } = this.kind;
    if (!views.isCurrent(home)) {
      this.#demand ??= this.makeDemand();
      if (!this.#demand.require(place, shallow)) {
        this.unready ??= { kind: "nodes", read: { address: place, shallow } };
        throw onBehind === "abandon" ? ABANDONED : onBehind(place);
      }
    }
    this.#requireLoaded(home);
  }

  #requireLoaded(home: Home): void {
    const { document, replica } = home;
    // A document that the attempt itself has put needs no load.
    if (!document.isKnown && this.#known(replica)?.puts(document)) return;
    if (document.state === "absent" && !document.isKnown) replica.touch(document);
    if (document.isKnown) return;
    this.#missing ??= new Set();
    this.#missing.add(home);
    if (this.kind.onMissing === "go-on") return;
    this.unready ??= { kind: "load", missing: this.#missing };
    throw ABANDONED;
  }

  /** A derived value is as good as its sources. */
  #claimSources(home: Home): void {
    this.#claimed ??= new Set();
    if (this.#claimed.has(home)) return;
    this.#claimed.add(home);
    for (const { address, shallow } of this.kind.views.sourcesOf(home)) {
      this.#requireLoaded(address.home);
      const { replica, document } = address.home;
      this.#transactionOf(replica).claim(document, address.path, shallow ? "shallow" : "deep");
    }
  }

  // Writing ---------------------------------------------------------------------------------------------------------

  set(place: Place, value: unknown): void {
    if (place.parent !== null) this.#bring(place.parent, true);
    this.#writing(place).write(place.document, place.path, value);
  }

  /** Removes an object's key or, at the root, the document. */
  remove(place: Place): void {
    this.#bring(place.parent ?? place, true);
    this.#writing(place).remove(place.document, place.path);
  }

  /** Adds elements at the end of an array, which is made if there is none. */
  append(place: Place, items: readonly unknown[]): void {
    const value = this.read(place, true);
    if (value === undefined) this.set(place, items);
    else this.splice(place, Array.isArray(value) ? value.length : 0, 0, items);
  }

  splice(place: Place, index: number, remove: number, insert: readonly unknown[]): void {
    this.#bring(place, true);
    this.#writing(place).splice(place.document, place.path, index, remove, insert);
  }

  #writing({ home: { replica } }: Place): Transaction {
    if (replica === this.replica || this.kind.otherSpaces === "write") return this.#transactionOf(replica);
    throw new WorkError(
      "WORK_ONE_SPACE",
      `a transaction is one commit of one space, here "${this.replica.space}"; write to "${replica.space}" before or after it, or send a message to its handler`,
    );
  }

  #transactionOf(replica: Replica): Transaction {
    const known = this.#known(replica);
    if (known !== undefined) return known;
    this.kind.views.seal(replica);
    const transaction = replica.transaction();
    this.#others ??= new Map();
    this.#others.set(replica, transaction);
    return transaction;
  }

  #known(replica: Replica): Transaction | undefined {
    return replica === this.replica ? this.transaction : this.#others?.get(replica);
  }
}
