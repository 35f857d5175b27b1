/**
 * Letting values in and out of a replica.
 *
 * In: `admit` checks that a value is pure JSON and copies it, in one walk, so that its giver can go on changing his own. Fields
 * that are not enumerable stay behind, and so do symbols, as with a message (M32): looking for them takes longer than the copy.
 * Where the new value equals the old one the old identity is kept, so that comparing stops at the first shared reference.
 * Out: `handOut` freezes what a reader gets, down to what is frozen already. A frozen container is never changed again, an
 * unfrozen one is the replica's alone: that one bit tells whether a write may happen in place. SPEC: S41-S43.
 */
import { DEPTH_MAX, DOCUMENT_VALUES_MAX } from "../limits.ts";
import { isCleanText, isJsonObject, type Json, type JsonArray, type JsonObject } from "../message/json.ts";
import { show } from "../message/problem.ts";
import { type Container, childOf, setOwn, shallowCopy } from "./patch.ts";
import { StoreError } from "./store.ts";

/**
 * The value as the replica may keep it: `previous` itself where nothing differs. What is kept that way is frozen, since it now
 * stands in two places. Throws for what is not pure JSON, and for what is nested too deeply at that depth of its document.
 */
export function admit(value: unknown, previous: Json | undefined, depth = 0): Json {
  if (isPlainLeaf(value, previous)) return value;
  return new Admission().admit(value, previous, depth);
}

/** The same for a value that is replaced whole or not at all: it is frozen at once, which costs less than a second walk. */
export function admitFrozen(value: unknown, previous: Json | undefined): Json {
  if (isPlainLeaf(value, previous)) return value;
  return new Admission(true).admit(value, previous, 0);
}

/** The same error with the place that the value was for, and what to do; any other as it is. */
export function notAdmitted(error: unknown, place: { toString(): string }): unknown {
  if (!(error instanceof StoreError) || !error.message.startsWith(THE_VALUE)) return error;
  const hint = error.message.endsWith("got undefined") ? "; to take away what is there, delete it" : "";
  return new StoreError(error.code, `cannot write ${place}: ${error.message}${hint}`, { cause: error });
}

const THE_VALUE = "the value";

/** How deep a shareable value may be: it must fit wherever it is put. */
const SHAREABLE_DEPTH_MAX = 8;
/** How many values each shareable value holds. */
const shareable = new WeakMap<object, number>();

/**
 * Admits a value that is going to stand in many places, or in a place that is written again and again: the frozen copy that comes
 * back is taken in as it is wherever it is written.
 */
