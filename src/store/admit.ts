/**
 * Letting values in and out of a replica.
 *
 * In: `admit` checks that a value is pure JSON and copies it, in one walk, so that its giver can go on changing his own. Fields
 * that are not enumerable stay behind, and so do symbols, as with a message (M32): looking for them takes longer than the copy. -0 is
 * kept as 0. A field whose value is undefined is left out, as JSON does.
 * Where the new value equals the old one the old identity is kept, so that comparing stops at the first shared reference.
 * Out: `handOut` freezes what a reader gets, down to what is frozen already. A frozen container is never changed again, an
 * unfrozen one is the replica's alone: that one bit tells whether a write may happen in place. SPEC: S41-S43.
 */
import { DEPTH_MAX, DOCUMENT_VALUES_MAX } from "../limits.ts";
import { instance, isCleanText, isJsonObject, type Json, type JsonArray, type JsonObject } from "../message/json.ts";
import { pathText } from "../message/path.ts";
import { show } from "../message/problem.ts";
import { type Container, childOf, setOwn, shallowCopy } from "./patch.ts";
import { StoreError } from "./store.ts";

/**
 * The value as the replica may keep it: `previous` itself where nothing differs. What is kept that way is frozen, since it now
 * stands in two places. Throws for what is not pure JSON, and for what is nested too deeply at that depth of its document.
 */
export function admit(value: unknown, previous: Json | undefined, depth = 0): Json {
  return isPlainLeaf(value, previous) ? value : new Admission(false).begin(value, previous, depth);
}

/** The same for a value that is replaced whole or not at all: it is frozen at once, which costs less than a second walk. */
export function admitFrozen(value: unknown, previous: Json | undefined): Json {
  return isPlainLeaf(value, previous) ? value : new Admission(true).begin(value, previous, 0);
}

/** The same error with the place that the value was for, and what to do; any other as it is. */
export function notAdmitted(error: unknown, place: { toString(): string }): unknown {
  if (!(error instanceof StoreError) || !error.message.startsWith(THE_VALUE)) return error;
  const hint = error.message.endsWith("got undefined") ? "; to take away what is there, delete it" : "";
  return new StoreError(error.code, `cannot write ${place}: ${error.message}${hint}`, { cause: error });
}

const THE_VALUE = "the value";
const NO_ELEMENTS: JsonArray = Object.freeze([]);

/** How deep a shareable value may be: it must fit wherever it is put. */
const SHAREABLE_DEPTH_MAX = 8;
/** How many values each shareable value holds. */
const shareable = new WeakMap<object, number>();

/**
 * Admits a value that is going to stand in many places, or in a place that is written again and again: the frozen copy that comes
 * back is taken in as it is wherever it is written.
 */
export function admitShareable(value: Json): Json {
  const admission = new Admission(false);
  const copy = handOut(admission.begin(value, undefined, DEPTH_MAX - SHAREABLE_DEPTH_MAX));
  if (typeof copy === "object" && copy !== null) shareable.set(copy, admission.visited);
  return copy;
}

/** A leaf that needs no further look; what is wrong with another, `Admission` says. */
export function isPlainLeaf(value: unknown, previous: Json | undefined): value is Json {
  switch (typeof value) {
    case "string":
      return value === previous || isCleanText(value);
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    default:
      return typeof value === "boolean" || value === null;
  }
}

/** What is wrong with a value. Thrown through the walk, on which every level says where it has come from. */
class Refusal {
  readonly problem: string;
  readonly steps: (string | number)[] = [];

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Steps of a place that are shown: of a value that contains itself, more say nothing. */
const STEPS_SHOWN_MAX = 12;

function placeOf(steps: readonly (string | number)[]): string {
  if (steps.length === 0) return "";
  return ` at ${pathText(steps.slice(0, STEPS_SHOWN_MAX).map(String))}${steps.length > STEPS_SHOWN_MAX ? "/…" : ""}`;
}

class Admission {
  visited = 0;
  readonly #freezes: boolean;

  constructor(freezes: boolean) {
    this.#freezes = freezes;
  }

  begin(value: unknown, previous: Json | undefined, depth: number): Json {
    try {
      return this.#admit(value, previous, depth);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      throw new StoreError("STORE_MISUSE", `${THE_VALUE}${placeOf(thrown.steps)} ${thrown.problem}`);
    }
  }

  #admit(value: unknown, previous: Json | undefined, depth: number): Json {
    if (++this.visited > DOCUMENT_VALUES_MAX) throw new Refusal(`holds more than ${DOCUMENT_VALUES_MAX} values`);
    return isPlainLeaf(value, previous) ? value : this.#admitOther(value, previous, depth);
  }

  #admitOther(value: unknown, previous: Json | undefined, depth: number): Json {
    // `null` is a leaf. -0 is what JSON would write it as.
    if (typeof value !== "object") {
      if (value === 0) return 0;
      throw refusalOf(value);
    }
    const container = value as object;
    // What a reader was handed is frozen and ours; the same object at the same place is the same value.
    if (container === previous) return previous;
    if (this.#isShareable(container, depth)) return container as Json;
    if (depth >= DEPTH_MAX) throw new Refusal(`is nested deeper than ${DEPTH_MAX}, or contains itself`);
    if (Array.isArray(container)) return this.#admitArray(container, previous, depth + 1);
    const prototype: unknown = Object.getPrototypeOf(container);
    if (prototype !== Object.prototype && prototype !== null)
      throw new Refusal(`must be a plain object, got ${instance(container)}`);
    const given = container as { readonly [key: string]: unknown };
    return isJsonObject(previous) ? this.#amend(given, previous, depth + 1) : this.#copy(given, depth + 1);
  }

