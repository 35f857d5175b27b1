/** Copies of JSON values: what crosses a boundary shares nothing with what stays. A `__proto__` key is copied as the data it is. */
import { isJsonObject, type Json } from "./json.ts";

/** A deep copy of a value that is known to be pure JSON of bounded depth. */
export function copyJson<T extends Json>(value: T): T;
export function copyJson(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((item) => copyJson(item));
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) {
    const child = copyJson(value[key] as Json);
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: child, enumerable: true, configurable: true, writable: true });
    else copy[key] = child;
  }
  return copy;
}
