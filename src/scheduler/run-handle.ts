/**
 * What a node's function is given: the way back to its run. Synchronous code need not use it, since reads find the current run by
 * themselves; what comes after an await has lost that context and takes it up again with `within`. A handle is of its node, and means
 * the run that the node is in; between two runs it reads without registering anything.
 */
import type { Json } from "../message/json.ts";
import type { Label } from "../store/label.ts";
import type { Address } from "./address.ts";
import type { SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";

/** What a handle asks of the runner. */
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

  /** What the run has read so far, and was made of, is labelled with (§10). */
  get label(): Label {
    return this.#home.labelOf(this);
  }

  /**
   * Runs synchronous code as part of the run: its reads are registered, its writes are one commit. Not for code that awaits; each
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