  #isShareable(value: object, depth: number): boolean {
    const values = shareable.get(value);
    if (values === undefined || depth > DEPTH_MAX - SHAREABLE_DEPTH_MAX) return false;
    this.visited += values - 1;
    return true;
  }

  #admitArray(value: readonly unknown[], previous: Json | undefined, depth: number): Json {
    if (Object.getPrototypeOf(value) !== Array.prototype) throw new Refusal("must be a plain array");
    const old = Array.isArray(previous) ? (previous as JsonArray) : NO_ELEMENTS;
    const copy: Json[] = [];
    let same = Array.isArray(previous) && old.length === value.length;
    // After the first difference, what follows is compared from the end, so that it keeps its identity when elements are inserted
    // or removed before it.
    const shift = old.length === 0 ? 0 : old.length - value.length;
    let offset = 0;
    let index = 0;
    try {
      for (; index < value.length; index++) {
        const before = old[index + offset];
        let item = this.#admitElement(value, index, before, depth);
        if (shift !== 0 && item !== before) {
          const other = old[offset === 0 ? index + shift : index];
          if (other !== undefined) item = this.#admit(item, other, depth);
          offset = shift;
        }
        same &&= item === old[index];
        copy.push(item);
      }
    } catch (thrown) {
      throw below(index, thrown);
    }
    return same ? handOut(old) : this.#made(copy);
  }

  #admitElement(array: readonly unknown[], index: number, before: Json | undefined, depth: number): Json {
    const value = array[index];
    // What stands where it stood needs no look; most of a long list does.
    if (before !== undefined && Object.is(value, before) && ++this.visited <= DOCUMENT_VALUES_MAX) return before;
    if (value === undefined && !Object.hasOwn(array, index)) throw new Refusal("is a hole; sparse arrays are not JSON");
    return this.#admit(value, before, depth);
  }

  /** In place of another object: a copy of that one, which has no symbols, put right where a child is another. */
  #amend(value: { readonly [key: string]: unknown }, old: JsonObject, depth: number): Json {
    let copy: { [key: string]: Json } | undefined;
    let met = 0;
    // Pure JSON inherits nothing enumerable, and this makes no list of keys.
    for (const key in value) {
      // Left out, as JSON does; if the old object has the key, the keys no longer match and `pick` drops it.
      if (value[key] === undefined) continue;
      const before = childOf(old, key);
      if (before !== undefined) met++;
      const item = this.#admitChild(key, value[key], before, depth);
      if (item === before) continue;
      copy ??= { ...old };
      setOwn(copy, key, item);
    }
    for (const _ in old) met--;
    if (met !== 0) return this.#made(pick(copy ?? old, definedKeys(value)));
    return copy === undefined ? handOut(old) : this.#made(copy);
  }

  /** Copied whole, as memory, and then put right: half the cost of building it key by key. */
  #copy(value: { readonly [key: string]: unknown }, depth: number): Json {
    const copy = { ...value } as { [key: string]: Json };
    const symbols = Object.getOwnPropertySymbols(copy);
    for (let i = 0; i < symbols.length; i++) Reflect.deleteProperty(copy, symbols[i] as symbol);
    for (const key of Object.keys(copy)) {
      const given: unknown = copy[key];
      if (given === undefined) {
        Reflect.deleteProperty(copy, key);
        continue;
      }
      const item = this.#admitChild(key, given, undefined, depth);
      if (!Object.is(item, given)) setOwn(copy, key, item);
    }
    return this.#made(copy);
  }

  #admitChild(key: string, value: unknown, before: Json | undefined, depth: number): Json {
    try {
      // A key that is there already was looked at when it came.
      if (before === undefined && !isCleanText(key)) throw new Refusal("key must not contain NUL or a lone surrogate");
      return this.#admit(value, before, depth);
    } catch (thrown) {
      throw below(key, thrown);
    }
  }

  #made(copy: Json): Json {
    return this.#freezes ? Object.freeze(copy) : copy;
  }
}

function refusalOf(value: unknown): Refusal {
  if (typeof value === "string") return new Refusal("must not contain NUL or a lone surrogate");
  if (typeof value === "number") return new Refusal(`must be a finite number, got ${show(value)}`);
  return new Refusal(`must be a JSON value, got ${show(value)}`);
}

function below(step: string | number, thrown: unknown): unknown {
  if (thrown instanceof Refusal) thrown.steps.unshift(step);
  return thrown;
}

function definedKeys(value: { readonly [key: string]: unknown }): readonly string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined);
}

/** Those of an object's children; a getter may have given its object keys that were not admitted. */
function pick(object: JsonObject, keys: readonly string[]): JsonObject {
  const picked: { [key: string]: Json } = {};
  for (const key of keys) {
    const child = childOf(object, key);
    if (child !== undefined) setOwn(picked, key, child);
  }
  return picked;
}

/** Whether readers may hold it: then it is frozen, with everything below it, and is never changed again. */
export function isHandedOut(container: object): boolean {
  // Nothing here is made non-extensible but by freezing. `Object.isFrozen` looks at every property of a wide object.
  return !Object.isExtensible(container);
}

/** Freezes a value that leaves the replica, down to what is frozen already, and gives it back. */
export function handOut<T extends Json | undefined>(value: T): T {
  if (typeof value !== "object" || value === null || isHandedOut(value)) return value;
  Object.freeze(value);
  // Neither a list of children nor one of keys is made: half the time, and most of what a small value took of memory.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) handOut(value[i]);
  else for (const key in value) handOut((value as JsonObject)[key]);
  return value;
}

/** In-place writing: what was handed out is copied, what was not is the replica's own. */
export function ownUnlessHandedOut(container: Container): Container {
  return isHandedOut(container) ? shallowCopy(container) : container;
}
