/**
 * Copies of JSON values, so that values on both sides of a boundary share no object. A `__proto__` key is copied as
 * data.
 *
 * `copyJson` is for values that are known to be pure. `cloneJson` checks and copies foreign values in one walk, at a
 * quarter of the cost of two. Like a structured clone, it copies enumerable fields and leaves out symbols, hidden and
 * undefined fields; other impure values are refused. SPEC: M32.
 */
import {
  DATA_LIMITS,
  findImpurity,
  isCleanText,
  isJsonObject,
  type Json,
  type JsonLimits,
  type JsonObject,
  VALUE_LIMITS,
} from "./json.ts";
import type { Problem } from "./problem.ts";

/** A deep copy of a value that is known to be pure JSON of bounded depth. */
export function copyJson<T extends Json>(value: T): T;
export function copyJson(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((item) => copyJson(item));
  const copy: { [key: string]: Json } = {};
  // Pure JSON inherits no enumerable property, and this loop creates no list of keys.
  for (const key in value) {
    // Only `cloneJson` calls with such a field; JSON leaves it out.
    if (value[key] === undefined) continue;
    const child = copyJson(value[key] as Json);
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: child, enumerable: true, configurable: true, writable: true });
    else copy[key] = child;
  }
  return copy;
}

/** The same, deeply frozen. */
export function frozenCopy<T extends Json>(value: T): T {
  return freeze(copyJson(value));
}

function freeze<T extends Json>(value: T): T {
  if (typeof value === "object" && value !== null) for (const child of Object.values(value)) freeze(child);
  return Object.freeze(value);
}

/** The same for an object that rarely contains others, like metadata: three times as fast if it does not. */
export function copyFlat(object: JsonObject): JsonObject {
  for (const key in object) {
    const value = object[key];
    if (typeof value === "object" && value !== null) return copyJson(object);
  }
  return { ...object };
}

export type Clone =
  /** The value takes at most `bytesAtMost` bytes as JSON text, and mostly far fewer. */
  | { readonly kind: "clone"; readonly value: Json; readonly bytesAtMost: number }
  | { readonly kind: "impure"; readonly problem: Problem; readonly isTooLarge?: boolean };

/** A deep copy of an arbitrary value, or the reason of a refusal. */
export function cloneJson(value: unknown, limits: JsonLimits = VALUE_LIMITS): Clone {
  const cloning = new Cloning(limits);
  const clone = cloning.clone(value, 0);
  if (clone !== UNUSUAL) return { kind: "clone", value: clone, bytesAtMost: cloning.bytesAtMost };
  // Invalid or only unusual: the slow check decides and reports the place.
  const problem = findImpurity(value, limits, "left-out");
  if (problem) return { kind: "impure", problem };
  return { kind: "clone", value: copyJson(value as Json), bytesAtMost: Number.POSITIVE_INFINITY };
}

/** A deep copy of the data of a message; also refused if it exceeds the bytes of a message. SPEC: M36. */
export function cloneData(data: unknown, limits = DATA_LIMITS, carrier = "a message"): Clone {
  const clone = cloneJson(data, limits);
  if (clone.kind === "impure" || clone.bytesAtMost <= limits.bytesMax) return clone;
  const bytes = encoder.encode(JSON.stringify(clone.value)).length;
  if (bytes <= limits.bytesMax) return clone;
  const bound = `${carrier} carries at most ${limits.bytesMax}`;
  const problem = `takes ${bytes} bytes as JSON; ${bound}: send it in parts, or keep it in a file and send its name`;
  return { kind: "impure", problem: { path: "", problem }, isTooLarge: true };
}

const encoder = new TextEncoder();
/** A character of a text takes at most six bytes, as an escape. */
const CHARACTER_BYTES_MAX = 6;
/** A number, or brackets and quotes, with a comma and a colon. */
const VALUE_BYTES_MAX = 28;

/** Marks a value that the fast walk leaves to the slow check. */
const UNUSUAL = Symbol("unusual");

class Cloning {
  readonly #limits: JsonLimits;
  /** Limit of further values: a small graph of shared references must not expand into an endless tree. */
  #left: number;
  /** Characters of texts and keys so far. */
  #characters = 0;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
    this.#left = limits.bytesMax;
  }

  get bytesAtMost(): number {
    return (this.#limits.bytesMax - this.#left) * VALUE_BYTES_MAX + this.#characters * CHARACTER_BYTES_MAX;
  }

  clone(value: unknown, depth: number): Json | typeof UNUSUAL {
    if (--this.#left < 0) return UNUSUAL;
    switch (typeof value) {
      case "string":
        this.#characters += value.length;
        return isCleanText(value) ? value : UNUSUAL;
      case "boolean":
        return value;
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? value : UNUSUAL;
      case "object":
        if (value === null) return null;
        if (depth >= this.#limits.depthMax) return UNUSUAL;
        return Array.isArray(value) ? this.#cloneArray(value, depth) : this.#cloneObject(value, depth);
      default:
        return UNUSUAL;
    }
  }

  #cloneArray(array: readonly unknown[], depth: number): Json | typeof UNUSUAL {
    if (Object.getPrototypeOf(array) !== Array.prototype || array.length > this.#left) return UNUSUAL;
    const copy: Json[] = [];
    for (let index = 0; index < array.length; index++) {
      const child = this.clone(array[index], depth + 1);
      if (child === UNUSUAL) return UNUSUAL;
      copy.push(child);
    }
    return copy;
  }

  #cloneObject(object: object, depth: number): Json | typeof UNUSUAL {
    if (Object.getPrototypeOf(object) !== Object.prototype) return UNUSUAL;
    const copy: { [key: string]: Json } = {};
    let keys = 0;
    for (const key in object) {
      this.#characters += key.length;
      if (key === "__proto__" || ++keys > this.#limits.keysMax || !isCleanText(key)) return UNUSUAL;
      const given = (object as { readonly [key: string]: unknown })[key];
      if (given === undefined) continue;
      const child = this.clone(given, depth + 1);
      if (child === UNUSUAL) return UNUSUAL;
      copy[key] = child;
    }
    return copy;
  }
}
