/**
 * Cells with a schema that checks reads too: a stored value of an older shape is migrated when it is read, and stored
 * in the new shape by the next write. Without `migrate`, an old value is an error. Values are immutable, so each is
 * checked once. SPEC: R100, R101.
 */
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { admit, handOut, notAdmitted } from "../store/admit.ts";
import { Cell, type ListCell, type OwnOptions } from "./cell.ts";
import type { LinkTargets } from "./links.ts";
import { requireValid, SchemaError, type StandardSchema } from "./schema.ts";
import type { Below, KeyOf } from "./value-types.ts";

/** Converts a stored value that the schema rejects. */
export type Migrate<T> = (old: unknown) => T;

/** A schema with the migration of older values. */
class Shape<T> {
  readonly #schema: StandardSchema;
  readonly #migrate: Migrate<T> | undefined;
  /** Current values by the stored ones. */
  readonly #current = new WeakMap<object, T>();

  constructor(schema: StandardSchema, migrate: Migrate<T> | undefined) {
    this.#schema = schema;
    this.#migrate = migrate;
  }

  get migrates(): boolean {
    return this.#migrate !== undefined;
  }

  current(value: T, place: { toString(): string }): T {
    if (typeof value !== "object" || value === null) return this.#make(value, place);
    const known = this.#current.get(value);
    if (known !== undefined) return known;
    const made = this.#make(value, place);
    this.#current.set(value, made);
    return made;
  }

  #make(value: T, place: { toString(): string }): T {
    const problem = this.#problem(value, place);
    if (problem === undefined) return value;
    if (this.#migrate === undefined)
      throw new SchemaError(`${place} holds a value of another shape; give its cell { migrate }: ${problem.message}`);
    const made = this.#migrate(value);
    const wrong = this.#problem(made, place);
    if (wrong !== undefined)
      throw new SchemaError(`migrate of ${place} gave a value that the schema rejects: ${wrong.message}`);
    try {
      return handOut(admit(made, undefined)) as T;
    } catch (error) {
      throw notAdmitted(error, place);
    }
  }

  #problem(value: unknown, place: { toString(): string }): SchemaError | undefined {
    try {
      requireValid(this.#schema, value, String(place));
      return undefined;
    } catch (error) {
      // An error inside the schema is a bug, not a result of the check.
      if (error instanceof SchemaError) return error;
      throw error;
    }
  }
}

export class ShapedCell<out T> extends Cell<T> {
  readonly #shape: Shape<unknown>;

  constructor(address: NodeAddress, targets: LinkTargets, options: OwnOptions<T>, migrate: Migrate<T> | undefined) {
    super(address, targets, options);
    this.#shape = new Shape(options.schema as StandardSchema, migrate);
  }

  override get(): T {
    const value = super.get();
    return value === undefined || value === this.default ? value : (this.#shape.current(value, this) as T);
  }

  /** Writes the value in its current shape, before a part of it is written. */
  writeCurrent(): void {
    if (!this.#shape.migrates || !this.isLoaded) return;
    const current = this.get();
    if (current !== super.get() && current !== undefined) super.set(current);
  }

  override keys(): readonly string[] {
    const value: unknown = this.#shape.migrates ? this.get() : undefined;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : super.keys();
  }

  override get length(): number {
    const value: unknown = this.#shape.migrates ? this.get() : undefined;
    return Array.isArray(value) ? value.length : super.length;
  }

  override push<Element>(this: ListCell<Element>, ...items: NoInfer<Element>[]): void {
    (this as ShapedCell<readonly Element[] | undefined>).writeCurrent();
    const write = Cell.prototype.push as (this: ListCell<Element>, ...items: Element[]) => void;
    write.apply(this, items);
  }

  override splice<Element>(this: ListCell<Element>, index: number, remove: number, ...items: NoInfer<Element>[]): void {
    (this as ShapedCell<readonly Element[] | undefined>).writeCurrent();
    const write = Cell.prototype.splice as (this: ListCell<Element>, ...parameters: unknown[]) => void;
    write.apply(this, [index, remove, ...items]);
  }

  override key<Value, K extends KeyOf<Value>>(this: ShapedCell<Value>, key: K): Cell<Below<Value, K>> {
    if (!this.#shape.migrates) return Cell.prototype.key.call(this, key as never) as Cell<Below<Value, K>>;
    return new ShapedPart<Below<Value, K>>(this, [String(key)], this.targets);
  }
}

/** A place in a cell that migrates: read from the current shape of the whole. */
class ShapedPart<out T> extends Cell<T> {
  readonly #whole: ShapedCell<unknown>;
  readonly #path: Path;

  constructor(whole: ShapedCell<unknown>, path: Path, targets: LinkTargets) {
    super(whole.address.at(path), targets, whole.default === undefined ? {} : { above: whole });
    this.#whole = whole;
    this.#path = path;
  }

  override get(): T {
    const whole = this.#whole.get();
    return (whole === undefined ? undefined : getAt(whole as Json, this.#path)) as T;
  }

  override set(value: T): void {
    this.#whole.writeCurrent();
    super.set(value);
  }

  override delete(): void {
    this.#whole.writeCurrent();
    super.delete();
  }

  override push<Element>(this: ListCell<Element>, ...items: NoInfer<Element>[]): void {
    (this as ShapedPart<readonly Element[] | undefined>).#whole.writeCurrent();
    const write = Cell.prototype.push as (this: ListCell<Element>, ...items: Element[]) => void;
    write.apply(this, items);
  }

  override splice<Element>(this: ListCell<Element>, index: number, remove: number, ...items: NoInfer<Element>[]): void {
    (this as ShapedPart<readonly Element[] | undefined>).#whole.writeCurrent();
    const write = Cell.prototype.splice as (this: ListCell<Element>, ...parameters: unknown[]) => void;
    write.apply(this, [index, remove, ...items]);
  }

  override key<Value, K extends KeyOf<Value>>(this: ShapedPart<Value>, key: K): Cell<Below<Value, K>> {
    return new ShapedPart<Below<Value, K>>(this.#whole, [...this.#path, String(key)], this.targets);
  }
}
