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

  /** A demand for what the transaction reads that nodes write. Undefined where code of a node, a handler or a transaction runs: nothing may run in between. */
  closure(): Closure | undefined {
    const { runner, turns, reading } = this.#components;
    const isBusy = runner.current !== null || runner.handling !== null || turns.isTransacting;
    return isBusy ? undefined : new Closure(reading, "a transaction");
  }
}
