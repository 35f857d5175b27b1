/**
 * The known events of one serial key of one subscription: those held here, in order, and earlier unsettled ones that
 * are not held here. Only the first one may be handled, only if no blocker precedes it, and only while no handler of
 * the key runs. SPEC: J64.
 */
import type { EventRun } from "./event-run.ts";

export class SerialLane {
  /** Subscription and key, by which `SerialOrder` finds it. */
  readonly name: string;
  /** Held here, ascending by id. */
  readonly runs: EventRun[] = [];
  /** Ids of unsettled events that are not held here. */
  readonly blockers = new Set<number>();
  /**
   * The run whose handler is at work. It need not be the first, nor be held any more: an earlier event may have been
   * requeued, or its lease lost. The first run then waits for this handler only, not for its settlement, so the two
   * cannot wait for each other.
   */
  inside: EventRun | undefined;

  constructor(name: string) {
    this.name = name;
  }

  add(run: EventRun): void {
    let at = this.runs.length;
    while (at > 0 && this.runs[at - 1]!.id > run.id) at--;
    this.runs.splice(at, 0, run);
  }

  remove(run: EventRun): void {
    const at = this.runs.indexOf(run);
    if (at >= 0) this.runs.splice(at, 1);
  }

  /** The run that may be handled now, if one may. */
  get first(): EventRun | undefined {
    const [first] = this.runs;
    if (first === undefined || this.inside !== undefined) return undefined;
    for (const id of this.blockers) if (id < first.id) return undefined;
    return first;
  }

  get isEmpty(): boolean {
    return this.runs.length === 0 && this.blockers.size === 0 && this.inside === undefined;
  }
}
