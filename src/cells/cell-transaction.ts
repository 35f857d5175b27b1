/**
 * A transaction over cells that lives across awaits: an explicit handle, since what runs after an await has no context. Computed values show what they were
 * before its writes, and it rests on what they are computed from. One that is not up to date is brought there by reading it; where that has to wait, reading
 * it is refused, and `upToDate` waits.
 */

import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { AWAITED_WINDOW_MS, LINK_HOPS_MAX, READY_PAUSE_MS } from "../limits.ts";
import { INSPECT } from "../message/inspect.ts";
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import type { Address, DocumentIndex } from "../scheduler/address.ts";
import type { Closure } from "../scheduler/closure.ts";
import { ComputedError, requireNotComputed } from "../scheduler/computed-error.ts";
import { isDerived, sourceReads } from "../scheduler/graph-walk.ts";
import type { TransactionReads } from "../scheduler/transaction-reads.ts";
import { handOut } from "../store/admit.ts";
import { narrowed } from "../store/clearance.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { asLink, type DocumentRef } from "../store/document.ts";
import { isWithin, join, type Label, labelOf, labelOfRead, PUBLIC } from "../store/label.ts";
import { refusal, requireTransactionWritable } from "../store/label-checks.ts";
import type { Transaction } from "../store/transaction.ts";
import type { Cell } from "./cell.ts";
import { tooManyHops } from "./links.ts";

export interface BeginOptions {
  /** What the transaction may know; without one, everything. */
  readonly clearance?: readonly string[];
  /** What it knows from the start: that of the message which it handles. */
  readonly label?: Label;
}

export class CellTransaction implements Disposable {
  readonly transaction: Transaction;
  readonly #space: string;
  readonly #reads: TransactionReads;
  readonly #clearance: Label | undefined;
  #label: Label;
  #closure: Closure | undefined;
  /** Read before it was up to date, and whether only shallow: everything that follows from it is nothing. */
  #behind: { readonly address: Address; readonly shallow: boolean } | undefined;

  constructor(transaction: Transaction, reads: TransactionReads, { clearance, label = PUBLIC }: BeginOptions = {}) {
    this.transaction = transaction;
    this.#space = reads.space;
    this.#reads = reads;
    this.#clearance = narrowed(clearance === undefined ? undefined : labelOf(clearance));
    this.#label = label;
  }

  /** What it has read so far, and began with, is labelled with. */
  get label(): Label {
    return this.#label;
  }

  /** The value as this transaction sees it, its own writes included. */
  get<T>(cell: Cell<T>): T {
    const value = cell.follow(this.#read(cell, "deep") as T, (part) => this.get(part));
    return (value === undefined ? this.#standIn(cell) : value) as T;
  }

  #read(cell: Cell<unknown>, depth: "deep" | "shallow"): Json | undefined {
    const { home, path } = this.#resolve(cell, true);
    const shallow = depth === "shallow";
    if (!isDerived(home)) {
      const value = this.transaction.read(home.document, path, depth);
      this.#look(cell, home.document, path, shallow);
      return value;
    }
    const address = home.root.at(path);
    this.#rely(address, shallow);
    this.#look(cell, home.document, path, shallow);
    return handOut(address.value);
  }

  /** Brings what is computed up to date, and rests on what it is computed from. */
  #rely(address: Address, shallow: boolean): void {
    this.#bring(address, shallow);
    for (const source of sourceReads(address.home)) this.#claim(source.address, source.shallow);
  }

  /** Nodes may run in between: what the transaction has written they do not see. */
  #bring(address: Address, shallow: boolean): void {
    this.#closure ??= this.#reads.closure();
    if (this.#closure.shows(address, shallow)) return;
    // Each time: what plain code has written since the last read is news too.
    this.#reads.refresh();
    if (!this.#reads.isBusy && this.#closure.require(address, shallow)) return;
    this.#behind ??= { address, shallow };
    throw notUpToDate(address);
  }

  /** A computed value is as good as what it was computed from; what lies in other spaces no commit of this one can rest on. */
  #claim({ home, path }: Address, shallow: boolean): void {
    if (home.replica.space !== this.#space) return;
    this.transaction.claim(home.document, path, shallow ? "shallow" : "deep");
  }

  /** It has read a computed value that was not up to date, and was refused. */
  get isBehind(): boolean {
    return this.#behind !== undefined;
  }

  /** Resolves when what it was refused is up to date, for a transaction that does the same again. */
  async upToDate(host: Host): Promise<void> {
    const until = host.monotonic() + AWAITED_WINDOW_MS;
    const behind = this.#behind;
    while (behind !== undefined && !this.#closure?.require(behind.address, behind.shallow)) {
      if (host.monotonic() >= until) throw notUpToDate(behind.address);
      await pause(host, READY_PAUSE_MS);
    }
  }

  #standIn<T>(cell: Cell<T>): T | undefined {
    const { above } = cell;
    if (above === undefined) return cell.default;
    return this.#read(above, "shallow") === undefined ? (above.partOfDefault(cell.address.path) as T) : undefined;
  }

