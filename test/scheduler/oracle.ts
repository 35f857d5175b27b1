/**
 * The oracle: the values of all computations of a program, derived from the documents alone, by recursion, without
 * state. It also lists the reads of each, and so the demanded nodes. A computation that reads itself, directly or not,
 * has no defined value; it and its dependents are `circular` and are not compared.
 */
import type { Json } from "../../src/message/json.ts";
import { getAt } from "../../src/message/path.ts";
import { asLink } from "../../src/store/document.ts";
import { evaluate, type Formula, type Place } from "./oracle-program.ts";

export type Result = { readonly kind: "value"; readonly value: Json | undefined } | { readonly kind: "circular" };

interface Evaluation {
  result: Result | undefined;
  /** The documents and outputs it has read. */
  readonly reads: Set<string>;
}

class CircleFound extends Error {}

const HOPS_MAX = 32;

export class Oracle {
  readonly #formulas: ReadonlyMap<string, Formula>;
  readonly #document: (id: string) => Json | undefined;
  readonly #done = new Map<string, Evaluation>();

  constructor(formulas: ReadonlyMap<string, Formula>, document: (id: string) => Json | undefined) {
    this.#formulas = formulas;
    this.#document = document;
  }

  /** The value of a computation. */
  result(id: string): Result {
    const { result } = this.#evaluation(id);
    return result ?? { kind: "circular" };
  }

  /** The value that a reader of a place gets. */
  seen(place: Place): Result {
    try {
      return { kind: "value", value: this.#read(place, new Set()) };
    } catch (error) {
      if (error instanceof CircleFound) return { kind: "circular" };
      if (error instanceof RangeError) return { kind: "value", value: undefined };
      throw error;
    }
  }

  /** The computations, and their children, that readers of the places demand. */
  demanded(places: readonly Place[]): Set<string> {
    const found = new Set<string>();
    for (const place of places) {
      try {
        this.#read(place, found);
      } catch (error) {
        if (!(error instanceof CircleFound) && !(error instanceof RangeError)) throw error;
      }
    }
    for (const id of found) {
      if (this.#formulas.has(id)) for (const read of this.#evaluation(id).reads) found.add(read);
    }
    return found;
  }

  #evaluation(id: string): Evaluation {
    const known = this.#done.get(id);
    if (known) return known;
    const evaluation: Evaluation = { result: undefined, reads: new Set() };
    this.#done.set(id, evaluation);
    try {
      const formula = this.#formulas.get(id) as Formula;
      const value = this.#evaluate(formula, evaluation.reads);
      evaluation.result = { kind: "value", value };
    } catch (error) {
      // A computation that throws has no value; so it has when its links go around.
      evaluation.result = error instanceof CircleFound ? { kind: "circular" } : { kind: "value", value: undefined };
    }
    return evaluation;
  }

  #evaluate(formula: Formula, reads: Set<string>): Json {
    return evaluate(formula, (place) => this.#read(place, reads), {
      // A parent that reads a child which has failed fails with the same error.
      keep: (inner) => this.#evaluate(inner, reads),
      letGo: () => undefined,
    });
  }

  #read(place: Place, reads: Set<string>): Json | undefined {
    let { id, path } = place;
    for (let hops = 0; hops <= HOPS_MAX; hops++) {
      reads.add(id);
      const root = this.#root(id);
      const found = firstLink(root, path);
      if (!found) return root === undefined ? undefined : getAt(root, path);
      id = found.link.id;
      path = [...found.link.path, ...path.slice(found.depth)];
    }
    throw new RangeError("the links go around in a circle");
  }

  #root(id: string): Json | undefined {
    if (!this.#formulas.has(id)) return this.#document(id);
    const { result } = this.#evaluation(id);
    // Undefined: it is being worked out right now.
    if (result === undefined || result.kind === "circular") throw new CircleFound();
    return result.value;
  }
}

function firstLink(root: Json | undefined, path: readonly string[]) {
  for (let depth = 0; depth <= path.length && root !== undefined; depth++) {
    const link = asLink(getAt(root, path.slice(0, depth)));
    if (link) return { link, depth };
  }
  return undefined;
}
