/**
 * Lists: one child computation per element, kept by the element's identity, so that moving an element runs nothing and
 * changing one runs one.
 *
 * The identity of an element is its link, where it is one; what `key` says, where that is given; otherwise its position.
 * Equal identities are numbered in order of appearance. The coordinator reads the list, keeps the children, and its output is
 * a list of links to theirs; children run when somebody looks at their output.
 */
import type { Json } from "../message/json.ts";
import { asLink, linkTo, SHARED_SCOPE } from "../store/document.ts";
import { Cell } from "./cell.ts";
import type { Computed } from "./computed.ts";
import type { Space } from "./space.ts";

export interface ListOptions<E> {
  /** What stays the same about an element when it moves or changes; by default its position, for a link the link. */
  readonly key?: (element: E) => string | number;
}

/** The output of a list operation. Its elements may be links: reading the whole follows each, reading one follows that one. */
export class List<R> extends Cell<readonly R[]> {
  override get(): readonly R[] | undefined {
    const elements = super.get();
    if (!elements?.some((element) => asLink(element as Json) !== undefined)) return elements;
    return Object.freeze(elements.map((_, index) => this.key(index).get() as R));
  }
}

interface Child<R> {
  readonly result: Computed<R>;
  readonly link: Json;
  /** The cell that holds an element that is not a link. */
  readonly element: Cell<Json>;
}

class Children<E, R> {
  readonly #space: Space;
  readonly #id: string;
  readonly #each: (element: Cell<E>) => R;
  readonly #options: ListOptions<E>;
  #children = new Map<string, Child<R>>();
  /** Without an element. Somebody may still look at what they gave; they go when nobody does. */
  readonly #leaving = new Map<string, Child<R>>();

  constructor(space: Space, id: string, each: (element: Cell<E>) => R, options: ListOptions<E>) {
    this.#space = space;
    this.#id = id;
    this.#each = each;
    this.#options = options;
  }

  /** One child per element, in the list's order; those without an element stop once nobody looks at them. */
  update(elements: readonly Json[]): Child<R>[] {
    const kept = new Map<string, Child<R>>();
    const repeats = new Map<string, number>();
    const children = elements.map((element, index) => {
      const identity = this.#identity(element, index);
      const repeat = repeats.get(identity) ?? 0;
      repeats.set(identity, repeat + 1);
      const key = repeat === 0 ? identity : `${identity}~${repeat}`;
      const child = this.#children.get(key) ?? this.#return(key) ?? this.#start(key, element);
      // A link is followed by the child itself; any other element is handed to it.
      if (asLink(element) === undefined) this.#space.scheduler.derive(child.element.address, element);
      kept.set(key, child);
      return child;
    });
    for (const [key, child] of this.#children) if (!kept.has(key)) this.#leaving.set(key, child);
    for (const [key, child] of this.#leaving) {
      if (child.result.node.live) continue;
      this.#leaving.delete(key);
      child.result.dispose();
    }
    this.#children = kept;
    return children;
  }

  /** One that has left and come back is the same as before. */
  #return(key: string): Child<R> | undefined {
    const child = this.#leaving.get(key);
    this.#leaving.delete(key);
    return child;
  }

  #identity(element: Json, index: number): string {
    const link = asLink(element);
    if (link) return JSON.stringify([link.space ?? "", link.scope, link.id, ...link.path]);
    return this.#options.key ? String(this.#options.key(element as E)) : String(index);
  }

  #start(key: string, element: Json): Child<R> {
    const id = `${this.#id}/${key}`;
    const holder = this.#space.cell<Json>(`${id}/element`);
    this.#space.scheduler.derive(holder.address, element);
    const each = this.#each;
    const cell = new Cell<E>(holder.address, this.#space);
    const result = this.#space.computed<R>(id, () => each(cell) as never) as Computed<R>;
    return { result, element: holder, link: linkTo({ scope: SHARED_SCOPE, id, path: [] }) };
  }
}

export function map<E, R>(
  space: Space,
  id: string,
  list: Cell<readonly E[]>,
  each: (element: Cell<E>) => R,
  options: ListOptions<E> = {},
): List<R> {
  const children = new Children<E, R>(space, id, each, options);
  const links = space.computed(id, () => children.update(elementsOf(list)).map(({ link }) => link));
  return new List<R>(links.address, space);
}

export function filter<E>(
  space: Space,
  id: string,
  list: Cell<readonly E[]>,
  keep: (element: Cell<E>) => boolean,
  options: ListOptions<E> = {},
): List<E> {
  const children = new Children<E, boolean>(space, `${id}/keep`, keep, options);
  const kept = space.computed(id, () => {
    const elements = elementsOf(list);
    const verdicts = children.update(elements);
    return elements.filter((_, index) => verdicts[index]?.result.get());
  });
  return new List<E>(kept.address, space);
}

export function flatMap<E, R>(
  space: Space,
  id: string,
  list: Cell<readonly E[]>,
  each: (element: Cell<E>) => readonly R[],
  options: ListOptions<E> = {},
): List<R> {
  const children = new Children<E, readonly R[]>(space, `${id}/each`, each, options);
  const all = space.computed(id, () => children.update(elementsOf(list)).flatMap(({ result }) => result.get() ?? []));
  return new List<R>(all.address, space);
}

/** The elements as they lie in the list: a link is the element's identity, not yet its value. */
function elementsOf(list: Cell<readonly unknown[]>): readonly Json[] {
  const elements = list.getRaw();
  return Array.isArray(elements) ? elements : [];
}
