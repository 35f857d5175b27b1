/**
 * A place in a document that somebody has in his hand: what a cell and a stream are. It holds no value, and it does not hold its document
 * either: one that only places lead to is dropped when memory is short (decision 0006), and the first use after that finds the place
 * again, like a place in a document that was never here.
 */
import { INSPECT } from "../message/inspect.ts";
import type { Json } from "../message/json.ts";
import type { Address } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { linkTo } from "../store/document.ts";
import type { LinkTargets } from "./links.ts";

export class Place {
  /** Undefined until somebody asks where it is. */
  #address: Address | undefined;
  protected readonly targets: LinkTargets;
  /** That of the targets, one step nearer: every read and every write goes there. */
  protected readonly scheduler: Scheduler;

  constructor(address: Address | undefined, targets: LinkTargets) {
    this.#address = address;
    this.targets = targets;
    this.scheduler = targets.scheduler;
  }

  /** Good until whoever asks lets go of the thread. */
  get address(): Address {
    const address = this.#address;
    return address === undefined || address.gone ? this.#find() : address;
  }

  #find(): Address {
    const known = this.#address ?? this.locate();
    const address = known.gone ? this.foundAgain(this.scheduler.again(known)) : known;
    this.#address = address;
    return address;
  }

  /** Where it is; asked once, of a place that was made without an address. */
  protected locate(): Address {
    throw new Error("a place is made with its address");
  }

  /** Its document was dropped and is looked up anew. */
  protected foundAgain(address: Address): Address {
    return address;
  }

  /** A value that points here; written into a cell, reads there lead here. */
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
