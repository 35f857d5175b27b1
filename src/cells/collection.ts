/**
 * A collection: many elements of one type, each in a document of its own, with ordered indexes and live totals.
 *
 * Documents of a collection `tasks`: `tasks/at/ID` (an element), `tasks/index/NAME/PAGE` (`ordered-index.ts`),
 * `tasks/totals/GROUP` (`collection-totals.ts`). A write of an element changes all of them in one commit. In plain code
 * each write is a commit of its own, which is repeated if it was stale. SPEC: R92-R99.
 */
import { COLLECTION_PAGE_MAX } from "../limits.ts";
import { isCleanText, type Json } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import type { BaseSpace } from "./base-space.ts";
import type { Cell } from "./cell.ts";
import { type Addition, Totals } from "./collection-totals.ts";
import { ElementCell } from "./element-cell.ts";
import { CollectionError, encodeKey, type IndexValue, lastKey } from "./index-key.ts";
import { requireReady } from "./links.ts";
import { NotReady } from "./not-ready.ts";
import { type IndexEntry, type IndexHome, type KeyRange, OrderedIndex } from "./ordered-index.ts";
import type { StandardSchema } from "./schema.ts";
import type { AsJson, Stored } from "./value-types.ts";

/** Options of `index`. */
export interface IndexOptions {
  /** Keeps counts and sums for each value of the leading components of the key, so many of them. Default 0: none. */
  readonly totals?: number;
}

/** A declared order of the elements of a collection. */
export interface Index<T, Name extends string = string> extends IndexOptions {
  readonly name: Name;
  readonly key: (element: T) => readonly IndexValue[];
}

/** Declares an index: elements in the order of their keys. An element without a key (`undefined`) is left out. */
export function index<T, const Name extends string = string>(
  name: Name,
  key: (element: T) => readonly IndexValue[] | undefined,
  options: IndexOptions = {},
): Index<T, Name> {
  return { name, key: key as Index<T>["key"], ...options };
}

/** Options of a collection: indexes, sums and a schema. */
export interface CollectionOptions<T, Names extends string = string, Sums extends string = string> {
  readonly indexes?: readonly Index<T, Names>[];
  /** Numbers of an element that `sum` adds up, by name. */
  readonly sums?: Readonly<Record<Sums, (element: T) => number>>;
  /** Checks every element that is written. */
  readonly schema?: StandardSchema<T> | undefined;
}

/** The part of a collection that `page` reads. */
export interface PageQuery<Names extends string = string> {
  /** The index that gives the order; without one, elements are in the order of their ids. */
  readonly index?: Names;
  /** The first key, or its leading components. */
  readonly from?: readonly IndexValue[];
  /** The last key, or its leading components: every key that begins with them is included. */
  readonly to?: readonly IndexValue[];
  /** Elements on the page, at most 1,000. Default 100. */
  readonly limit?: number;
  /** Where the page before ended: its `next`. */
  readonly after?: string | undefined;
}

/** One element of a page, with its id. */
export interface CollectionElement<T> {
  readonly id: string;
  readonly value: T;
}

/** One page of a collection, and the place where the next one begins. */
export interface Page<T> {
  readonly elements: readonly CollectionElement<T>[];
  /** For `after`, if there are more elements. */
  readonly next?: string;
}

/** The elements of an index with a key that begins with these values. */
export interface Group<Names extends string = string> {
  readonly index: Names;
  readonly key: readonly IndexValue[];
}

const DEFAULT_LIMIT = 100;
/** The order of the elements by their ids. */
const BY_ID = "";

/** The values that are stored outside of an element's document. */
interface Derived {
  /** Keys by the name of the index. */
  readonly keys: ReadonlyMap<string, string>;
  /** Groups whose totals it belongs to. */
  readonly groups: readonly string[];
  readonly sums: Readonly<Record<string, number>>;
}

const NOTHING: Derived = { keys: new Map(), groups: [], sums: {} };

/** `Names` are the declared indexes and `Sums` the declared sums, if the compiler knows them. */
export class Collection<T, Names extends string = string, Sums extends string = string> {
  readonly name: string;
  readonly #space: BaseSpace;
  readonly #replica: Replica;
  readonly #options: CollectionOptions<T>;
  readonly #trees = new Map<string, OrderedIndex>();
  readonly #totals: Totals;

