/**
 * The argument of a node's function: access to its run. Synchronous code does not need it, since reads find the current
 * run. Code after an await has lost that context and restores it with `within`. A handle belongs to its node and refers
 * to the node's present run; between runs its reads register no edge.
 */
import type { Json } from "../message/json.ts";
import type { Label } from "../store/label.ts";
import type { Address } from "./address.ts";
import type { SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";

/** The part of the runner that a handle uses. */
export interface RunHome {
  labelOf(handle: RunHandle): Label;
  readAs(handle: RunHandle, address: Address, shallow: boolean): Json | undefined;
  within<T>(handle: RunHandle, code: () => T): T;
}

export class RunHandle {
  readonly node: SchedulerNode;
  /** The node's run, while it is awaited. */
  awaited: Run | null = null;
  readonly #home: RunHome;

  constructor(home: RunHome, node: SchedulerNode) {
    this.#home = home;
    this.node = node;
  }

  /** The addresses whose changes caused the run (I8). */
  get causes(): readonly Address[] {
    return this.node.lastCauses;
  }

  /** The label of the run's reads so far and of its captures (§10). */
  get label(): Label {
    return this.#home.labelOf(this);
  }

  /**
   * Runs synchronous code as part of the run: its reads are registered, its writes are one commit. Code between two
   * awaits needs a call of its own.
   */
  within<T>(code: () => T): T {
    return this.#home.within(this, code);
  }

  /** A logged read, for code that runs after an await. */
  read(address: Address, shallow = false): Json | undefined {
    return this.#home.readAs(this, address, shallow);
  }
}
