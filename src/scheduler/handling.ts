/**
 * One attempt to handle a send: a transaction on the send's own space, which cells read and write without being told, also in the
 * stretches of an asynchronous handler that are taken up with `within`. It sees its own writes; others see them with the commit.
 * Computed values show what they were before its writes.
 *
 * A read never gives a value that is about to change. What is not loaded, or waits for a gate or an asynchronous run, abandons the
 * attempt: `ABANDONED` is thrown through the handler, nothing of it happens, and the send waits at the head of its queue for
 * what was missing.
 *
 * Writes to other spaces are transactions of their own, committed and confirmed before the handling's (Scheduler v2, decision 11).
 * SPEC: I4, I10, I11.
 */
import type { Host } from "../host/host.ts";
import { DATA_LIMITS, type Json } from "../message/json.ts";
import { cloneJson } from "../message/json-copy.ts";
import { event } from "../message/lineage.ts";
import { problemText, within } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import { handOut } from "../store/admit.ts";
import type { Precondition } from "../store/commit.ts";
import { isWithin, join, type Label, labelOf } from "../store/label.ts";
import { refusal, requireTransactionWritable } from "../store/label-checks.ts";
import { requireAbsent } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Replica } from "../store/replica.ts";
import type { Commit, Transaction, TransactionMark } from "../store/transaction.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import { Closure, type ClosureParts, isCurrent } from "./closure.ts";
import { isDerived, sourceReads } from "./graph-walk.ts";
import { Lineage } from "./lineage.ts";
import type { Send, Wait } from "./send.ts";
import { StreamError } from "./stream-record.ts";
import type { WriteTarget } from "./write-unit.ts";

/** Thrown through a handler to abandon the attempt; not an error, so that it costs no stack trace. */
const ABANDONED = Symbol("abandoned");

/** What every handling needs. */
export interface HandlingParts extends ClosureParts {
  readonly host: Host;
}

/** How a handler ended. */
export type End =
  | { readonly threw: false; readonly value: unknown }
  | { readonly threw: true; readonly error: unknown };

export class Handling implements WriteTarget {
  readonly send: Send;
  readonly transaction: Transaction;
  readonly lineage: Lineage;
  /** What it has read so far, and who sent it had, is labelled with (decision 0010). */
  label: Label;
  /** Sends of this attempt. */
  sends = 0;
  /** Why it was abandoned; whatever the handler made of the exception. */
  abandonedFor: Wait | undefined;
  /** Looks at what the handler is going to read; its writes are dropped. */
  readonly isPreflight: boolean;
  readonly #parts: HandlingParts;
  /** Which attempt of the send it is. Those of all sends are not counted: how many there were under a label would show. */
  readonly #attempt: number;
  readonly #session: string;
  /** Transactions on other spaces; made by the first read or write there. */
  #others: Map<Replica, Transaction> | undefined;
  #missing: DocumentIndex[] | undefined;
  /** Derived documents whose sources the commit rests on already. */
  #claimed: Set<DocumentIndex> | undefined;
  #ids = 0;
  #isOver = false;

  constructor(parts: HandlingParts, send: Send, isPreflight = false) {
    const { replica } = send.stream.queue;
    this.send = send;
    this.label = send.label;
    this.isPreflight = isPreflight;
    this.#parts = parts;
    this.#attempt = send.attempts;
    this.transaction = replica.transaction();
    this.lineage = new Lineage(replica);
    this.#session = replica.session;
  }

  /** Names the attempt; the origin of what it sends. */
  get name(): string {
    return `${this.send.id} ${this.#session} ${this.#attempt}`;
  }

  get replica(): Replica {
    return this.send.stream.queue.replica;
  }

  /** Whether its handler goes on after an await. */
  get isAwaited(): boolean {
    return this.send.stream.queue.running === this.send;
  }

  /** What was read and is being loaded. */
  get missing(): readonly DocumentIndex[] {
    return this.#missing ?? NONE;
  }

