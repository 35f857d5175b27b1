/**
 * The demand of an attempt for computed values: brings them up to date before the attempt reads them. Nodes may run
 * during an attempt, since its writes are buffered. SPEC: R28, R29.
 */
import type { Replica } from "../store/replica.ts";
import type { Demand, Place } from "../work/attempt.ts";
import { Closure, type ClosureParts } from "./closure.ts";
import type { Address } from "./node.ts";

/** Begins a pass with a new run budget for every node. */
export interface FreshPasses {
  fresh(replica: Replica): void;
}

export class AttemptDemand implements Demand {
  readonly #parts: ClosureParts & { readonly work: FreshPasses };
  readonly #closure: Closure;

  constructor(parts: ClosureParts & { readonly work: FreshPasses }, name: string) {
    this.#parts = parts;
    this.#closure = new Closure(parts, name, { waitsForUnsettling: true });
  }

  require(place: Place, shallow: boolean): boolean {
    const address = place as Address;
    if (this.#closure.shows(address, shallow)) return true;
    const { runner, work } = this.#parts;
    // Runs do not nest.
    if (runner.current !== null) return false;
    // An attempt is a change from outside, so it gets a new pass. If an asynchronous run is awaited, the attempt may
    // belong to it, and the budget must stay so that loops are detected.
    if (runner.awaited.size === 0) work.fresh(address.home.replica);
    return this.#closure.require(address, shallow);
  }

  release(): void {
    this.#closure.release();
  }
}
