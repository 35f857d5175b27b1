/**
 * One run of one node: the cursor over its registered reads, its side-writes, its label. The runner keeps one for each depth of nesting
 * and uses it again for the next run there, so that running makes nothing and looks at little; one that is awaited is the node's until
 * it has ended. Whoever must know of a run after that keeps what he needs of it. Functions get a `RunHandle` instead.
 */
import type { Label } from "../store/label.ts";
import type { Address } from "./address.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import type { WriteUnit } from "./write-unit.ts";

export class Run {
  node: SchedulerNode;
  /** Unique per run; addresses remember it. */
  id: number;
  /** What it has read so far, and was made of, is labelled with (§10). */
  label: Label;
  /** The last registered read that this run has confirmed or made; null before the first. */
  tail: Edge | null = null;
  /** One of its reads was interrupted: the run starts over, also where its code has caught that. */
  isAbandoned = false;
  /** It has read a document that is not known, or an output that waits for one. */
  isEarly = false;
  /** It has ended: a read through it registers no edge. */
  isOver = false;
  /** Side-writes, once there are any; none when it has ended. */
  unit: WriteUnit | null = null;
  /** Looks but leaves no trace: the idempotency check's second run. */
  readonly rehearsal: boolean;

  constructor(node: SchedulerNode, id: number, rehearsal = false) {
    this.node = node;
    this.id = id;
    this.label = node.label;
    this.rehearsal = rehearsal;
  }

  /** Serves as the next run. */
  begin(node: SchedulerNode, id: number): void {
    this.node = node;
    this.id = id;
    this.label = node.label;
    this.tail = null;
    this.isAbandoned = false;
    this.isEarly = false;
  }

  /**
   * Whether a read of all that lies there is one that the run has made already, or the one that came next in the last run too: then it is
   * made, and the value is what lies there. Everything else is for `run-reads.ts`. This calls nothing, so that the engine always
   * compiles it into the code that reads (`docs/decisions/0006`).
   */
  repeats(address: Address): boolean {
    const { document } = address;
    if (document.labels !== undefined || document.state !== "loaded") return false;
    if (address.deepRun === this.id) return true;
    const next = this.tail === null ? this.node.reads : this.tail.next;
    if (next === null || next.address !== address || next.shallow) return false;
    address.deepRun = this.id;
    this.tail = next;
    return true;
  }

  /** The addresses whose changes caused it (I8). */
  get causes(): readonly Address[] {
    return this.node.lastCauses;
  }
}
