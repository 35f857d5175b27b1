/**
 * An ordered index: a B+ tree. A page is a document of at most `INDEX_PAGE_MAX` keys. The root and inner pages map the
 * lowest key of a child to the child's document; leaves map keys to element ids. SPEC: R94-R97.
 *
 * Reads and writes use the scheduler, so they are tracked in computed values, claimed in transactions and rolled back
 * with them. An insert claims the pages above its leaf, and of the leaf only that it exists: two processes that insert
 * into one leaf do not conflict, unless one of them splits it. The cost of an insert is the height of the tree.
 */
import { INDEX_PAGE_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { handOut } from "../store/admit.ts";
import type { Replica } from "../store/replica.ts";
import { NotReady } from "./not-ready.ts";

/** A part of an index, in order: keys above `after`, from `from` up to and with `to`. */
export interface KeyRange {
  readonly from: string;
  readonly to: string | undefined;
  readonly after: string | undefined;
  readonly limit: number;
}

export interface IndexEntry {
  readonly key: string;
  readonly id: string;
}

/** The parts of a space that an index uses. */
export interface IndexHome {
  readonly scheduler: Scheduler;
  readonly replica: Replica;
  document(id: string): NodeAddress;
  newId(): string;
}

type Pages = { readonly [lowestKey: string]: string };

/** A page on the way to a leaf, and the key under which it has the next page. */
interface Step {
  readonly page: NodeAddress;
  readonly key: string;
}

const ROOT = "root";
/** The lowest key of the root. The lowest key of any other page is the key that its parent has for it. */
const LOWEST = "";
/** Ids of inner pages begin with this; all others are leaves. */
const INNER = "inner-";
const LEAF = "leaf-";

/** Lowest keys of inner pages in order. Pages are frozen when they are read, so an object never changes. */
const sorted = new WeakMap<object, readonly string[]>();

export class OrderedIndex {
  readonly #home: IndexHome;
  readonly #prefix: string;
  readonly #pageMax: number;

  /** `prefix` begins the ids of its documents. */
  constructor(home: IndexHome, prefix: string, pageMax = INDEX_PAGE_MAX) {
    this.#home = home;
    this.#prefix = prefix;
    this.#pageMax = pageMax;
  }

  insert(key: string, id: string): void {
    const { scheduler } = this.#home;
    const way = this.#descend(key);
    if (way === undefined) {
      const leaf = this.#newPage(LEAF, { [key]: id });
      scheduler.parts.runner.write(this.#page(ROOT), { [LOWEST]: leaf });
      return;
    }
    // Before the write, after which a look copies the page. Not claimed: a leaf may be split a little too late.
    const count = countOf(scheduler.parts.runner.glance(way.leaf));
    scheduler.parts.runner.write(way.leaf.child(key), id);
    if (count >= this.#pageMax) this.#split(way.leaf, way.steps, key);
  }

  delete(key: string): void {
    const { scheduler } = this.#home;
    const way = this.#descend(key);
    if (way === undefined) return;
    const count = countOf(scheduler.parts.runner.glance(way.leaf));
    scheduler.erase(way.leaf.child(key));
    if (count <= 1) this.#remove(way.leaf, way.steps);
  }

  /** At most `limit` entries of a range, in order. */
  entries(range: KeyRange): readonly IndexEntry[] {
    const found: IndexEntry[] = [];
    this.#collect(this.#page(ROOT), range, found);
    return found;
  }

  #collect(page: NodeAddress, range: KeyRange, found: IndexEntry[]): void {
    const children = this.#inner(page);
    if (children === undefined) return;
    const keys = sortedKeys(children);
    // An inner page may begin above the range.
    const low = range.after === undefined || range.after < range.from ? range.from : range.after;
    const start = Math.max(0, floor(keys, low));
    this.#prefetch(children, keys, start, range);
    for (let at = start; at < keys.length && found.length < range.limit; at++) {
      const key = keys[at] as string;
      if (range.to !== undefined && at > start && key > range.to) return;
      const child = children[key] as string;
      if (child.startsWith(INNER)) this.#collect(this.#page(child), range, found);
      else this.#collectLeaf(this.#page(child), range, found);
    }
  }

  #collectLeaf(leaf: NodeAddress, { from, to, after, limit }: KeyRange, found: IndexEntry[]): void {
    const page = this.#read(leaf) as Pages | undefined;
    if (page === undefined) return;
    const isWithin = (key: string) =>
      key >= from && (to === undefined || key <= to) && (after === undefined || key > after);
    const keys = Object.keys(page).filter(isWithin).sort(byUnits);
    for (const key of keys.slice(0, limit - found.length)) found.push({ key, id: page[key] as string });
  }

  /** Starts the loads of all pages that the range may need, so that they do not wait for each other. */
  #prefetch(children: Pages, keys: readonly string[], start: number, { to, limit }: KeyRange): void {
    const { replica } = this.#home;
    // Leaves are at least half full when they are made; a few more reads follow where elements were deleted.
    const count = Math.ceil(limit / (this.#pageMax / 2)) + 1;
    for (const key of keys.slice(start, start + count)) {
      if (to !== undefined && key > to) return;
      const { document } = this.#page(children[key] as string);
      if (document.state === "absent") replica.touch(document);
    }
  }

  /** The way to the leaf of a key; undefined while there is no leaf. */
  #descend(key: string): { readonly leaf: NodeAddress; readonly steps: readonly Step[] } | undefined {
    const steps: Step[] = [];
    let page = this.#page(ROOT);
    for (;;) {
      const children = this.#inner(page);
      if (children === undefined) return undefined;
      const keys = sortedKeys(children);
      const step = keys[floor(keys, key)];
      if (step === undefined) return undefined;
      steps.push({ page, key: step });
      const id = children[step] as string;
      page = this.#page(id);
      if (!id.startsWith(INNER)) {
        requireLoaded(this.#home.scheduler, page);
        return { leaf: page, steps };
      }
    }
  }

  /**
   * Moves the upper half of a page to a new one. A key at the very end moves alone, so that ordered inserts fill pages.
   */
  #split(page: NodeAddress, steps: readonly Step[], inserted: string): void {
    const content = this.#read(page) as Pages;
    const keys = Object.keys(content).sort(byUnits);
    const half = keys.at(-1) === inserted ? keys.length - 1 : keys.length >> 1;
    const [left, right] = [keys.slice(0, half), keys.slice(half)];
    const parent = steps.at(-1);
    const kind = parent === undefined || isInner(content) ? INNER : LEAF;
    const { scheduler } = this.#home;
    const middle = right[0] as string;
    const upper = this.#newPage(kind, pick(content, right));
    if (parent === undefined) {
      const lower = this.#newPage(kind, pick(content, left));
      scheduler.parts.runner.write(page, { [left[0] as string]: lower, [middle]: upper });
      return;
    }
    for (const key of right) scheduler.erase(page.child(key));
    scheduler.parts.runner.write(parent.page.child(middle), upper);
    if (countOf(scheduler.parts.runner.glance(parent.page)) > this.#pageMax)
      this.#split(parent.page, steps.slice(0, -1), middle);
  }

  /** Removes an empty page, and the pages above it that become empty. The root stays. */
  #remove(page: NodeAddress, steps: readonly Step[]): void {
    const parent = steps.at(-1);
    if (parent === undefined) return;
    const { scheduler } = this.#home;
    // Claimed: another process may have inserted a key.
    if (countOf(this.#read(page)) > 0) return;
    scheduler.erase(page);
    scheduler.erase(parent.page.child(parent.key));
    if (countOf(scheduler.parts.runner.glance(parent.page)) === 0) this.#remove(parent.page, steps.slice(0, -1));
    else this.#extend(parent.page, parent.key);
  }

  /** Makes `key` the lowest key of a page and of the first pages below it, if its first page was removed. */
  #extend(page: NodeAddress, key: string): void {
    const children = this.#inner(page) as Pages;
    const first = sortedKeys(children)[0] as string;
    if (first <= key) return;
    const { scheduler } = this.#home;
    const child = children[first] as string;
    scheduler.erase(page.child(first));
    scheduler.parts.runner.write(page.child(key), child);
    if (child.startsWith(INNER)) this.#extend(this.#page(child), key);
  }

  #newPage(kind: string, content: Pages): string {
    const id = kind + this.#home.newId();
    this.#home.scheduler.parts.runner.write(this.#page(id), content);
    return id;
  }

  #page(id: string): NodeAddress {
    return this.#home.document(`${this.#prefix}/${id}`);
  }

  /** The children of the root or of an inner page; undefined for a root that was never written. */
  #inner(page: NodeAddress): Pages | undefined {
    return this.#read(page) as Pages | undefined;
  }

  #read(page: NodeAddress): Json | undefined {
    const value = this.#home.scheduler.parts.runner.read(page);
    if (value === undefined) requireLoaded(this.#home.scheduler, page);
    return handOut(value);
  }
}

