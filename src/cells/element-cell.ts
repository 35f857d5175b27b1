/**
 * The cell of an element of a collection, or of a place in it: a write updates the indexes and totals too. SPEC: R93.
 */
import type { NodeAddress } from "../scheduler/node.ts";
import { Cell, type ListCell, type OwnOptions } from "./cell.ts";
import type { LinkTargets } from "./links.ts";
import type { Below, KeyOf } from "./value-types.ts";

/** How writes to an element are made. */
export interface ElementWrites<T> {
  /** Runs a write and updates indexes and totals, in one commit. */
  around(write: () => void): void;
  /** Throws for a whole element that cannot be indexed, before the write has to wait for a document. */
  check?(value: T): void;
}

export class ElementCell<out T> extends Cell<T> {
  readonly #writes: ElementWrites<T>;

  constructor(address: NodeAddress, targets: LinkTargets, writes: ElementWrites<T>, options?: OwnOptions<T>) {
    super(address, targets, options);
    this.#writes = writes;
  }

  override set(value: T): void {
    if (value !== undefined) this.requireWritable(value);
    this.#writes.check?.(value);
    this.#writes.around(() => super.set(value));
  }

  override update(change: (value: T) => T): void {
    this.#writes.around(() => super.set(change(this.get())));
  }

  override delete(): void {
    this.#writes.around(() => super.delete());
  }

  override key<Value, K extends KeyOf<Value>>(this: ElementCell<Value>, key: K): Cell<Below<Value, K>> {
    const { around } = this.#writes;
    return new ElementCell(this.address.child(String(key)), this.targets, { around });
  }

  override push<Element>(this: ListCell<Element>, ...items: NoInfer<Element>[]): void {
    const write = Cell.prototype.push as (this: ListCell<Element>, ...items: Element[]) => void;
    (this as ElementCell<unknown>).#writes.around(() => write.apply(this, items));
  }

  override splice<Element>(this: ListCell<Element>, index: number, remove: number, ...items: NoInfer<Element>[]): void {
    const write = Cell.prototype.splice as (this: ListCell<Element>, ...parameters: unknown[]) => void;
    (this as ElementCell<unknown>).#writes.around(() => write.apply(this, [index, remove, ...items]));
  }
}
