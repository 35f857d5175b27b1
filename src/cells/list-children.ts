/**
 * The children of a list operation: one computation per element.
 *
 * The identity of an element that is a link is that link; of others the result of `key`, or else the position.
 * Equal identities are numbered in order of appearance. Most changes of a list leave its beginning and its end
 * unchanged: there the children are kept without a call of `key`.
 */
import type { Json } from "../message/json.ts";
import { admitShareable } from "../store/admit.ts";
import { asLink, linkTo, SHARED_SCOPE } from "../store/document.ts";
import type { BaseSpace, NodeOptions } from "./base-space.ts";
import { Cell } from "./cell.ts";
import type { Computed } from "./computed.ts";

/** Options of `map`, `filter` and `flatMap` of a list. */
export interface ListOptions<E> {
  /** The identity of an element that moves or changes. Default: its position; of a link, the link. */
  readonly key?: (element: E) => string | number;
}

/**
 * Computes the result of an element. The second parameter is the position of the element: a function that reads it runs
 * again when the element moves.
 */
export type Each<E, R> = (element: Cell<E>, index: Cell<number>) => R;

export interface Child<R> {
  readonly key: string;
  readonly result: Computed<R>;
  /** A link to the result. */
  readonly link: Json;
  /** The cell that holds an element that is not a link. */
  readonly element: Cell<Json | undefined>;
  /** The cell that holds its position, for functions that take one. */
  readonly index: Cell<number | undefined> | undefined;
}

export class Children<E, R> {
  readonly id: string;
  readonly #space: BaseSpace;
  #each: Each<E, R>;
  #options: ListOptions<E>;
  /** Options of the children's computations. */
  #childOptions: NodeOptions | undefined;
  readonly #byKey = new Map<string, Child<R>>();
  /** Children without an element that were still observed. The next update removes those that are dormant. */
  readonly #leaving = new Map<string, Child<R>>();
  /** The elements of the last update and their children, in the list's order. */
  #elements: readonly Json[] = [];
  #children: readonly Child<R>[] = [];
  /** Whether identities are neither positions nor repeated, so that they do not depend on the element's position. */
  #movable = true;

  constructor(space: BaseSpace, id: string, each: Each<E, R>, options: ListOptions<E>) {
    this.#space = space;
    this.id = id;
    this.#each = each;
    this.#options = options;
    this.#childOptions = space.madeOf("child", each);
  }