/** Throws for plain code and attempts if a document is not loaded. The scheduler runs a node again when it is. */
export function requireLoaded(scheduler: Scheduler, { document, home: { root } }: NodeAddress): void {
  if (document.isReadable || scheduler.parts.runner.glance(root) !== undefined) return;
  scheduler.parts.runner.read(root, true);
  if (scheduler.running !== undefined) return;
  throw new NotReady(
    `${root} is not loaded: read it in a computed value, an effect or a transaction, or await collection.pull(read)`,
  );
}

/** The greatest index whose key is not above the given one. */
function floor(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] as string) <= key) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function sortedKeys(page: Pages): readonly string[] {
  const known = sorted.get(page);
  if (known !== undefined) return known;
  const keys = Object.keys(page).sort(byUnits);
  sorted.set(page, keys);
  return keys;
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function countOf(page: Json | undefined): number {
  let count = 0;
  if (typeof page === "object") for (const _ in page as JsonObject) count++;
  return count;
}

function isInner(page: Pages): boolean {
  for (const key in page) return (page[key] as string).startsWith(INNER) || (page[key] as string).startsWith(LEAF);
  return false;
}

function pick(page: Pages, keys: readonly string[]): Pages {
  return Object.fromEntries(keys.map((key) => [key, page[key] as string]));
}
