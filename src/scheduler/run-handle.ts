/**
 * The argument of a node's function. A handle belongs to its node and refers to the node's present run; between runs
 * its reads register no edge.
 */
import type { Json } from "../message/json.ts";
import type { Label } from "../store/label.ts";
import { causesIn } from "./causes.ts";
import type { Address, RunHandle, SchedulerNode } from "./node.ts";

/** The part of the runner that a handle uses. */
export interface RunHome {
  labelOf(handle: RunHandle): Label;
  readAs(handle: RunHandle, address: Address, shallow: boolean): Json | undefined;
  within<T>(handle: RunHandle, code: () => T): T;
}

export class NodeRunHandle implements RunHandle {
  readonly node: SchedulerNode;
  readonly #home: RunHome;

  constructor(home: RunHome, node: SchedulerNode) {
    this.#home = home;
    this.node = node;
  }

  get causes(): readonly Address[] {
    return causesIn(this.node.lastReason);
  }

  get label(): Label {
    return this.#home.labelOf(this);
  }

  within<T>(code: () => T): T {
    return this.#home.within(this, code);
  }

  read(address: Address, shallow = false): Json | undefined {
    return this.#home.readAs(this, address, shallow);
  }
}
