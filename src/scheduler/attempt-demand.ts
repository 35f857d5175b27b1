/**
 * The demand of an attempt for computed values: brings them up to date before it reads them. Nodes may run in the middle of the attempt, since its writes are
 * buffered. SPEC: R28, R29.
 */
import type { Replica } from "../store/replica.ts";
import type { Demand, Place } from "../work/attempt.ts";
import type { Address } from "./address.ts";
import { Closure, type ClosureParts } from "./closure.ts";

/** Begins a pass in which every node may run as often as it may in one. */
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
    // No node may run in the middle of another.
    if (runner.current !== null) return false;
    // An attempt is a change from outside. Not while asynchronous runs are awaited: it may belong to one of them, and runs that set off
    // each other have to be detected.
    if (runner.awaited.size === 0) work.fresh(address.home.replica);
    return this.#closure.require(address, shallow);
  }

  release(): void {
    this.#closure.release();
  }
}
