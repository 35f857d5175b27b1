/**
 * Lists: one child computation per element, kept by the element's identity (`list-children.ts`). Moving an element runs
 * no child, and changing an element runs one. The coordinator reads the list, keeps the children, and its output is a
 * list of links to theirs. Children run when their output is read or observed.
 */
import type { Json } from "../message/json.ts";
import { computationAt, type NodeAddress, type RunHandle, type SchedulerNode } from "../scheduler/node.ts";
import { handOut } from "../store/admit.ts";
import { asLink } from "../store/document.ts";
import type { BaseSpace } from "./base-space.ts";
import { Cell, type ListCell } from "./cell.ts";
import type { Computed } from "./computed.ts";
import { followLinks, readThrough, targetOf } from "./links.ts";
import { Children, type Each, type ListOptions } from "./list-children.ts";

/** An element that is a link, and its target. */
interface Followed {
  readonly element: Json;
  readonly address: NodeAddress;
}

/**
 * The output of a list operation. Its elements may be links: reading the whole follows each, reading one follows that
 * one.
 */
export class List<R> extends Cell<readonly R[]> {
  /** The links of the last read in order. The next read compares with them, because most of them are the same. */
  #followed: Followed[] = [];

  override get(): readonly R[] {
    // This read covers the list with its links. The targets are read below.
    const elements = super.get();
    if (!elements?.some((element) => asLink(element as Json) !== undefined)) return elements;
    return Object.freeze(this.#follow(elements as readonly Json[]) as R[]);
  }

  #follow(elements: readonly Json[]): (Json | undefined)[] {
    const place = followLinks(this.address, this.targets);
    const before = this.#followed;
    const followed: Followed[] = [];
    let at = 0;
    const values = elements.map((element) => {
      let known = before[at];
      if (known?.element !== element && before[at + 1]?.element === element) known = before[++at];
      if (known?.element === element) at++;
      if (known?.element !== element || known.address.gone) known = this.#firstTime(element, place);
      if (known === undefined) return element;
      followed.push(known);
      return handOut(readThrough(known.address, this.targets));
    });
    this.#followed = followed;
    return values;
  }

  /** Undefined for an element that is no link. */
  #firstTime(element: Json, place: NodeAddress): Followed | undefined {
    const link = asLink(element);
    if (link === undefined) return undefined;
    return { element, address: targetOf(link, place, this.targets) };
  }
}

/** The lists of this process, by coordinator. */
const lists = new WeakMap<SchedulerNode, List<unknown>>();

function listOf<R>({ node, address }: Computed<unknown>, space: BaseSpace): List<R> {
  const list = new List<R>(address, space);
  lists.set(node, list);
  return list;
}

/** Their children, which stay when a run creates its list again. */
const kept = new WeakMap<SchedulerNode, object>();

function childrenOf<E, R>(
  node: SchedulerNode,
  space: BaseSpace,
  id: string,
  each: Each<E, R>,
  options: ListOptions<E>,
): Children<E, R> {
  const known = kept.get(node) as Children<E, R> | undefined;
  // With another name, they belong to another kind of list.
  if (known?.id === id) {
    known.serve(each, options);
    return known;
  }
  const children = new Children<E, R>(space, id, each, options);
  kept.set(node, children);
  return children;
}

/** The list with its output at an address. */
export function listAt({ parent, home }: NodeAddress): List<unknown> | undefined {
  const node = parent === null ? computationAt(home) : undefined;
  return node && lists.get(node);
}

export function map<E, R>(
  space: BaseSpace,
  id: string,
  list: ListCell<E>,
  each: Each<E, R>,
  options: ListOptions<E> = {},
): List<R> {
  const update = ({ node }: RunHandle) => {
    const children = childrenOf(node, space, id, each, options);
    return children.update(elementsOf(list)).map(({ link }) => link);
  };
  const links = space.computed(id, update, space.madeOf("map", each));
  return listOf<R>(links, space);
}

export function filter<E>(
  space: BaseSpace,
  id: string,
  list: ListCell<E>,
  keep: Each<E, boolean>,
  options: ListOptions<E> = {},
): List<E> {
  const update = ({ node }: RunHandle) => {
    const children = childrenOf(node, space, `${id}/keep`, keep, options);
    const elements = elementsOf(list);
    const verdicts = children.update(elements);
    return elements.filter((_, index) => verdicts[index]?.result.get());
  };
  const found = space.computed(id, update, space.madeOf("filter", keep));
  return listOf<E>(found, space);
}

export function flatMap<E, R>(
  space: BaseSpace,
  id: string,
  list: ListCell<E>,
  each: Each<E, readonly R[]>,
  options: ListOptions<E> = {},
): List<R> {
  const update = ({ node }: RunHandle) => {
    const children = childrenOf(node, space, `${id}/each`, each, options);
    return children.update(elementsOf(list)).flatMap(({ result }) => result.get() ?? []);
  };
  const all = space.computed(id, update, space.madeOf("flatMap", each));
  return listOf<R>(all, space);
}

/** The stored elements: a link is the element's identity, not its value. */
function elementsOf(list: ListCell<unknown>): readonly Json[] {
  const elements = list.getRaw() ?? list.get();
  return Array.isArray(elements) ? elements : [];
}
