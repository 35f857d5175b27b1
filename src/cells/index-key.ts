/**
 * Keys of indexes as text. The order of the texts, by UTF-16 code units, is the order of the keys: component by
 * component, and in a component `null` before `false` before `true` before numbers before texts. A key that is the
 * beginning of another one is the beginning of its text too. SPEC: R96.
 */
import { COLLECTION_KEY_MAX } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";

/** A component of an index key. `undefined` counts as `null`. */
export type IndexValue = string | number | boolean | null | undefined;

/** A key, an id or a query that a collection does not take. */
export type CollectionErrorCode = "COLLECTION_MISUSE";

/** Wrong use of a collection, or an element that its index cannot order. */
export class CollectionError extends MillraceError<CollectionErrorCode> {
  override readonly name = "CollectionError";
}

/** Ends a text; lower than every unit of an escaped text. */
const END = "\u0001";
const ESCAPE = "\u0002";
/** Follows every text that begins with the same units. */
const LAST = "\uffff";

export function encodeKey(values: readonly IndexValue[], what: string): string {
  let key = "";
  for (const value of values) key += encode(value, what);
  if (key.length <= COLLECTION_KEY_MAX) return key;
  throw new CollectionError(
    "COLLECTION_MISUSE",
    `${what} has a key of ${key.length} characters, and at most ${COLLECTION_KEY_MAX} are kept: use a shorter text`,
  );
}

/** An upper bound of all keys that begin with these values. */
export function lastKey(values: readonly IndexValue[], what: string): string {
  return encodeKey(values, what) + LAST;
}

function encode(value: unknown, what: string): string {
  if (value === null || value === undefined) return "0";
  if (value === false) return "1";
  if (value === true) return "2";
  if (typeof value === "number" && !Number.isNaN(value)) return `3${sortableNumber(value)}`;
  if (typeof value === "string") return `4${escaped(value)}${END}`;
  throw new CollectionError(
    "COLLECTION_MISUSE",
    `${what} has a key with ${typeof value === "number" ? "NaN" : `a value of type ${typeof value}`}: use texts, numbers, booleans and null`,
  );
}

function escaped(text: string): string {
  if (!text.includes(END) && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0004`).replaceAll(END, `${ESCAPE}\u0003`);
}

const bits = new DataView(new ArrayBuffer(8));

/** The bits of a double, changed so that their order as text is the order of the numbers. */
function sortableNumber(number: number): string {
  bits.setFloat64(0, number === 0 ? 0 : number);
  const [high, low] = [bits.getUint32(0), bits.getUint32(4)];
  // The sign bit is set for negative numbers, whose other bits run the wrong way.
  const isNegative = high >= 0x8000_0000;
  const [first, second] = isNegative ? [~high >>> 0, ~low >>> 0] : [(high | 0x8000_0000) >>> 0, low];
  return first.toString(16).padStart(8, "0") + second.toString(16).padStart(8, "0");
}