  constructor(space: BaseSpace, name: string, options: CollectionOptions<T> = {}, pageMax?: number) {
    this.name = name;
    this.#space = space;
    this.#replica = space.replica(space.name);
    this.#options = options;
    const home: IndexHome = {
      scheduler: space.scheduler,
      replica: this.#replica,
      document: (id) => this.#document(id),
      newId: () => space.newId(),
    };
    this.#totals = new Totals(home, `${name}/totals`);
    this.#trees.set(BY_ID, new OrderedIndex(home, `${name}/index`, pageMax));
    for (const { name: by } of options.indexes ?? []) {
      if (!/^[\w-]+$/.test(by) || this.#trees.has(by))
        throw misuse(
          `collection "${name}" has an index "${by}" twice, or its name is not made of letters, digits, _ and -`,
        );
      this.#trees.set(by, new OrderedIndex(home, `${name}/index/${by}`, pageMax));
    }
  }

  /** The cell of an element. It is `undefined` while there is none; a write creates it, `delete()` removes it. */
  at(id: string): Cell<T | undefined> {
    requireId(this.name, id);
    const address = this.#document(`${this.name}/at/${id}`);
    const schema = this.#options.schema as StandardSchema<T | undefined> | undefined;
    const writes = {
      around: (write: () => void) => this.#write(id, address, write),
      check: (value: T | undefined) => void (value === undefined ? undefined : this.#derive(id, value)),
    };
    return new ElementCell<T | undefined>(address, this.#space, writes, { schema });
  }

  get(id: string): T | undefined {
    return this.at(id).get();
  }

  has(id: string): boolean {
    requireId(this.name, id);
    const address = this.#document(`${this.name}/at/${id}`);
    const found = this.#space.scheduler.parts.runner.read(address, true) !== undefined;
    if (!found) requireReady(address, this.#space);
    return found;
  }

  set(id: string, value: T): void {
    this.at(id).set(value);
  }

  update(id: string, change: (value: T | undefined) => T): void {
    this.at(id).update(change);
  }

  /** Removes an element; without effect if there is none. */
  delete(id: string): void {
    this.at(id).delete();
  }

  /** All ids, in order. Reads the index of ids and no element. */
  ids(): readonly string[] {
    return this.#entries(BY_ID, { from: "", to: undefined, after: undefined, limit: Number.POSITIVE_INFINITY }).map(
      ({ id }) => id,
    );
  }

  /** All elements, in the order of their ids. For many elements use `page`. */
  all(): readonly CollectionElement<T>[] {
    return this.#elements(this.ids());
  }

  /** Elements in the order of an index, a page at a time. */
  page(query: PageQuery<Names> = {}): Page<T> {
    const { index: by = BY_ID as string, from, to, limit = DEFAULT_LIMIT, after } = query;
    if (!Number.isInteger(limit) || limit < 1 || limit > COLLECTION_PAGE_MAX)
      throw misuse(`a page of collection "${this.name}" has 1 to ${COLLECTION_PAGE_MAX} elements, not ${limit}`);
    const what = `collection "${this.name}"`;
    const range = {
      from: from === undefined ? "" : encodeKey(from, what),
      to: to === undefined ? undefined : lastKey(to, what),
      after,
      limit: limit + 1,
    };
    const entries = this.#entries(by, range);
    const elements = this.#elements(entries.slice(0, limit).map(({ id }) => id));
    const last = entries[limit - 1];
    return entries.length > limit && last !== undefined ? { elements, next: last.key } : { elements };
  }

  /** How many elements there are, or are in a group. Kept with each write: no element is read. */
  count(group?: Group<Names>): number {
    return this.#totals.count(this.#groupKey(group));
  }

  /** The declared sum over all elements, or those of a group. Kept with each write: no element is read. */
  sum(name: Sums, group?: Group<Names>): number {
    if (this.#options.sums?.[name] === undefined)
      throw misuse(`collection "${this.name}" declares no sum "${name}"; declare sums: { ${name}: (element) => … }`);
    return this.#totals.sum(this.#groupKey(group), name);
  }

  /** The result of `read` when everything that it reads is loaded and up to date. For plain code. */
  pull<R>(read: (collection: this) => R): Promise<R> {
    return this.#space.scheduler.pullOnce(() => read(this));
  }

  // Reading
  // ------------------------------------------------------------------------------------------------------------------

  /** In a computed value or an effect a child node reads the index: only a change of these entries runs the reader. */
  #entries(by: string, range: KeyRange): readonly IndexEntry[] {
    const tree = this.#trees.get(by);
    if (tree === undefined)
      throw misuse(`collection "${this.name}" has no index "${by}"; declare it with index("${by}", (element) => […])`);
    const { running } = this.#space.scheduler;
    if (running === undefined) return tree.entries(range);
    const { from, to, after, limit } = range;
    const parts = [from, to ?? "", after ?? "", limit].map((part) => JSON.stringify(part)).join(" ");
    const id = `${running.id}/${this.name}/${by} ${parts}`;
    const entries = this.#space.computed(id, () => tree.entries(range), { persist: false });
    return entries.get() as readonly IndexEntry[];
  }

  #elements(ids: readonly string[]): readonly CollectionElement<T>[] {
    const cells = ids.map((id) => ({ id, cell: this.at(id) }));
    // All loads start before the first read waits for one.
    for (const { cell } of cells)
      if (cell.address.document.state === "absent") this.#replica.touch(cell.address.document);
    const elements: CollectionElement<T>[] = [];
    for (const { id, cell } of cells) {
      const value = cell.get();
      if (value !== undefined) elements.push({ id, value });
      else if (!cell.isLoaded && this.#space.scheduler.running === undefined) throw notLoaded(this.name, id);
    }
    return elements;
  }

  #groupKey(group: Group | undefined): string {
    if (group === undefined) return "";
    const { index: by, key } = group;
    const declared = this.#options.indexes?.find(({ name }) => name === by);
    if (declared === undefined || declared.totals !== key.length)
      throw misuse(
        `collection "${this.name}" keeps no totals for ${key.length} components of index "${by}"; declare index("${by}", …, { totals: ${key.length} })`,
      );
    return groupOf(by, key, this.name);
  }

  // Writing
  // ------------------------------------------------------------------------------------------------------------------

  #write(id: string, address: NodeAddress, write: () => void): void {
    const { scheduler } = this.#space;
    if (scheduler.running?.kind === "computation")
      throw misuse(`computed value ${scheduler.running.id} must not write to collection "${this.name}"; use an effect`);
    const code = () => this.#writeNow(id, address, write);
    if (scheduler.parts.attempts.isUnderWay) code();
    else this.#space.late.write(address.home, code);
  }

  #writeNow(id: string, address: NodeAddress, write: () => void): void {
    const { scheduler } = this.#space;
    const before = scheduler.parts.runner.read(address) as T | undefined;
    const was = before === undefined ? NOTHING : this.#derive(id, before);
    write();
    const is = this.#deriveOr(id, address, () => {
      if (before === undefined) scheduler.erase(address);
      else scheduler.parts.runner.write(address, before);
    });
    for (const [by, tree] of this.#trees) {
      const [old, next] = [was.keys.get(by), is.keys.get(by)];
      if (old === next) continue;
      if (old !== undefined) tree.delete(old);
      if (next !== undefined) tree.insert(next, id);
    }
    this.#count(was, is);
  }

  /** The keys of the changed element. If they are refused, the write is rolled back before the error is thrown. */
  #deriveOr(id: string, address: NodeAddress, takeBack: () => void): Derived {
    const element = this.#space.scheduler.parts.runner.glance(address) as T | undefined;
    if (element === undefined) return NOTHING;
    try {
      return this.#derive(id, element);
    } catch (error) {
      takeBack();
      throw error;
    }
  }

  #count(was: Derived, is: Derived): void {
    for (const group of new Set([...was.groups, ...is.groups])) {
      const [from, to] = [was.groups.includes(group), is.groups.includes(group)];
      const sums = Object.fromEntries(
        Object.keys(this.#options.sums ?? {}).map((name) => {
          return [name, (to ? (is.sums[name] ?? 0) : 0) - (from ? (was.sums[name] ?? 0) : 0)];
        }),
      );
      const addition: Addition = { count: Number(to) - Number(from), sums };
      this.#totals.add(group, addition);
    }
  }

  #derive(id: string, element: T): Derived {
    const what = `collection "${this.name}"`;
    const keys = new Map([[BY_ID, encodeKey([id], what)]]);
    const groups = [""];
    for (const { name, key, totals = 0 } of this.#options.indexes ?? []) {
      const values = key(element);
      if (values === undefined) continue;
      keys.set(name, encodeKey([...values, id], `index "${name}" of ${what}`));
      if (totals > 0) groups.push(groupOf(name, values.slice(0, totals), this.name));
    }
    return { keys, groups, sums: this.#sumsOf(element) };
  }

  #sumsOf(element: T): Readonly<Record<string, number>> {
    const sums = Object.entries(this.#options.sums ?? {}).map(([name, of]) => {
      const value = of(element);
      if (!Number.isFinite(value))
        throw misuse(`sum "${name}" of collection "${this.name}" is ${value}; give a number`);
      return [name, value] as const;
    });
    return Object.fromEntries(sums);
  }

  #document(id: string): NodeAddress {
    return this.#space.scheduler.parts.documents.root(this.#replica, { scope: SHARED_SCOPE, id });
  }
}