export function admitShareable(value: Json): Json {
  const admission = new Admission();
  const copy = handOut(admission.admit(value, undefined, DEPTH_MAX - SHAREABLE_DEPTH_MAX));
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

class Admission {
  visited = 0;
  readonly #freezes: boolean;
  /** Steps to the value being admitted, for the error message. */
  readonly #at: (string | number)[] = [];

  constructor(freezes = false) {
    this.#freezes = freezes;
  }

  admit(value: unknown, previous: Json | undefined, depth: number): Json {
    if (++this.visited > DOCUMENT_VALUES_MAX) throw this.#refuse(`holds more than ${DOCUMENT_VALUES_MAX} values`);
    if (isPlainLeaf(value, previous)) return value;
    switch (typeof value) {
      case "string":
        throw this.#refuse("must not contain NUL or a lone surrogate");
      case "number":
        throw this.#refuse(`must be a finite number and not -0, got ${show(value)}`);
      case "object":
        // What a reader was handed is frozen and ours; the same object at the same place is the same value.
        if (value === previous) return previous;
        if (this.#isShareable(value as object, depth)) return value as Json;
        if (depth >= DEPTH_MAX) throw this.#refuse(`is nested deeper than ${DEPTH_MAX}, or contains itself`);
        return Array.isArray(value)
          ? this.#admitArray(value, previous, depth)
          : this.#admitObject(value as object, previous, depth);
      default:
        throw this.#refuse(`must be a JSON value, got ${show(value)}`);
    }
  }

  #isShareable(value: object, depth: number): boolean {
    const values = shareable.get(value);
    if (values === undefined || depth > DEPTH_MAX - SHAREABLE_DEPTH_MAX) return false;
    this.visited += values - 1;
    return true;
  }

  #admitArray(value: readonly unknown[], previous: Json | undefined, depth: number): Json {
    if (Object.getPrototypeOf(value) !== Array.prototype) throw this.#refuse("must be a plain array");
    const old = Array.isArray(previous) ? (previous as JsonArray) : undefined;
    const copy: Json[] = [];
    let same = old !== undefined && old.length === value.length;
    // After the first difference, what follows is compared from the end, so that it keeps its identity when elements are inserted
    // or removed before it.
    const shift = old === undefined ? 0 : old.length - value.length;
    let offset = 0;
    for (let index = 0; index < value.length; index++) {
      const before = old?.[index + offset];
      // What stands where it stood needs no look; most of a long list does.
      if (before !== undefined && this.visited < DOCUMENT_VALUES_MAX && Object.is(value[index], before)) {
        this.visited++;
        same &&= offset === 0;
        copy.push(before);
        continue;
      }
      let item = this.#admitElement(value, index, before, depth + 1);
      if (shift !== 0 && !Object.is(item, before)) {
        const other = old?.[offset === 0 ? index + shift : index];
        if (other !== undefined) item = this.admit(item, other, depth + 1);
        offset = shift;
      }
      same &&= Object.is(item, old?.[index]);
      copy.push(item);
    }
    return same ? handOut(old as Json) : this.#made(copy);
  }

  #made(copy: Json): Json {
    return this.#freezes ? Object.freeze(copy) : copy;
  }

  #admitElement(array: readonly unknown[], index: number, before: Json | undefined, depth: number): Json {
    const value = array[index];
    if (isPlainLeaf(value, before) && this.visited < DOCUMENT_VALUES_MAX) {
      this.visited++;
      return value;
    }
    this.#at.push(index);
    if (value === undefined && !Object.hasOwn(array, index))
      throw this.#refuse("is a hole; sparse arrays are not JSON");
    const item = this.admit(value, before, depth);
    this.#at.pop();
    return item;
  }

  #admitObject(value: object, previous: Json | undefined, depth: number): Json {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null)
      throw this.#refuse(`must be a plain object, got ${show(value)}`);
    const given = value as { readonly [key: string]: unknown };
    return isJsonObject(previous) ? this.#amend(given, previous, depth) : this.#copy(given, depth);
  }

  /** In place of another object: a copy of that one, which has no symbols, put right where a child is another. */
  #amend(value: { readonly [key: string]: unknown }, old: JsonObject, depth: number): Json {
    const keys = Object.keys(value);
    let copy: { [key: string]: Json } | undefined;
    let met = 0;
    for (const key of keys) {
      const before = childOf(old, key);
      if (before !== undefined) met++;
      const item = this.#admitChild(key, value[key], before, depth + 1);
      if (item === before) continue;
      copy ??= { ...old };
      setOwn(copy, key, item);
    }
    if (met !== Object.keys(old).length) return this.#made(pick(copy ?? old, keys));
    return copy === undefined ? handOut(old) : this.#made(copy);
  }

  /** Copied whole, as memory, and then put right: half the cost of building it key by key. */
  #copy(value: { readonly [key: string]: unknown }, depth: number): Json {
    const copy = { ...value } as { [key: string]: Json };
    const symbols = Object.getOwnPropertySymbols(copy);
    for (let i = 0; i < symbols.length; i++) Reflect.deleteProperty(copy, symbols[i] as symbol);
    for (const key of Object.keys(copy)) {
      const given: unknown = copy[key];
      const item = this.#admitChild(key, given, undefined, depth + 1);
      if (item !== given) setOwn(copy, key, item);
    }
    return this.#made(copy);
  }

  #admitChild(key: string, value: unknown, before: Json | undefined, depth: number): Json {
    // A key that is there already was looked at when it came.
    const isKnown = before !== undefined || isCleanText(key);
    if (isKnown && isPlainLeaf(value, before) && this.visited < DOCUMENT_VALUES_MAX) {
      this.visited++;
      return value;
    }
    this.#at.push(key);
    if (!isKnown) throw this.#refuse("key must not contain NUL or a lone surrogate");
    const item = this.admit(value, before, depth);
    this.#at.pop();
    return item;
  }

  #refuse(problem: string): StoreError {
    const where = this.#at.length === 0 ? THE_VALUE : `${THE_VALUE} at /${this.#at.join("/")}`;
    return new StoreError("STORE_MISUSE", `${where} ${problem}`);
  }
}

/** Those of an object's children. */
function pick(object: JsonObject, keys: readonly string[]): JsonObject {
  const picked: { [key: string]: Json } = {};
  for (const key of keys) setOwn(picked, key, childOf(object, key) as Json);
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
  const open: object[] = [Object.freeze(value)];
  for (let container = open.pop(); container !== undefined; container = open.pop()) {
    const children = Array.isArray(container) ? container : Object.values(container);
    for (let i = 0; i < children.length; i++) {
      const child: unknown = children[i];
      if (typeof child === "object" && child !== null && !isHandedOut(child)) open.push(Object.freeze(child));
    }
  }
  return value;
}

/** In-place writing: what was handed out is copied, what was not is the replica's own. */
export function ownUnlessHandedOut(container: Container): Container {
  return isHandedOut(container) ? shallowCopy(container) : container;
}