  set<T>(cell: Cell<T>, value: T): void {
    cell.requireWritable(value);
    if (cell.above) this.#writeDefault(cell.above);
    const { home, path } = this.#writable(cell);
    this.transaction.write(home.document, path, value);
  }

  /** What lies below a default can be written once the default lies there; that rests on there being nothing. */
  #writeDefault(cell: Cell<unknown>): void {
    const { home, path } = this.#resolve(cell, true);
    const { document } = home;
    requireNotComputed(home.root);
    if (this.transaction.glance(document, path) === undefined && this.transaction.read(document, path) === undefined)
      this.transaction.write(document, path, cell.default);
  }

  delete(cell: Cell<unknown>): void {
    const { home, path } = this.#writable(cell);
    this.transaction.remove(home.document, path);
  }

  /** Applies everything at once; resolves when it is durable, or was rejected. */
  commit(): Promise<CommitOutcome> {
    if (this.#behind !== undefined) throw notUpToDate(this.#behind.address);
    requireTransactionWritable(this.#label, this.transaction, "a transaction");
    this.#release();
    return this.transaction.commit().outcome;
  }

  abort(): void {
    this.#release();
    this.transaction.abort();
  }

  #release(): void {
    this.#closure?.release();
    this.#closure = undefined;
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  [INSPECT](): string {
    return `CellTransaction of space ${this.#space}`;
  }

  /** Joins what a read saw; refuses what is above the clearance. */
  #look(what: { toString(): string }, ref: DocumentRef, path: Path, shallow: boolean): void {
    const { labels, derived } = this.transaction.document(ref);
    if (labels === undefined) return;
    const label = labelOfRead(labels.places, path, shallow);
    if (this.#clearance === undefined || isWithin(label, this.#clearance)) {
      this.#label = join(this.#label, label);
      return;
    }
    // As a run that is refused (`information-flow.ts`).
    if (derived) this.#label = join(this.#label, this.#clearance);
    throw refusal("a transaction", what);
  }

  /** Where a write to the cell goes. */
  #writable(cell: Cell<unknown>): Place {
    const place = this.#resolve(cell, false);
    requireNotComputed(place.home.root);
    return place;
  }

  /** Follows links along the path and, for a read, at its end. */
  #resolve(cell: Cell<unknown>, last: boolean): Place {
    this.#reads.sealTurn();
    let { home, path }: Place = cell.address;
    if (home.replica.space !== this.#space) {
      throw new Error(`a transaction is of space "${this.#space}" alone, and ${cell} is in "${home.replica.space}"`);
    }
    for (let hops = 0; hops <= LINK_HOPS_MAX; hops++) {
      const found = this.#firstLink(home, path, last);
      if (!found) return { home, path };
      home = this.#reads.addressOf(found.ref).home;
      path = found.path;
    }
    throw tooManyHops(cell);
  }

  #firstLink(home: DocumentIndex, path: Path, last: boolean): { ref: DocumentRef; path: Path } | undefined {
    const steps = last ? path.length : path.length - 1;
    const { document } = home;
    const isComputed = isDerived(home);
    if (isComputed && steps >= 0) this.#rely(home.root.at(path.slice(0, steps)), true);
    for (let length = 0; length <= steps; length++) {
      const way = path.slice(0, length);
      const link = asLink(this.transaction.glance(document, way));
      if (!link) continue;
      if (!isComputed) this.transaction.read(document, way, "shallow");
      this.#look(link.id, document, way, true);
      if (link.space !== undefined && link.space !== this.#space) {
        throw new Error(`a transaction is of space "${this.#space}" alone, and a link leads to "${link.space}"`);
      }
      return { ref: link, path: [...link.path, ...path.slice(length)] };
    }
    return undefined;
  }
}

/** A place in a document. */
interface Place {
  readonly home: DocumentIndex;
  readonly path: Path;
}

function notUpToDate(address: Address): ComputedError {
  return new ComputedError(
    "COMPUTED_BEHIND",
    `${address} is not up to date: what it is computed from waits for a gate, a load or an asynchronous run; pull it first, and begin again`,
  );
}
