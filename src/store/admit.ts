/**
 * Copies values into a replica and freezes values that leave it. SPEC: S41-S43.
 *
 * In: `admit` checks that a value is pure JSON and copies it in one walk, so that the caller may change the original.
 * Non-enumerable fields and symbols are not copied, as with a message (M32): a search for them would cost more than the
 * copy. -0 becomes 0. A field whose value is undefined is left out, as JSON does. Subtrees equal to the previous value
 * keep their identity, so that comparisons stop at shared references.
 *
 * Out: `handOut` freezes the value. A frozen container is never changed; an unfrozen one belongs to the replica alone
 * and may be written in place.
 */
import { DEPTH_MAX, DOCUMENT_VALUES_MAX } from "../limits.ts";
import { instance, isCleanText, isJsonObject, type Json, type JsonArray, type JsonObject } from "../message/json.ts";
import { pathText } from "../message/path.ts";
import { show } from "../message/problem.ts";
import { type Container, childAt, setOwn, shallowCopy } from "./patch.ts";
import { StoreError } from "./store.ts";

/**
 * The value as stored in the replica: `previous` itself if it is equal. A reused part is frozen because it is now
 * shared. Throws if the value is not pure JSON or is nested too deeply for its depth in the document.
 */
export function admit(value: unknown, previous: Json | undefined, depth = 0): Json {
  return isPlainLeaf(value, previous) ? value : new Admission(false).begin(value, previous, depth);
}

/** The same for a value that is only replaced whole: it is frozen at once, which saves a second walk. */
export function admitFrozen(value: unknown, previous: Json | undefined): Json {
  return isPlainLeaf(value, previous) ? value : new Admission(true).begin(value, previous, 0);
}

/** Adds the place and a remedy to an error of `admit`; returns other errors unchanged. */
export function notAdmitted(error: unknown, place: { toString(): string }): unknown {
  if (!(error instanceof StoreError) || !error.message.startsWith(THE_VALUE)) return error;
  const hint = error.message.endsWith("got undefined") ? "; to take away what is there, delete it" : "";
  return new StoreError(error.code, `cannot write ${place}: ${error.message}${hint}`, { cause: error });
}

const THE_VALUE = "the value";
const NO_ELEMENTS: JsonArray = Object.freeze([]);

/** Depth limit of a shareable value, so that it fits at any place. */
const SHAREABLE_DEPTH_MAX = 8;
/** The number of values in each shareable value. */
const shareable = new WeakMap<object, number>();

/** Admits a value that is written in many places or often: the frozen result is accepted later without a copy. */
export function admitShareable(value: Json): Json {
  const admission = new Admission(false);
  const copy = handOut(admission.begin(value, undefined, DEPTH_MAX - SHAREABLE_DEPTH_MAX));
  if (typeof copy === "object" && copy !== null) shareable.set(copy, admission.visited);
  return copy;
}

/** Whether a leaf needs no further check. `Admission` reports the problem of other values. */
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

/** The problem of a value. Thrown through the walk; every level adds its step. */
class Refusal {
  readonly problem: string;
  readonly steps: (string | number)[] = [];

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Path steps shown in an error: a cyclic value would give an endless path. */
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
    // `null` is a leaf. JSON writes -0 as 0.
    if (typeof value !== "object") {
      if (value === 0) return 0;
      throw refusalOf(value);
    }
    const container = value as object;
    // A value from a reader is frozen and ours; the same object at the same place is unchanged.
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
    // After the first difference, elements are compared from the end, so that they keep their identity when elements
    // are inserted or removed before them.
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
    // An element that has not moved needs no check; most elements of a long list have not.
    if (before !== undefined && Object.is(value, before) && ++this.visited <= DOCUMENT_VALUES_MAX) return before;
    if (value === undefined && !Object.hasOwn(array, index)) throw new Refusal("is a hole; sparse arrays are not JSON");
    return this.#admit(value, before, depth);
  }

  /** Replaces another object: copies the old one, which has no symbols, and corrects the children that differ. */
  #amend(value: { readonly [key: string]: unknown }, old: JsonObject, depth: number): Json {
    let copy: { [key: string]: Json } | undefined;
    let met = 0;
    // Pure JSON inherits no enumerable property, and this loop creates no list of keys.
    for (const key in value) {
      // Left out, as JSON does; if the old object has the key, the keys no longer match and `pick` drops it.
      if (value[key] === undefined) continue;
      const before = childAt(old, key);
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

  /** Copies the whole object and then corrects it: half the cost of a copy key by key. */
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
      // An existing key was checked when it was added.
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

/** Only the listed children: a getter may have added unchecked keys to its object. */
function pick(object: JsonObject, keys: readonly string[]): JsonObject {
  const picked: { [key: string]: Json } = {};
  for (const key of keys) {
    const child = childAt(object, key);
    if (child !== undefined) setOwn(picked, key, child);
  }
  return picked;
}

/** Whether readers may hold it. Then it is frozen with all values below it and never changes. */
export function isHandedOut(container: object): boolean {
  // Only freezing makes a value non-extensible here. `Object.isFrozen` would check every property of a wide object.
  return !Object.isExtensible(container);
}

/** Freezes a value that leaves the replica, down to values frozen before, and returns it. */
export function handOut<T extends Json | undefined>(value: T): T {
  if (typeof value !== "object" || value === null || isHandedOut(value)) return value;
  Object.freeze(value);
  // Creates no list of children or keys: half the time, and most of the memory that a small value took.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) handOut(value[i]);
  else for (const key in value) handOut((value as JsonObject)[key]);
  return value;
}

/** Ownership rule of in-place writes: copy a frozen container, keep an unfrozen one. */
export function ownUnlessHandedOut(container: Container): Container {
  return isHandedOut(container) ? shallowCopy(container) : container;
}
