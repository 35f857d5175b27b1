/**
 * A reference to a place in a document: the base of cells and streams. It keeps neither the value nor the document in
 * memory. A document that only places refer to may be dropped (decision 0006); the next use of the place finds it
 * again, like a document that was never loaded.
 */
import { INSPECT } from "../message/inspect.ts";
import type { Json } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { linkTo } from "../store/document.ts";
import type { LinkTargets } from "./links.ts";

export class LazyPlace {
  /** Undefined until the first use. */
  #address: NodeAddress | undefined;
  protected readonly targets: LinkTargets;
  /** A copy of `targets.scheduler`, which saves a step in every read and write. */
  protected readonly scheduler: Scheduler;

  constructor(address: NodeAddress | undefined, targets: LinkTargets) {
    this.#address = address;
    this.targets = targets;
    this.scheduler = targets.scheduler;
  }

  /** Valid until the caller yields the thread. */
  get address(): NodeAddress {
    const address = this.#address;
    return address === undefined || address.gone ? this.#find() : address;
  }

  #find(): NodeAddress {
    const known = this.#address ?? this.locate();
    const address = known.gone ? this.foundAgain(this.scheduler.parts.documents.again(known)) : known;
    this.#address = address;
    return address;
  }

  /** Finds the address of a place that was made without one; called once. */
  protected locate(): NodeAddress {
    throw new Error("a place is made with its address");
  }

  /** Called when its document was dropped and is looked up again. */
  protected foundAgain(address: NodeAddress): NodeAddress {
    return address;
  }

  /** A link to this place. A read of a cell that holds it gives the value of this place. */
  asLink(): Json {
    const { home, path } = this.address;
    const { scope, id } = home.document;
    return linkTo({ space: home.replica.space, scope, id, path });
  }

  toString(): string {
    return String(this.address);
  }

  [INSPECT](): string {
    return `${this.constructor.name} ${this.#address}`;
  }
}
