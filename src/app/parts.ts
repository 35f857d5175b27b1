/**
 * The functions that an app's own function is given: they make cells, computed values, effects and events of its space.
 * Each name is used once. Cells are loaded before anything runs, and stay in memory. SPEC: A2-A4, A6.
 */

import type { SpaceCellOptions } from "../cells/base-space.ts";
import type { Space } from "../cells/space.ts";
import { BootError } from "../loop/routing-table.ts";
import { isMessageType } from "../message/envelope.ts";
import { show } from "../message/problem.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { EventDefinition, isSchema, type Schema } from "./event-definition.ts";

/** The parts that the function of an app gets, to define its state and events. */
export interface AppParts {
  /** State: `cell("count", 0)`. With an initial value it is never `undefined`. */
  readonly cell: Space["cell"];
  /**
   * Many elements of one type, each in a document of its own, with indexes and totals: `collection<Order>("orders")`.
   */
  readonly collection: Space["collection"];
  /** Derived state: computed when it is read, or while it is observed. */
  readonly computed: Space["computed"];
  readonly effect: Space["effect"];
  /** An event that the app may emit: `event("Order.Placed", type<{ price: number }>())`. */
  readonly event: <const Name extends string, Output, Input>(
    name: Name,
    schema: Schema<Output, Input>,
  ) => EventDefinition<Name, Output, Input>;
}

const INSIDE_COLLECTION = /^\/(?:at|index|totals)(?:\/|$)/;

export class StateParts {
  readonly parts: AppParts;
  readonly #app: string;
  readonly #names = new Map<string, string>();
  readonly #events = new Map<string, EventDefinition<string, unknown, never>>();
  readonly #loaded: DocumentRef[] = [];

  constructor(app: string, space: Space) {
    this.#app = app;
    this.parts = {
      cell: <T>(id: string, initial?: T, options?: SpaceCellOptions<T>) => {
        this.#name("cell", id);
        this.#loaded.push({ scope: options?.scope ?? SHARED_SCOPE, id });
        const make = space.cell.bind(space) as (...given: unknown[]) => never;
        return make(id, initial, options);
      },
      collection: (name: string, ...rest: readonly unknown[]) => {
        this.#name("collection", name);
        const make = space.collection.bind(space) as (...given: unknown[]) => never;
        return make(name, ...rest);
      },
      computed: (name, compute, options) => {
        this.#name("computed", name);
        return space.computed(name, compute, options);
      },
      effect: space.effect.bind(space),
      event: (name, schema) => this.#event(name, schema),
    };
  }

  get events(): readonly EventDefinition<string, unknown, never>[] {
    return [...this.#events.values()];
  }

  /** Loads the cells, and keeps them in memory for as long as the space is open. */
  async load(space: Space): Promise<void> {
    const replica = space.replica(space.name);
    for (const ref of this.#loaded) replica.observe(ref);
    await replica.load(this.#loaded);
  }

  #event<Name extends string, Output, Input>(
    name: Name,
    schema: Schema<Output, Input>,
  ): EventDefinition<Name, Output, Input> {
    if (!isMessageType(name))
      throw this.#problem(`event(${show(name)}): a name is two PascalCase words, like Order.Placed`);
    if (!isSchema(schema))
      throw this.#problem(`event("${name}"): takes a Standard Schema or type<T>() second, got ${show(schema)}`);
    if (this.#events.has(name)) throw this.#problem(`event "${name}" is declared twice; declare it once and share it`);
    const made = new EventDefinition<Name, Output, Input>(name, schema);
    this.#events.set(name, made);
    return made;
  }

  #name(kind: string, name: unknown): void {
    if (typeof name !== "string" || name === "")
      throw this.#problem(`${kind}(name, …): a name is text, like "prices"; got ${show(name)}`);
    const first = this.#names.get(name);
    if (first !== undefined)
      throw this.#problem(`the name "${name}" is used twice, by a ${first} and a ${kind}; rename one`);
    this.#names.set(name, kind);
    this.#refuseInside(name, kind);
  }

  /** Documents of a collection have its name and one of these words at the beginning of their ids. */
  #refuseInside(name: string, kind: string): void {
    for (const [other, otherKind] of this.#names) {
      const [inner, outer] = other.length < name.length ? [name, other] : [other, name];
      const outerKind = outer === name ? kind : otherKind;
      if (outerKind !== "collection" || !INSIDE_COLLECTION.test(inner.slice(outer.length))) continue;
      if (!inner.startsWith(outer)) continue;
      throw this.#problem(
        `the name "${inner}" is one of the documents of the collection "${outer}" (${outer}/at, ${outer}/index, ${outer}/totals); rename one`,
      );
    }
  }

  #problem(text: string): BootError {
    return new BootError([`app ${this.#app}: ${text}`]);
  }
}
