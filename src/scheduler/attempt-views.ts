/** The part of the scheduler that attempts use (`work/attempt.ts`): computed values and plain code. It has no state. */
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt, Demand, Home, Place, PlaceRead, Views } from "../work/attempt.ts";
import { labelSeen } from "./address-label.ts";
import { Closure, type ClosureParts, isCurrent } from "./closure.ts";
import { isDerived, sourceReads } from "./graph-walk.ts";
import type { DocumentIndex, NodeAddress } from "./node.ts";
import type { WriteTurns } from "./turns.ts";

/** Every `Home` and `Place` comes from the scheduler, so the casts are safe. */
export class AttemptViews implements Views {
  readonly #parts: ClosureParts & { readonly turns: WriteTurns };

  constructor(parts: ClosureParts & { readonly turns: WriteTurns }) {
    this.#parts = parts;
  }

  get attempt(): Attempt | null {
    return this.#parts.runner.attempt;
  }

  set attempt(attempt: Attempt | null) {
    this.#parts.runner.attempt = attempt;
  }

  seal(replica: Replica): void {
    this.#parts.turns.seal(replica);
  }

  isDerived(home: Home): boolean {
    return isDerived(home as DocumentIndex);
  }

  isCurrent(home: Home): boolean {
    return isCurrent(this.#parts, home as DocumentIndex);
  }

  sourcesOf(home: Home): Iterable<PlaceRead> {
    return sourceReads(home as DocumentIndex);
  }

  goesOn(attempt: Attempt): void {
    this.#parts.runner.escapes.add(attempt);
  }

  labelSeen(place: Place, shallow: boolean): Label {
    return labelSeen(place as NodeAddress, shallow);
  }
}

/** Begins a pass with a new run budget for every node. */
interface FreshPasses {
  fresh(replica: Replica): void;
}

/**
 * The demand of an attempt for computed values: brings them up to date before the attempt reads them. Nodes may run
 * during an attempt, since its writes are buffered. SPEC: R28, R29.
 */
export class AttemptDemand implements Demand {
  readonly #parts: ClosureParts & { readonly work: FreshPasses };
  readonly #closure: Closure;

  constructor(parts: ClosureParts & { readonly work: FreshPasses }, name: string) {
    this.#parts = parts;
    this.#closure = new Closure(parts, name, { waitsForUnsettling: true });
  }

  require(place: Place, shallow: boolean): boolean {
    const address = place as NodeAddress;
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
