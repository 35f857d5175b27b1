/**
 * One run of one node: the cursor over its registered reads, its side-writes, its label. The runner keeps one object
 * per depth of nesting and reuses it, so that a run allocates no memory. An awaited run belongs to its node until it
 * has ended. Code that needs data of a run after its end copies the data. Functions get a `RunHandle` instead.
 */

import type { Json } from "../message/json.ts";
import type { Label } from "../store/label.ts";
import { causesIn } from "./causes.ts";
import type { Edge, NodeAddress, RunHandle, SchedulerNode } from "./node.ts";
import type { WriteUnit } from "./write-unit.ts";

export class Run {
  node: SchedulerNode;
  /** Unique per run; addresses remember it. */
  id: number;
  /** The label of its reads so far and of its captures (§10). */
  label: Label;
  /** The last registered read that this run has repeated or added; null before the first. */
  tail: Edge | null = null;
  /** A read was interrupted: the run starts over, even if its code caught the signal. */
  isAbandoned = false;
  /** It has read a document that is not loaded, or an output that waits for one. */
  isEarly = false;
  /** It has ended: reads through it register no edge. */
  isOver = false;
  /** Side-writes, once there are any; null after the run. */
  unit: WriteUnit | null = null;
  /** The second run of the idempotency check: without lasting effect. */
  readonly rehearsal: boolean;

  constructor(node: SchedulerNode, id: number, rehearsal = false) {
    this.node = node;
    this.id = id;
    this.label = node.label;
    this.rehearsal = rehearsal;
  }

  /** Reuses the object for the next run. */
  begin(node: SchedulerNode, id: number): void {
    this.node = node;
    this.id = id;
    this.label = node.label;
    this.tail = null;
    this.isAbandoned = false;
    this.isEarly = false;
  }

  /**
   * Whether a deep read repeats one of this run, or the next read of the last run; then it is logged, and the document
   * has the value. All other reads go to `run-reads.ts`. This function calls no other, so that the engine always
   * inlines it (`docs/decisions/0006`).
   */
  repeats(address: NodeAddress): boolean {
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
  get causes(): readonly NodeAddress[] {
    return causesIn(this.node.lastReason);
  }
}

/** The part of the runner that a handle uses. */
export interface RunHome {
  labelOf(handle: RunHandle): Label;
  readAs(handle: RunHandle, address: NodeAddress, shallow: boolean): Json | undefined;
  within<T>(handle: RunHandle, code: () => T): T;
}

/**
 * The argument of a node's function. A handle belongs to its node and refers to the node's present run; between runs
 * its reads register no edge.
 */
export class NodeRunHandle implements RunHandle {
  readonly node: SchedulerNode;
  readonly #home: RunHome;

  constructor(home: RunHome, node: SchedulerNode) {
    this.#home = home;
    this.node = node;
  }

  get causes(): readonly NodeAddress[] {
    return causesIn(this.node.lastReason);
  }

  get label(): Label {
    return this.#home.labelOf(this);
  }

  within<T>(code: () => T): T {
    return this.#home.within(this, code);
  }

  read(address: NodeAddress, shallow = false): Json | undefined {
    return this.#home.readAs(this, address, shallow);
  }
}