/** The result of `space.collection`: elements are JSON, and frozen. */
export type CollectionOf<T, Names extends string = string, Sums extends string = string> = Collection<
  Stored<T>,
  Names,
  Sums
>;
/** Options of a collection whose elements are checked to be JSON. */
export type ElementOptions<T, Names extends string = string, Sums extends string = string> = CollectionOptions<
  AsJson<T>,
  Names,
  Sums
>;
/**
 * The compiler infers all type arguments or none: the names of indexes would be any text beside a given type of the
 * elements. The error of such an index is this sentence.
 */
export type NamesFollowSchema =
  'the names of indexes are not known beside <T>; write collection(name, type<T>(), { indexes }) or <T, "name">';

function groupOf(by: string, values: readonly IndexValue[], collection: string): string {
  return `${by}/${encodeKey(values, `index "${by}" of collection "${collection}"`)}`;
}

function requireId(collection: string, id: string): void {
  if (typeof id === "string" && id !== "" && isCleanText(id)) return;
  throw misuse(
    `an element of collection "${collection}" has a text without NUL as its id, not ${JSON.stringify(id as Json)}`,
  );
}

function notLoaded(collection: string, id: string): NotReady {
  return new NotReady(`element "${id}" of collection "${collection}" is not loaded; await collection.pull(read)`);
}

function misuse(message: string): CollectionError {
  return new CollectionError("COLLECTION_MISUSE", message);
}
