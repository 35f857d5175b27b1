/** Computed values and plain code, as attempts need them (`work/attempt.ts`). It holds nothing. */
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt, Home, Place, PlaceRead, Views } from "../work/attempt.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import { type ClosureParts, isCurrent } from "./closure.ts";
import { isDerived, sourceReads } from "./graph-walk.ts";
import type { Turns } from "./turns.ts";

/** Homes and places come from the scheduler, and so are its own. */
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

  labelSeen(place: Place, shallow: boolean): Label {
    return labelSeen(place as Address, shallow);
  }
}
