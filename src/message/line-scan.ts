/**
 * Scans a JSON text before it is parsed. SPEC: M9, M10.
 *
 * Ten thousand brackets in a 20 KB line parse, and then break every recursive walk. So depth and keys per object are
 * limited on the bytes. The scan also detects texts that *could* contain an impure value (an exponent, a very long
 * number, a -0, an escaped NUL or surrogate): only those are walked after parsing, which for an ordinary message costs
 * more than the scan.
 *
 * It is not a parser: malformed text gets any verdict, but text that parses never gets a wrong "clean".
 */

import type { JsonLimits } from "./json.ts";
import type { Problem } from "./problem.ts";

/** "inspect": parse it, then check the value for purity. */
export type ScanVerdict = "clean" | "inspect" | Problem;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const LOWER_U = 0x75;
const LOWER_D = 0x64;
const LOWER_E = 0x65;
/** `{` and `[` differ in this one bit, and so do `}` and `]`, and upper-case and lower-case letters. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** A number of this many characters, without exponent, is below 1e308 and so finite. */
const FINITE_LENGTH_MAX = 308;

/** Every integer of this many digits is exact in a double. */
const EXACT_DIGITS_MAX = 15;

/** Scans the bytes from `start` to `end`; `depthBefore` is their depth in the whole text. */
export function scanJsonText(
  bytes: Uint8Array,
  start: number,
  end: number,
  limits: JsonLimits,
  depthBefore = 0,
): ScanVerdict {
  const { depthMax, keysMax } = limits;
  let depth = depthBefore;
  let colons = 0;
  let suspect = false;
  /** Whether a token is longer than an exact integer. */
  let hasLong = false;
  /** Start of the current number, literal or white space. */
  let tokenStart = start;

  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    const folded = byte | CASE_BIT;
    if (byte === QUOTE) {
      for (i++; i < end; i++) {
        const inside = bytes[i]!;
        if (inside === QUOTE) break;
        if (inside === BACKSLASH && bytes[++i] === LOWER_U) suspect ||= isSuspectEscape(bytes, i);
      }
    } else if (byte === COLON) {
      colons++;
    } else if (folded === OPEN) {
      if (++depth > depthMax) return { path: "", problem: `is nested deeper than ${depthMax} at byte ${i - start}` };
    } else if (folded === CLOSE) {
      depth--;
    } else if (byte !== COMMA) {
      // Numbers, literals and white space.
      if (folded === LOWER_E) suspect ||= isDigit(bytes[i - 1]);
      else if (byte === MINUS) suspect ||= bytes[i + 1] === ZERO;
      if (i - tokenStart >= EXACT_DIGITS_MAX) hasLong = true;
      continue;
    }
    tokenStart = i + 1;
  }

  // If all colons together are within the limit for one object, no object exceeds it.
  const crowded = colons > keysMax ? findCrowdedObject(bytes, start, end, limits) : undefined;
  const long = hasLong ? checkLongNumbers(bytes, start, end) : undefined;
  return crowded ?? long ?? (suspect ? "inspect" : "clean");
}

/** `\u0000` or a surrogate, `\ud800` to `\udfff`, paired or not; `i` is at the `u`. */
function isSuspectEscape(bytes: Uint8Array, i: number): boolean {
  const first = bytes[i + 1]!;
  if ((first | CASE_BIT) === LOWER_D) return true;
  return first === ZERO && bytes[i + 2] === ZERO && bytes[i + 3] === ZERO && bytes[i + 4] === ZERO;
}

/**
 * A scan for numbers longer than an exact integer, of texts that may contain one: finds an integer that parsing would
 * round, or a number that may overflow.
 */
function checkLongNumbers(bytes: Uint8Array, start: number, end: number): Problem | "inspect" | undefined {
  let verdict: "inspect" | undefined;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      for (i++; i < end && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === MINUS || isDigit(byte)) {
      const from = i;
      while (i + 1 < end && isOfNumber(bytes[i + 1]!)) i++;
      // A longer one is checked after parsing.
      if (i - from >= FINITE_LENGTH_MAX) verdict = "inspect";
      else if (i - from >= EXACT_DIGITS_MAX) {
        const rounded = roundedAt(bytes, from, i + 1, start);
        if (rounded !== undefined) return rounded;
      }
    }
  }
  return verdict;
}

/** The problem of the number at `from` to `to`, if it is an integer that parsing would round. */
function roundedAt(bytes: Uint8Array, from: number, to: number, start: number): Problem | undefined {
  const text = String.fromCharCode(...bytes.subarray(from, to));
  if (!INTEGER.test(text)) return undefined;
  const parsed = Number(text);
  // A double prints with the fewest digits that identify it, followed by zeros.
  if (String(parsed) === text || BigInt(parsed) === BigInt(text)) return undefined;
  const problem = `holds the integer ${text.slice(0, 40)}, which would be rounded at byte ${from - start}; send it as a string`;
  return { path: "", problem };
}

const INTEGER = /^-?[0-9]+$/;

/** Digits, signs, a point, an exponent. */
function isOfNumber(byte: number): boolean {
  return isDigit(byte) || byte === MINUS || byte === 0x2b || byte === 0x2e || (byte | CASE_BIT) === LOWER_E;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/**
 * The second, rarer scan: counts the members of each object, including duplicates. The depth is known to be bounded.
 */
function findCrowdedObject(
  bytes: Uint8Array,
  start: number,
  end: number,
  { depthMax, keysMax }: JsonLimits,
): Problem | undefined {
  const members = new Int32Array(depthMax + 1);
  let depth = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      for (i++; i < end && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === COLON) {
      members[depth]!++;
      if (members[depth]! > keysMax) {
        return { path: "", problem: `holds an object of more than ${keysMax} keys at byte ${i - start}` };
      }
    } else if ((byte | CASE_BIT) === OPEN) {
      members[++depth] = 0;
    } else if ((byte | CASE_BIT) === CLOSE && depth > 0) {
      depth--;
    }
  }
  return undefined;
}
