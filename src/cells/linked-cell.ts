/**
 * Cells that lead to what is made of links which nobody has put there by hand: the output of a list operation, the result of a piece, its
 * inputs. Their types say what the links lead to, and so do their reads. A link that somebody has put into a value is a value, and
 * stays one there; `key` follows it. SPEC: R25, P1, P2.
 */
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import type { Address } from "../scheduler/node.ts";
import { asLink } from "../store/document.ts";
import { Cell, type OwnOptions } from "./cell.ts";
import { followLinks, type LinkTargets } from "./links.ts";
import type { Below, KeyOf } from "./value-types.ts";

/** Leads by a link to anything: what `ifElse` has chosen, an input, a part of a result. */
export class LinkedCell<T> extends Cell<T> {
  /** The cell that the link stands for, where that is known; else there may be one that reads what lies at the end of the links. */
  readonly #standsFor: () => Cell<unknown> | undefined;

  constructor(address: Address, targets: LinkTargets, standsFor: () => Cell<unknown> | undefined = () => undefined) {
    super(address, targets);
    this.#standsFor = standsFor;
  }

  override get(): T {
    const value = super.get();
    // A value without parts is made of no links. In place of no value there may be a default, which only its cell knows.
    if (value !== undefined && (typeof value !== "object" || value === null)) return value;
    const reader = this.#standsFor() ?? this.targets.readerOf(followLinks(this.address, this.targets));
    return reader === undefined ? value : (reader.get() as T);
  }

  override key<Value, K extends KeyOf<Value>>(this: LinkedCell<Value>, key: K): Cell<Below<Value, K>> {
    return new LinkedCell(this.address.child(String(key)), this.targets, () => this.#standsFor()?.key(key as never));
  }
}

/** What is known of a place in a record: who reads what its link leads to, or that the link is all there is to see. */
export type RecordPart = Cell<unknown> | "link" | undefined;

/** A record in which links stand for values: the inputs of a piece, and its result. */
export class LinkedRecord<T> extends Cell<T> {
  readonly #part: (name: string) => RecordPart;

  constructor(address: Address, targets: LinkTargets, part: (name: string) => RecordPart, options: OwnOptions<T> = {}) {
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

  /** Replaces the entries that are others then: a link whose value is left as it is stays. */
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
