/**
 * Pure JSON: the values that a message may carry, and their check.
 *
 * A value is pure if writing it as JSON and reading it back gives an equal value in every store. Values are not
 * coerced: `undefined`, NaN, infinities, -0 (JSON writes 0), BigInt, functions, symbols, instances, accessors, holes
 * and cycles are refused, and so are NUL and lone surrogates, which Postgres cannot store. SPEC: M6, M7, M8.
 *
 * The walk recurses up to the depth limit, and visits at most as many values as the size limit has bytes, so that a
 * small graph of shared references cannot expand into an endless tree.
 */

import { DEPTH_MAX, OBJECT_KEYS_MAX, PAYLOAD_BYTES_MAX } from "../limits.ts";
import { type Problem, show, within } from "./problem.ts";

/** An object of JSON values. */
export type JsonObject = { readonly [key: string]: Json };
/** An array of JSON values. */
export type JsonArray = readonly Json[];
/** Any JSON value, deeply read-only. */
export type Json = null | boolean | number | string | JsonArray | JsonObject;

/** Limits of a JSON value: bytes, depth and keys. */
export interface JsonLimits {
  /** Bytes of UTF-8 text; for a value in memory, the number of values in it (each takes at least one byte). */
  readonly bytesMax: number;
  /** Containers around the innermost value; `[]` has depth 1. */
  readonly depthMax: number;
  readonly keysMax: number;
}

export const VALUE_LIMITS: JsonLimits = {
  bytesMax: PAYLOAD_BYTES_MAX,
  depthMax: DEPTH_MAX,
  keysMax: OBJECT_KEYS_MAX,
};

/** Limits of data, which is one level deep in its message. */
export const DATA_LIMITS: JsonLimits = { ...VALUE_LIMITS, depthMax: DEPTH_MAX - 1 };

/** How to treat fields whose value is undefined. JSON leaves them out, so a copy may too. */
export type UndefinedFields = "refused" | "left-out";

/** Why `value` is not pure JSON; undefined if it is. */
export function findImpurity(
  value: unknown,
  limits: JsonLimits = VALUE_LIMITS,
  undefinedFields: UndefinedFields = "refused",
): Problem | undefined {
  return new Inspection(limits, undefinedFields).inspect(value);
}

/** Text that every store can hold: no lone surrogate, no NUL. */
export function isCleanText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

class Inspection {
  readonly #limits: JsonLimits;
  readonly #undefinedFields: UndefinedFields;
  /** The containers that hold the value now inspected, outermost first. */
  readonly #ancestors: object[] = [];
  /** Values visited so far. */
  #visited = 0;

  constructor(limits: JsonLimits, undefinedFields: UndefinedFields) {
    this.#limits = limits;
    this.#undefinedFields = undefinedFields;
  }

  inspect(value: unknown): Problem | undefined {
    if (++this.#visited > this.#limits.bytesMax) return wrong(`holds more than ${this.#limits.bytesMax} values`);
    switch (typeof value) {
      case "string":
        return isCleanText(value) ? undefined : uncleanText("text");
      case "boolean":
        return undefined;
      case "number":
        if (!Number.isFinite(value)) return wrong(`must be a finite number, got ${value}`);
        return Object.is(value, -0) ? wrong("must not be -0, which JSON writes as 0") : undefined;
      case "object":
        return value === null ? undefined : this.#inspectContainer(value);
      default:
        return wrong(`must be a JSON value, got ${show(value)}`);
    }
  }

  #inspectContainer(container: object): Problem | undefined {
    const ancestors = this.#ancestors;
    if (ancestors.includes(container)) return wrong("is a cycle: it contains itself");
    if (ancestors.length >= this.#limits.depthMax) return wrong(`is nested deeper than ${this.#limits.depthMax}`);
    ancestors.push(container);
    const problem = Array.isArray(container) ? this.#inspectArray(container) : this.#inspectObject(container);
    ancestors.pop();
    return problem;
  }

  #inspectArray(array: readonly unknown[]): Problem | undefined {
    if (Object.getPrototypeOf(array) !== Array.prototype) return wrong(`must be a plain array, got ${instance(array)}`);
    // Checked before the names are listed: an array of 4 billion holes is one small object.
    if (array.length > this.#limits.bytesMax) return wrong(`holds more than ${this.#limits.bytesMax} values`);
    for (let index = 0; index < array.length; index++) {
      const property = Object.getOwnPropertyDescriptor(array, index);
      if (property === undefined) return within(index, wrong("is a hole: sparse arrays are not JSON"));
      const problem = this.#inspectProperty(property);
      if (problem !== undefined) return within(index, problem);
    }
    if (Object.getOwnPropertyNames(array).length !== array.length + 1 || hasSymbols(array)) {
      return wrong("must be a plain array, but has properties besides its elements");
    }
    return undefined;
  }

  #inspectObject(object: object): Problem | undefined {
    const prototype: unknown = Object.getPrototypeOf(object);
    if (prototype !== Object.prototype && prototype !== null) {
      return wrong(`must be a plain object, got ${instance(object)}`);
    }
    if (hasSymbols(object)) return wrong("has a symbol for a key");
    const keys = Object.getOwnPropertyNames(object);
    if (keys.length > this.#limits.keysMax) {
      return wrong(`has ${keys.length} keys; an object may have ${this.#limits.keysMax}`);
    }
    for (const key of keys) {
      if (!isCleanText(key)) return within(key, uncleanText("key"));
      const property = Object.getOwnPropertyDescriptor(object, key);
      if (this.#undefinedFields === "left-out" && isUndefinedField(property)) continue;
      const problem = property === undefined ? wrong("vanished while it was read") : this.#inspectProperty(property);
      if (problem !== undefined) return within(key, problem);
    }
    return undefined;
  }

  #inspectProperty(property: PropertyDescriptor): Problem | undefined {
    if (property.get !== undefined || property.set !== undefined) return wrong("must be data, got an accessor");
    if (property.enumerable !== true) return wrong("is not enumerable, so JSON would drop it");
    return this.inspect(property.value);
  }
}

function isUndefinedField(property: PropertyDescriptor | undefined): boolean {
  return property !== undefined && "value" in property && property.value === undefined && property.enumerable === true;
}

function hasSymbols(object: object): boolean {
  return Object.getOwnPropertySymbols(object).length > 0;
}

/** Usual replacements for these classes. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ["Date", "keep its toISOString() or its time in milliseconds"],
  ["Map", "keep Object.fromEntries(map)"],
  ["Set", "keep [...set]"],
]);

/** Describes a non-plain object, with a replacement if one is known. */
export function instance(object: object): string {
  const maker: unknown = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(object), "constructor")?.value;
  if (typeof maker !== "function") return "an object with another prototype";
  const instead = INSTEAD.get(maker.name);
  return `an instance of ${show(maker.name)}${instead === undefined ? "" : `; ${instead}`}`;
}

function uncleanText(what: "text" | "key"): Problem {
  return wrong(`${what} must not contain NUL or a lone surrogate`);
}

function wrong(problem: string): Problem {
  return { path: "", problem };
}