  /** Transactions with writes on other spaces, in the order they were first used. */
  get children(): readonly (readonly [Replica, Transaction])[] {
    if (this.#others === undefined) return NONE;
    return [...this.#others].filter(([, { parts }]) => parts.some(({ draft }) => draft !== undefined));
  }

  /** Calls the handler, or its preflight, with what was sent. */
  call(code: (value: Json, handling: Handling) => unknown): End {
    const { runner } = this.#parts;
    const outer = runner.handling;
    runner.handling = this;
    try {
      return { threw: false, value: code(this.send.value, this) };
    } catch (error) {
      return { threw: true, error };
    } finally {
      runner.handling = outer;
    }
  }

  /** Runs synchronous code as part of the handling: all that it reads and writes. */
  within<T>(code: () => T): T {
    if (this.#isOver) throw over(this.send);
    const { runner } = this.#parts;
    const outer = runner.handling;
    runner.handling = this;
    try {
      return code();
    } finally {
      runner.handling = outer;
    }
  }

  /** Runs code that is a part of the handling: if it throws, what it has written is taken back, and nothing else. */
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

  /** An id that follows from the event: every attempt, anywhere, gets the same. */
  newId(name?: string): string {
    return name === undefined ? `${this.send.id}#${++this.#ids}` : `${this.send.id}/${name}`;
  }

  /** Publishes an event with the commit, under an id that follows from this one's. */
  emit(topic: string, data: Json): void {
    if (this.#isOver) throw over(this.send);
    const mint = { id: () => this.newId(), now: () => this.#parts.host.now() };
    // Copied now: the handler may change it before the commit, and handlers here are given this very copy.
    const copy = cloneJson(data, DATA_LIMITS);
    if (copy.kind === "impure")
      throw new StreamError(
        "STREAM_MISUSE",
        `${topic} cannot be published: ${problemText(within("data", copy.problem))}`,
      );
    const message = event(mint, topicType(topic), copy.value, { causation: this.send.id });
    const source = String(this.send.stream);
    this.transaction.entries.push({ message, topic, source, as: { status: "pending" } });
  }

  /** The handler has ended: what still holds on to it cannot do anything any more. */
  end(): void {
    this.#isOver = true;
  }

  /** Nothing of it happens, and the send is as if it had not been tried. */
  abandon(): void {
    this.abort("the attempt was abandoned");
    this.send.state = "queued";
    this.send.attempts--;
  }

  /** Nothing of it happens; the outcome says whether what it had read stands, or whether the send was handled before. */
  commitReads(why: string): Commit {
    this.end();
    this.letGoOfOthers();
    this.lineage.fail(why);
    const origin = this.originCondition;
    const absent = requireAbsent(receiptOf({ kind: "send", id: this.send.id }));
    return origin === undefined ? this.transaction.commitReads(absent) : this.transaction.commitReads(absent, origin);
  }

  /** What its commit needs to come after that of who sent, as long as that is not confirmed. */
  get originCondition(): Precondition | undefined {
    const { origin } = this.send;
    return origin?.state === "applied" && origin.commit ? { kind: "originCommitted", ...origin.commit } : undefined;
  }

  /** Nothing of it happens. */
  abort(why: string): void {
    this.end();
    this.transaction.abort();
    this.letGoOfOthers();
    this.lineage.fail(why);
  }

  /** What was only read in other spaces is not claimed there: a commit is of one space. */
  letGoOfOthers(): void {
    if (this.#others !== undefined) for (const other of this.#others.values()) other.abort();
  }

  // Reading --------------------------------------------------------------------------------------------------------------

  read(address: Address, shallow: boolean): Json | undefined {
    const { home } = address;
    this.#bring(address, shallow);
    if (address.document.labels !== undefined) this.#look(address, shallow);
    if (!isDerived(home))
      return this.#transactionOf(home.replica).read(home.document, address.path, shallow ? "shallow" : "deep");
    this.#claimSources(home);
    return handOut(address.value);
  }

  #look(address: Address, shallow: boolean): void {
    const label = labelSeen(address, shallow);
    const { handler } = this.send.stream;
    if (handler?.clearance === undefined || isWithin(label, handler.clearance)) {
      this.label = join(this.label, label);
      return;
    }
    // As a run that is refused (`information-flow.ts`).
    if (address.document.derived) this.label = join(this.label, labelOf(handler.clearance));
    throw refusal(handler.name, address);
  }

  /** Throws if something it has written could be read by somebody who must not know what it has read. */
  requireWritable(): void {
    const who = this.send.stream.handler?.name ?? "a handler";
    requireTransactionWritable(this.label, this.transaction, who);
    for (const [, child] of this.children) requireTransactionWritable(this.label, child, who);
  }

  /** The value as the handling sees it, without depending on it. */
  glance(address: Address): Json | undefined {
    const { home } = address;
    if (isDerived(home)) return address.value;
    const known = this.#known(home.replica);
    // What it has removed is not there for it, whatever others see.
    return known === undefined ? address.value : known.glance(home.document, address.path);
  }

  /** What lies there is loaded and up to date, or the attempt ends here. */
  #bring(address: Address, shallow: boolean): void {
    const { home } = address;
    if (!isCurrent(this.#parts, home)) {
      this.send.closure ??= new Closure(this.#parts, this.send.stream);
      if (!this.send.closure.require(address, shallow)) this.#abandon({ kind: "nodes" });
    }
    this.#requireLoaded(home);
  }

  #requireLoaded(home: DocumentIndex): void {
    const { document, replica } = home;
    if (document.state === "absent" && !document.isKnown) replica.touch(document);
    if (document.isKnown) return;
    this.#missing ??= [];
    this.#missing.push(home);
    if (!this.isPreflight) this.#abandon({ kind: "load", missing: this.#missing });
  }

  /** A derived value is as good as what it was derived from. */
  #claimSources(home: DocumentIndex): void {
    this.#claimed ??= new Set();
    if (this.#claimed.has(home)) return;
    this.#claimed.add(home);
    for (const { address, shallow } of sourceReads(home)) {
      this.#requireLoaded(address.home);
      this.#transactionOf(address.home.replica).claim(
        address.home.document,
        address.path,
        shallow ? "shallow" : "deep",
      );
    }
  }

  #abandon(wait: Wait): never {
    this.abandonedFor ??= wait;
    throw ABANDONED;
  }

  // Writing --------------------------------------------------------------------------------------------------------------

  set(address: Address, value: unknown): void {
    if (address.parent !== null) this.#bring(address.parent, true);
    this.#transactionOf(address.home.replica).write(address.document, address.path, value);
  }

  remove(address: Address): void {
    this.#bring(address.parent ?? address, true);
    this.#transactionOf(address.home.replica).remove(address.document, address.path);
  }

  append(address: Address, items: readonly unknown[]): void {
    const value = this.read(address, true);
    if (value === undefined) this.set(address, items);
    else this.splice(address, Array.isArray(value) ? value.length : 0, 0, items);
  }

  splice(address: Address, index: number, remove: number, insert: readonly unknown[]): void {
    this.#bring(address, true);
    this.#transactionOf(address.home.replica).splice(address.document, address.path, index, remove, insert);
  }

  #transactionOf(replica: Replica): Transaction {
    const known = this.#known(replica);
    if (known !== undefined) return known;
    const transaction = replica.transaction();
    this.#others ??= new Map();
    this.#others.set(replica, transaction);
    return transaction;
  }

  #known(replica: Replica): Transaction | undefined {
    return replica === this.replica ? this.transaction : this.#others?.get(replica);
  }
}

function over({ stream }: Send): StreamError {
  return new StreamError(
    "STREAM_HANDLING_OVER",
    `the handling of ${stream} is over; await everything before the handler returns`,
  );
}

const NONE: readonly never[] = [];

/** Of a transaction that was not there. */
const UNWRITTEN: TransactionMark = { operations: NONE, extras: undefined };
