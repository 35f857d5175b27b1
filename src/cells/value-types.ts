/** The types of values: as a reader gets them (`Frozen`), and as a cell can keep them (`AsJson`). SPEC: R80-R83. */
import type { Json } from "../message/json.ts";

/** Deeply read-only: every value that is handed out is frozen. */
export type Frozen<T> = Json extends T
  ? T
  : T extends (...parameters: never[]) => unknown
    ? T
    : { readonly [K in keyof T]: Frozen<T[K]> };

/**
 * `T` if it is JSON; else the same type, with a sentence in place of each part that is not JSON. The sentence names the
 * remedy. It maps and does not constrain, so interfaces and optional fields are fine.
 */
export type AsJson<T> = [T] extends [JsonForm<T>] ? T : JsonForm<T>;

/** The type of a cell's value: JSON, and frozen. */
export type Stored<T> = Frozen<AsJson<T>>;

/** A parameter for a value to keep. In this form, and in no simpler one, the compiler infers `number` from `0`. */
export type Initial<T> = T extends AsJson<T> ? T : AsJson<T>;

type JsonForm<T> = Json extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint
      ? "a bigint is not JSON; keep String(value)"
      : T extends symbol
        ? "a symbol is not JSON; keep a string"
        : T extends Date
          ? "a Date is not JSON; keep value.toISOString() or value.getTime()"
          : T extends ReadonlyMap<unknown, unknown>
            ? "a Map is not JSON; keep Object.fromEntries(map), or use a collection"
            : T extends ReadonlySet<unknown>
              ? "a Set is not JSON; keep [...set]"
              : T extends PromiseLike<unknown>
                ? "a Promise is not JSON; await it and keep its result"
                : T extends ((...parameters: never[]) => unknown) | (abstract new (...parameters: never[]) => unknown)
                  ? "a function is not JSON; keep data, and choose the function when the data is read"
                  : { [K in keyof T]: JsonForm<T[K]> };

/** Keys that `cell.key` takes. */
export type KeyOf<T> = (T extends unknown ? keyof T & (string | number) : never) | number;

/**
 * The type below a key. It includes `undefined` where the key may be missing: optional fields, records, array elements.
 */
export type Below<T, K> = Json extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? undefined
    : T extends readonly (infer Element)[]
      ? Element | undefined
      : K extends keyof T
        ? string extends keyof T
          ? T[K] | undefined
          : T[K]
        : unknown;
