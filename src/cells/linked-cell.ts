/**
 * Cells of values that consist of links which the library has written: the output of a list operation, the result of a
 * piece, its inputs. Their types and their reads are those of the targets. A link that user code has written into a
 * value is data and stays a link there; `key` follows it. SPEC: R25, P1, P2.
 */
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { asLink } from "../store/document.ts";
import { Cell, type OwnOptions } from "./cell.ts";
import { followLinks, type LinkTargets } from "./links.ts";
import type { Below, KeyOf } from "./value-types.ts";

/** A link to any value: the choice of `ifElse`, an input, a part of a result. */
export class LinkedCell<T> extends Cell<T> {
  /** The target cell of the link, if known; else `readerOf` may find one at the end of the links. */
  readonly #standsFor: () => Cell<unknown> | undefined;

  constructor(
    address: NodeAddress,
    targets: LinkTargets,
    standsFor: () => Cell<unknown> | undefined = () => undefined,
  ) {
    super(address, targets);
    this.#standsFor = standsFor;
  }

  override get(): T {
    const value = super.get();
    // A value without parts has no links. An absent value may have a default, which only its cell knows.
    if (value !== undefined && (typeof value !== "object" || value === null)) return value;
    const reader = this.#standsFor() ?? this.targets.readerOf(followLinks(this.address, this.targets));
    return reader === undefined ? value : (reader.get() as T);
  }

  override key<Value, K extends KeyOf<Value>>(this: LinkedCell<Value>, key: K): Cell<Below<Value, K>> {
    return new LinkedCell(this.address.child(String(key)), this.targets, () => this.#standsFor()?.key(key as never));
  }
}

/** A place in a record: the cell that reads the link's target, or `link` if readers get the link itself. */
export type RecordPart = Cell<unknown> | "link" | undefined;

/** A record with links in place of values: the inputs of a piece, and its result. */
export class LinkedRecord<T> extends Cell<T> {
  readonly #part: (name: string) => RecordPart;

  constructor(
    address: NodeAddress,
    targets: LinkTargets,
    part: (name: string) => RecordPart,
    options: OwnOptions<T> = {},
  ) {
    super(address, targets, options);
    this.#part = part;
  }

  override get(): T {
    const record = super.get();
    if (!isJsonObject(record as Json | undefined)) return record;
    const values = Object.entries(record as object).map(([name, value]) => [name, this.#follow(name, value as Json)]);
    return Object.freeze(Object.fromEntries(values.filter(([, value]) => value !== undefined)) as T);
  }

  #follow(name: string, value: Json): unknown {
    return this.#part(name) === "link" || asLink(value) === undefined ? value : this.key(name as never).get();
  }

  override key<Value, K extends KeyOf<Value>>(this: LinkedRecord<Value>, key: K): Cell<Below<Value, K>> {
    const name = String(key);
    const part = () => {
      const found = this.#part(name);
      return found === "link" ? undefined : found;
    };
    return new LinkedCell(this.address.child(name), this.targets, part);
  }

  /** Writes only entries that differ, so that the link of an unchanged value stays. */
  override update(change: (value: T) => T): void {
    const before = this.get();
    if (!isJsonObject(before as Json | undefined)) return super.update(change);
    const next = change(before);
    this.requireWritable(next);
    for (const name of Object.keys(before as object))
      if (!Object.hasOwn(next as object, name)) this.key(name as never).delete();
    for (const [name, value] of Object.entries(next as object)) {
      if (!Object.is(value, (before as JsonObject)[name])) this.key(name as never).set(value as never);
    }
  }
}
