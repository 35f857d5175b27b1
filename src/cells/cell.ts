/**
 * A cell: a place in a document, with a type. Reading inside a computation or an effect makes it depend on exactly this
 * place; writing changes exactly this place. Cells are cheap and hold no value.
 */
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { getAt, type Path } from "../message/path.ts";
import type { NodeAddress, NodeSpec, RunHandle } from "../scheduler/node.ts";
import { admit, handOut, notAdmitted } from "../store/admit.ts";
import { labelOf } from "../store/label.ts";
import { ConfirmedCalls } from "./confirmed-calls.ts";
import { labelPlace } from "./labels.ts";
import { followLinks, type LinkTargets, readOn, readShape, readThrough, requireReady } from "./links.ts";
import { LazyPlace } from "./place.ts";
import { requireValid, type StandardSchema } from "./schema.ts";
import type { Below, KeyOf } from "./value-types.ts";

/** Options of a cell. */
export interface CellOptions<T> {
  /** Checks values that are written to the whole cell. */
  readonly schema?: StandardSchema<T> | undefined;
  /** Labels the cell with these names; see decision 0010. */
  readonly label?: readonly string[] | undefined;
}

export interface OwnOptions<T> extends CellOptions<T> {
  /** The initial value: a read gives it while there is no value, and a write below the cell begins with it. */
  readonly default?: T | undefined;
  /** The cell above this one that has a default. */
  readonly above?: Cell<unknown> | undefined;
}

/** Registers an effect in which `look` adds a value, and calls `act` with each value once it is confirmed. */
export function observeConfirmed<T>(
  targets: LinkTargets,
  spec: Omit<NodeSpec, "run">,
  look: (run: RunHandle, add: (value: T) => void) => unknown,
  act: (value: T) => unknown,
): () => void {
  const calls = new ConfirmedCalls<T>(targets.scheduler, act);
  const add = (value: T) => calls.add(value);
  const stop = targets.observe({ ...spec, run: (run) => look(run, add) });
  return () => {
    calls.cancel();
    stop();
  };
}

const LOADED: Seen = Object.freeze({ loaded: true });
const LOADING: Seen = Object.freeze({ loaded: false });

/** Shared by all cells without options: a program creates a cell for every place that it uses. */
const NO_OPTIONS: OwnOptions<never> = Object.freeze({});

/** A frozen copy of a default, so that later changes of the original have no effect. */
export function ownDefault<T>(value: T, id: string): T {
  try {
    return handOut(admit(value, undefined)) as T;
  } catch (error) {
    throw notAdmitted(error, `the default of "${id}"`);
  }
}

/** The part of an array that a splice replaces. A fraction or NaN is kept, and the write refuses it. */
function spliceRange(array: Json | undefined, index: number, remove: number): { start: number; count: number } {
  const isPlace = Number.isInteger(index) && Number.isInteger(remove);
  if (!Array.isArray(array) || !isPlace) return { start: index, count: remove };
  const start = index < 0 ? Math.max(array.length + index, 0) : Math.min(index, array.length);
  return { start, count: Math.max(0, Math.min(remove, array.length - start)) };
}

/** Options of `cell.sink`. */
export interface SinkOptions {
  /** Changes made by transactions of this group do not call the sink: a user's own edits. */
  readonly changeGroup?: string;
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  /** Labels that it may read; default all. Values with other labels are refused, and their changes do not run it. */
  readonly clearance?: readonly string[];
  /** Calls back also before all documents are loaded, with the default in place of missing values. Default false. */
  readonly whileLoading?: boolean;
  /**
   * True: called with a value when the store has confirmed the commits that it was read from, and never with one that
   * is rolled back. False: called at once. Default: the option `observe` of the space. Not with `whileLoading`.
   */
  readonly confirmed?: boolean;
}

export type CellSubscribeOptions = Omit<SinkOptions, "whileLoading" | "confirmed">;

/** How certain the value is that a sink is called with. */
export interface Seen {
  /** False only with `whileLoading`: a document that the value depends on is still to be loaded. */
  readonly loaded: boolean;
}

/** Options of `cell.pull`. */
export interface PullOptions {
  /** Labels that the caller may read; the promise is rejected if the value has others. */
  readonly clearance?: readonly string[];
}

/** A cell that holds an array, or has no value yet. */
export type ListCell<Element> = Cell<readonly Element[] | undefined>;

/** A typed place in a document: it is read, written and observed. */
export class Cell<out T = unknown> extends LazyPlace {
  readonly #options: OwnOptions<T>;

  constructor(address: NodeAddress | undefined, targets: LinkTargets, options: OwnOptions<T> = NO_OPTIONS) {
    super(address, targets);
    this.#options = options;
  }

