/**
 * What a transaction needs of the scheduler that plain code opens on a space and keeps across awaits: where things lie, and that what it reads is what
 * it will be committed on. It holds nothing; the demand that it gives out is its taker's.
 */
import type { DocumentRef } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import type { Address } from "./address.ts";
import { Closure } from "./closure.ts";
import type { Components } from "./components.ts";

export class TransactionReads {
  readonly #components: Components;
  readonly #replica: Replica;

  constructor(components: Components, replica: Replica) {
    this.#components = components;
    this.#replica = replica;
  }

  get space(): string {
    return this.#replica.space;
  }

  /** The address of a document's root. */
  addressOf(ref: DocumentRef): Address {
    return this.#components.documents.root(this.#replica, ref);
  }

  /** Commits what plain code has written so far: what comes after it would find it changed. */
  sealTurn(): void {
    this.#components.turns.seal(this.#replica);
  }

  /** Code of a node, a handler or a transaction runs, in whose midst no node may run. */
  get isBusy(): boolean {
    const { runner, turns } = this.#components;
    return runner.current !== null || runner.active !== null || turns.isTransacting;
  }

  /** A demand for what the transaction reads that nodes write. */
  closure(): Closure {
    return new Closure(this.#components.reading, "a transaction", { waitsForUnsettling: true });
  }

  /**
   * A transaction is news from outside, like a send: what it makes run may run as often as in a pass of its own. Not where asynchronous runs are under way: it
   * may be one of theirs, and those that make each other run have to be found out.
   */
  refresh(): void {
    const { runner, settle } = this.#components;
    if (!this.isBusy && runner.awaited.size === 0) settle.fresh(this.#replica);
  }
}