  /** A run has created its list again, with this function and these options. */
  serve(each: Each<E, R>, options: ListOptions<E>): void {
    const before = this.#each;
    // Identities may change.
    if (options.key !== this.#options.key) this.#movable = false;
    this.#options = options;
    if (each === before) return;
    this.#each = each;
    this.#childOptions = this.#space.madeOf("child", each);
    const all = [...this.#byKey.values(), ...this.#leaving.values()];
    if (each.length > 1 === before.length > 1) for (const child of all) this.#compute(child.key, child);
    else this.#stopAll(all);
  }

  /** Removes children, because one with a cell for its position cannot become one without it. */
  #stopAll(children: readonly Child<R>[]): void {
    for (const child of children) this.#stop(child);
    this.#byKey.clear();
    this.#elements = [];
    this.#children = [];
  }

  /** One child per element, in the list's order. Children without an element stop once they are not observed. */
  update(elements: readonly Json[]): readonly Child<R>[] {
    for (const child of this.#leaving.values()) if (!child.result.node.live) this.#stop(child);
    const children = (this.#movable ? this.#updateBetween(elements) : undefined) ?? this.#updateAll(elements);
    this.#elements = elements;
    this.#children = children;
    if (this.#each.length > 1) this.#number(children);
    return children;
  }

  #number(children: readonly Child<R>[]): void {
    children.forEach(({ index }, at) => {
      if (index !== undefined) this.#space.scheduler.parts.runner.derive(index.address, at);
    });
  }

  /** Compares only the elements between the common beginning and the common end; undefined if that does not suffice. */
  #updateBetween(elements: readonly Json[]): readonly Child<R>[] | undefined {
    const before = this.#elements;
    const shorter = Math.min(elements.length, before.length);
    let start = 0;
    while (start < shorter && Object.is(elements[start], before[start])) start++;
    let tail = 0;
    const [end, endBefore] = [elements.length - 1, before.length - 1];
    while (tail < shorter - start && Object.is(elements[end - tail], before[endBefore - tail])) tail++;
    const gone = new Map<string, Child<R>>();
    for (const child of this.#children.slice(start, before.length - tail)) gone.set(child.key, child);

    const between = elements.slice(start, elements.length - tail);
    const keys = between.map((element) => this.#identity(element));
    const unique = new Set(keys);
    if (unique.size < keys.length || unique.has(undefined)) return undefined;
    for (const key of unique) if (this.#byKey.has(key as string) && !gone.has(key as string)) return undefined;

    const children = between.map((element, i) => {
      const key = keys[i] as string;
      const child = gone.get(key);
      gone.delete(key);
      return this.#place(key, child, element);
    });
    for (const child of gone.values()) this.#leave(child);
    // Not by `toSpliced`: a hundred thousand spread arguments overflow the stack.
    return this.#children.slice(0, start).concat(children, this.#children.slice(before.length - tail));
  }

  #updateAll(elements: readonly Json[]): readonly Child<R>[] {
    const gone = new Map(this.#byKey);
    const repeats = new Map<string, number>();
    this.#movable = true;
    const children = elements.map((element, index) => {
      const own = this.#identity(element);
      const identity = own ?? String(index);
      const repeat = repeats.get(identity) ?? 0;
      repeats.set(identity, repeat + 1);
      if (own === undefined || repeat > 0) this.#movable = false;
      const key = repeat === 0 ? identity : `${identity}~${repeat}`;
      const child = this.#place(key, gone.get(key), element);
      gone.delete(key);
      return child;
    });
    for (const child of gone.values()) this.#leave(child);
    return children;
  }

  /** Undefined if it is the position. */
  #identity(element: Json): string | undefined {
    const link = asLink(element);
    if (link) return JSON.stringify([link.space ?? "", link.scope, link.id, ...link.path]);
    return this.#options.key && nameOf(String(this.#options.key(element as E)));
  }

  #place(key: string, kept: Child<R> | undefined, element: Json): Child<R> {
    const child = kept ?? this.#return(key) ?? this.#start(key, element);
    // The child follows a link itself; any other element is written into its cell.
    if (asLink(element) === undefined) this.#space.scheduler.parts.runner.derive(child.element.address, element);
    return child;
  }

  #start(key: string, element: Json): Child<R> {
    const id = `${this.id}/${key}`;
    const holder = this.#space.cell<Json>(`${id}/element`);
    this.#space.scheduler.parts.runner.derive(holder.address, element);
    const index = this.#each.length > 1 ? this.#space.cell<number>(`${id}/index`) : undefined;
    const result = this.#compute(key, { element: holder, index });
    // No store has these documents, and the child may read them in each run.
    this.#space.scheduler.parts.documents.keepFor(result.node, holder.address);
    if (index !== undefined) this.#space.scheduler.parts.documents.keepFor(result.node, index.address);
    const link = admitShareable(linkTo({ scope: SHARED_SCOPE, id, path: [] }));
    const child = { key, result, element: holder, index, link };
    this.#byKey.set(key, child);
    return child;
  }

  #compute(key: string, { element, index }: Pick<Child<R>, "element" | "index">): Computed<R> {
    const each = this.#each;
    const cell = new Cell<E>(element.address, this.#space);
    const run = () => each(cell, index as Cell<number>) as never;
    return this.#space.computed<R>(`${this.id}/${key}`, run, this.#childOptions) as Computed<R>;
  }

  /** Its element is removed. Readers of the list are not told yet, and other readers may observe the child itself. */
  #leave(child: Child<R>): void {
    this.#byKey.delete(child.key);
    this.#leaving.set(child.key, child);
  }

  /** A child whose element is added again before the child has stopped. */
  #return(key: string): Child<R> | undefined {
    const child = this.#leaving.get(key);
    if (child === undefined) return undefined;
    this.#leaving.delete(key);
    this.#byKey.set(key, child);
    return child;
  }

  #stop(child: Child<R>): void {
    this.#leaving.delete(child.key);
    child.result.discard();
  }
}

/**
 * A key as part of an id: different from the child's other documents (`/element`, `/index`) and from repeats (`~1`).
 */
function nameOf(key: string): string {
  return key.replaceAll("~", "~~").replaceAll("/", "~s");
}