  /** Declares the label again: the stored label of a dropped document is known only when it is loaded. */
  protected override foundAgain(address: NodeAddress): NodeAddress {
    const { label } = this.#options;
    if (label !== undefined) this.scheduler.parts.flow.declare(address, labelOf(label));
    return address;
  }

  /**
   * The current value, frozen; if there is none, the default or undefined. Follows links. In plain code a value that is
   * not loaded throws `NotReady`, or reads as absent, as the option `unloaded` of the space says.
   */
  get(): T {
    const { address } = this;
    const { scheduler } = this;
    const value = scheduler.repeats(address) ? address.value : scheduler.parts.runner.read(address);
    // A document that is a plain value contains no link.
    if (value === undefined || typeof value === "object" || address.parent !== null) return this.#found(address, value);
    return value as T;
  }

  /**
   * The value, without a dependency of the running computation or effect. While it is not loaded, the default or
   * undefined; see `isLoaded`.
   */
  peek(): T {
    return this.scheduler.untracked(() => this.get());
  }

  #found(address: NodeAddress, there: Json | undefined): T {
    const value = handOut(readOn(address, there, this.targets));
    if (value !== undefined) return value as T;
    requireReady(address, this.targets);
    return this.#standIn() as T;
  }

  /** The default; or this place in the default of the cell above, if that cell has no value. */
  #standIn(): T | undefined {
    const { default: own, above } = this.#options;
    if (above === undefined) return own;
    const place = followLinks(above.address, this.targets);
    // Shallow: only its existence matters.
    if (this.scheduler.parts.runner.read(place, true) !== undefined) return undefined;
    return above.partOfDefault(this.address.path) as T | undefined;
  }

  /** The value of the default at a place below this cell. */
  protected partOfDefault(path: Path): Json | undefined {
    return getAt(this.#options.default as Json, path.slice(this.address.level));
  }

  /** The keys of an object; none if there is no object. A reader runs again only if a key is added or removed. */
  keys(): readonly string[] {
    const shape = this.#shape();
    return typeof shape === "object" && shape !== null && !Array.isArray(shape) ? Object.keys(shape) : [];
  }

  /** The number of elements of an array; 0 if there is no array. A reader runs again only if it changes. */
  get length(): number {
    const shape = this.#shape();
    return Array.isArray(shape) ? shape.length : 0;
  }

  #shape(): unknown {
    const shape = readShape(this.address, this.targets);
    if (shape !== undefined) return shape;
    requireReady(this.address, this.targets);
    return this.#standIn();
  }

  /** Whether the document is loaded, so that reads give its value. Starts no load; see `pull`. */
  get isLoaded(): boolean {
    return followLinks(this.address, this.targets).document.isReadable;
  }

  /** The stored value, with links inside it as links. */
  getRaw(): Json | undefined {
    const value = handOut(readThrough(this.address, this.targets));
    if (value === undefined) requireReady(this.address, this.targets);
    return value;
  }

  /**
   * Replaces the value; `undefined` removes it. Links on the way are followed; a link at this place is replaced.
   */
  set(value: T): void {
    if (value === undefined) return this.delete();
    this.requireWritable(value);
    if (!this.targets.late.isEmpty && this.#isLate(false)) return this.#writeLate(() => this.set(value));
    this.scheduler.parts.runner.write(this.#begun(), value);
  }

  /** Replaces the value by the result of `change`, which is called again if a load finds that the document exists. */
  update(change: (value: T) => T): void {
    if (this.#isLate(true)) return this.#writeLate(() => this.update(change));
    const next = change(this.get());
    const place = followLinks(this.address, this.targets);
    if (this.scheduler.parts.runner.glance(place) === undefined) this.scheduler.parts.runner.restOn(place);
    this.set(next);
  }

  /** Removes the value; at the root of a document, the document. */
  delete(): void {
    if (this.#isLate(true)) return this.#writeLate(() => this.delete());
    this.scheduler.erase(this.#writable());
  }

  /** The cell below a key of an object or an index of an array. */
  key<Value, K extends KeyOf<Value>>(this: Cell<Value>, key: K): Cell<Below<Value, K>> {
    const address = this.address.child(String(key));
    const above = this.#options.default === undefined ? this.#options.above : (this as Cell<unknown>);
    return above === undefined ? new Cell(address, this.targets) : new Cell(address, this.targets, { above });
  }

  /** Adds elements at the end of an array; if there is none, to the default or to a new one. */
  push<Element>(this: ListCell<Element>, ...items: NoInfer<Element>[]): void {
    if (this.#isLate(true)) return this.#writeLate(() => this.push(...items));
    if (this.#options.default !== undefined) this.#writeDefault();
    this.scheduler.append(this.#begun(), items);
  }

  /** Replaces elements of an array. Positions are clamped as by `Array.prototype.splice`. */
  splice<Element>(this: ListCell<Element>, index: number, remove: number, ...items: NoInfer<Element>[]): void {
    if (!this.targets.late.isEmpty && this.#isLate(false))
      return this.#writeLate(() => this.splice(index, remove, ...items));
    if (this.#options.default !== undefined) this.#writeDefault();
    const place = this.#begun();
    const { start, count } = spliceRange(this.scheduler.parts.runner.glance(place), index, remove);
    this.scheduler.splice(place, start, count, items);
  }

  /**
   * Calls back with the value once it is loaded, and whenever it has changed, until the returned function is called. In
   * an app only with values that the store has confirmed. `sink` is the part below it, with more options.
   */
  subscribe(callback: (value: T) => unknown, options: CellSubscribeOptions = {}): () => void {
    return this.sink((value) => callback(value), {
      ...options,
      whileLoading: false,
      confirmed: this.targets.observesConfirmed,
    });
  }

  /** Calls back with the value once all its documents are loaded, and whenever it has changed, until cancelled. */
  sink(
    callback: (value: T, seen: Seen) => unknown,
    { whileLoading = false, confirmed = this.targets.observesConfirmed, ...options }: SinkOptions = {},
  ): () => void {
    const { default: own, above } = this.#options;
    const hasStandIn = own !== undefined || above !== undefined;
    const observed = { kind: "effect", id: `sink of ${this.address}`, ...options } as const;
    if (whileLoading) return this.targets.observe({ ...observed, run: this.#showing(callback), whileLoading: "show" });
    const call = (value: T) => callback(value, LOADED);
    if (confirmed) return observeConfirmed<T>(this.targets, observed, (_, add) => this.observed(add), call);
    const run = hasStandIn ? this.#unlessEqual(call) : () => this.observed(call);
    return this.targets.observe({ ...observed, run });
  }

  /** Calls back when the value changes, or becomes loaded. */
  #showing(callback: (value: T, seen: Seen) => unknown): () => unknown {
    return () => this.observed((value) => callback(value, this.scheduler.isEarly ? LOADING : LOADED));
  }

  /** Calls back with the value, for a sink; not if a computed value has failed. */
  protected observed(callback: (value: T) => unknown): unknown {
    return callback(this.get());
  }

  /**
   * A written value may equal the default that was read before: then the place changes and the value does not. A
   * callback that reads, writes or waits is called nevertheless, because its run has other effects.
   */
  #unlessEqual(callback: (value: T) => unknown): () => unknown {
    let last: { readonly value: T } | undefined;
    return () => {
      const before = last;
      last = undefined;
      const value = this.get();
      if (before !== undefined && equal(before.value as Json, value as Json)) {
        last = before;
        return undefined;
      }
      const { runMark } = this.scheduler;
      const result = callback(value);
      if (this.scheduler.runMark === runMark && !(result instanceof Promise)) last = { value };
      return result;
    };
  }

  /** The value once all its inputs are up to date: demands it, waits, and withdraws the demand. */
  pull({ clearance }: PullOptions = {}): Promise<T> {
    return this.scheduler.pullOnce(() => this.get(), clearance);
  }

  /** Adds labels to this place; effective here at once, resolves when it is durable. */
  label(names: readonly string[]): Promise<void> {
    return labelPlace(this.scheduler, this.address, names);
  }

  /** The result of a read while there is no value. */
  get default(): T | undefined {
    return this.#options.default;
  }

  /** Throws if the value may not be written here. */
  protected requireWritable(value: T): void {
    if (this.#options.schema) requireValid(this.#options.schema, value, String(this.address));
  }

  /** Whether a write of plain code has to wait for the document, or for earlier waiting writes. */
  #isLate(needsDocument: boolean): boolean {
    if (this.scheduler.parts.attempts.isUnderWay) return false;
    const { home } = this.#writable();
    if (this.targets.late.has(home)) return true;
    const { isKnown, loadError } = home.document;
    return needsDocument && !isKnown && loadError === undefined;
  }

  #writeLate(code: () => void): void {
    this.targets.late.write(this.#writable().home, code);
  }

  /** The place of a write; writes the default of the cell above first if that cell has no value. */
  #begun(): NodeAddress {
    const { above } = this.#options;
    if (above) above.#writeDefault();
    return this.#writable();
  }

  #writeDefault(): void {
    const { scheduler } = this;
    const place = followLinks(this.address, this.targets);
    if (scheduler.parts.runner.glance(place) !== undefined) return;
    // The commit depends on the absence, so it does not overwrite the value of another process.
    if (scheduler.parts.runner.read(place) === undefined) scheduler.parts.runner.restOn(place);
    scheduler.parts.runner.write(place, this.#options.default);
  }

  /** The place of a write to this cell: through links above it, not through a link at it. */
  #writable(): NodeAddress {
    const { address } = this;
    const { parent } = address;
    if (parent === null) return address;
    const container = followLinks(parent, this.targets);
    return container === parent ? address : container.child(address.step);
  }
}
