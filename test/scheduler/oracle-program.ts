/**
 * Random programs for the oracle: documents with links between them, and computations that read them by conditions,
 * through links and through each other. A program is data, so that the scheduler and the oracle can both carry it out.
 */
import type { SeededRandom } from "../../src/host/seeded-random.ts";
import { isJsonObject, type Json } from "../../src/message/json.ts";

/** A place to read: a document, or the output of a computation, and a way into it. */
export interface Place {
  readonly id: string;
  readonly path: readonly string[];
}

export type Formula =
  | { readonly kind: "sum"; readonly places: readonly Place[] }
  | { readonly kind: "choice"; readonly condition: Place; readonly odd: Place; readonly even: Place }
  /** Changes less often than its input. */
  | { readonly kind: "coarse"; readonly place: Place }
  | { readonly kind: "pair"; readonly x: Place; readonly y: Place }
  | { readonly kind: "fragile"; readonly place: Place }
  /** Makes a child that computes `inner` while the condition is odd, and lets it go while it is even. */
  | { readonly kind: "parent"; readonly condition: Place; readonly inner: Formula; readonly place: Place };

/** Reads the value at a place, through links. */
export type Read = (place: Place) => Json | undefined;

/** A parent's action on its child. */
export interface Nursery {
  keep(inner: Formula): Json | undefined;
  letGo(): void;
}

export function evaluate(formula: Formula, read: Read, nursery: Nursery): Json {
  const number = (place: Place) => asNumber(read(place));
  switch (formula.kind) {
    case "sum":
      return formula.places.reduce((sum, place) => sum + number(place), 0) % 1_000;
    case "choice":
      return number(number(formula.condition) % 2 === 1 ? formula.odd : formula.even);
    case "coarse":
      return Math.floor(number(formula.place) / 4);
    case "pair":
      return { a: number(formula.x), b: { c: number(formula.y) } };
    case "fragile": {
      const value = number(formula.place);
      if (value % 5 === 3) throw new Error("fragile");
      return value;
    }
    case "parent":
      if (number(formula.condition) % 2 === 1) return asNumber(nursery.keep(formula.inner)) + number(formula.place);
      nursery.letGo();
      return number(formula.place);
  }
}

export function asNumber(value: Json | undefined): number {
  if (typeof value === "number") return value;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + asNumber(item), value.length);
  if (!isJsonObject(value)) return 0;
  return Object.entries(value).reduce((sum, [key, item]) => (key === "$link" ? 0 : sum + asNumber(item)), 0) % 1_000;
}

/** Names of all documents and computations; computations read both. */
export const DOCUMENTS = ["d0", "d1", "d2", "d3"];
export const NODES = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"];

/** A document that an effect writes; the last computations may read it. */
export const MIRROR = "mirror";
const MIRROR_READERS = NODES.slice(-2);
/** The effect reads a computation before this one, so that no circle leads through it. */
export const MIRROR_SOURCE_BEFORE = MIRROR_READERS[0] as string;

export class ProgramMaker {
  readonly #random: SeededRandom;
  /** Whether computations may read each other in circles. */
  readonly #withCircles: boolean;

  readonly #mirrorIsRead: boolean;

  constructor(random: SeededRandom, withCircles: boolean, mirrorIsRead = false) {
    this.#random = random;
    this.#withCircles = withCircles;
    this.#mirrorIsRead = mirrorIsRead;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.#random.below(items.length)] as T;
  }

  chance(oneIn: number): boolean {
    return this.#random.below(oneIn) === 0;
  }

  number(): number {
    return this.#random.below(20);
  }

  /**
   * The possible inputs of a computation. Without circles, those before it in the list. Links lead to the first half of
   * them.
   */
  place(reader: string): Place {
    if (this.#mirrorIsRead && MIRROR_READERS.includes(reader) && this.chance(3)) return { id: MIRROR, path: [] };
    const before = this.#withCircles ? NODES : NODES.slice(0, NODES.indexOf(reader));
    if (before.length > 0 && this.chance(2)) {
      return { id: this.pick(before), path: this.pick<string[]>([[], ["a"], ["b", "c"], ["b"]]) };
    }
    const paths = [["a"], ["b"], [], ["list"], ["list", "0"], ["b", "c"]];
    if (this.#mayFollow(reader)) paths.push(["link"], ["link"], ["link", "a"], ["link", "b", "c"], ["link", "link"]);
    return { id: this.pick(DOCUMENTS), path: this.pick(paths) };
  }

  formula(reader: string, depth = 0): Formula {
    const place = () => this.place(reader);
    const kind = this.pick(["sum", "sum", "choice", "choice", "coarse", "pair", "fragile", "parent"] as const);
    switch (kind) {
      case "sum":
        return { kind, places: Array.from({ length: 1 + this.#random.below(3) }, place) };
      case "choice":
        return { kind, condition: place(), odd: place(), even: place() };
      case "pair":
        return { kind, x: place(), y: place() };
      case "parent":
        if (depth > 1) return { kind: "coarse", place: place() };
        return { kind, condition: place(), inner: this.formula(reader, depth + 1), place: place() };
      default:
        return { kind, place: place() };
    }
  }

  /** The target of a link; undefined for none. Without circles, only a target that comes after no follower of links. */
  target(): Place | undefined {
    if (this.chance(5)) return undefined;
    const nodes = this.#withCircles ? NODES : NODES.slice(0, NODES.length / 2);
    const id = this.chance(2) ? this.pick(nodes) : this.pick(DOCUMENTS);
    return { id, path: this.pick<string[]>([[], [], ["a"], ["b"]]) };
  }

  #mayFollow(reader: string): boolean {
    return this.#withCircles || NODES.indexOf(reader) >= NODES.length / 2;
  }
}
