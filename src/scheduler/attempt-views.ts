/** The part of the scheduler that attempts use (`work/attempt.ts`): computed values and plain code. It has no state. */
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt, Home, Place, PlaceRead, Views } from "../work/attempt.ts";
import { labelSeen } from "./address-label.ts";
import { type ClosureParts, isCurrent } from "./closure.ts";
import { isDerived, sourceReads } from "./graph-walk.ts";
import type { Address, DocumentIndex } from "./node.ts";
import type { Turns } from "./turns.ts";

/** Every `Home` and `Place` comes from the scheduler, so the casts are safe. */
export class AttemptViews implements Views {
  readonly #parts: ClosureParts & { readonly turns: Turns };

  constructor(parts: ClosureParts & { readonly turns: Turns }) {
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
    return labelSeen(place as Address, shallow);
  }
}
