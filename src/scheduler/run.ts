/**
 * One run of one node: the cursor over its registered reads, its side-writes, its reasons. The node's function gets it as its
 * handle; synchronous code need not use it, since reads find the current run by themselves. What comes after an await has lost
 * that context and takes it up again with `within`.
 */
import { NESTED_RUNS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Label } from "../store/label.ts";
import type { Address } from "./address.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import type { WriteUnit } from "./write-unit.ts";

/** What a run asks of the runner. */
export interface RunHome {
  /** The run whose synchronous part is executing. */
  readonly current: Run | null;
  /** Runs inside runs, now. */
  readonly depth: number;
  readAs(run: Run, address: Address, shallow: boolean): Json | undefined;
  within<T>(run: Run, code: () => T): T;
}

export class Run {
  readonly node: SchedulerNode;
  /** Unique per run; addresses remember it. */
  readonly id: number;
  /** The addresses whose changes caused it (I8). */
  readonly causes: readonly Address[];
  /** What it has read so far, and was made of, is labelled with (§10). */
  label: Label;
  /** The last registered read that this run has confirmed or made; null before the first. */
  tail: Edge | null = null;
  /** It has ended: whoever still holds it registers no more reads. */
  isOver = false;
  /** Side-writes, once there are any. */
  unit: WriteUnit | null = null;
  /** Looks but leaves no trace: the idempotency check's second run. */
  readonly rehearsal: boolean;
  readonly #home: RunHome;

  constructor(home: RunHome, node: SchedulerNode, id: number, causes: readonly Address[], rehearsal: boolean) {
    this.#home = home;
    this.node = node;
    this.id = id;
    this.causes = causes;
    this.rehearsal = rehearsal;
    this.label = node.label;
  }

  /**
   * Whether others may run inside it, now: it has written nothing that they would see, it is not nested too deeply, and its code is
   * what executes. A read through the handle after an await, outside of `within`, comes from nowhere.
   */
  get mayNest(): boolean {
    if (this.unit !== null && !this.unit.isEmpty) return false;
    return this.#home.depth < NESTED_RUNS_MAX && this.#home.current === this;
  }

  /**
   * Runs synchronous code as part of this run: its reads are registered, its writes are one commit. Not for code that awaits; each
   * stretch between two awaits needs its own.
   */
  within<T>(code: () => T): T {
    return this.#home.within(this, code);
  }

  /** A logged read, for code that runs after an await. */
  read(address: Address, shallow = false): Json | undefined {
    return this.#home.readAs(this, address, shallow);
  }
}
