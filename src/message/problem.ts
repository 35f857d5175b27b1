/**
 * A problem of a value and its place. Every validator of this room returns the first one that it finds, so that a
 * hostile message cannot make the answer larger than itself.
 *
 * The text of a problem is part of error messages, so the shown input is clipped and escaped here. SPEC: M5.
 */

export interface Problem {
  /** `metadata.timestamp`, `data.items[3]["odd key"]`; empty for the value as a whole. */
  readonly path: string;
  /** A sentence without its subject: `must be a non-negative integer, got -1`. */
  readonly problem: string;
}

/** Characters of a key or a string that a problem shows; enough to recognise it. */
const SHOWN_LENGTH_MAX = 40;

/** The problem as one line of text. */
export function problemText({ path, problem }: Problem): string {
  return path === "" ? problem : `${path}: ${problem}`;
}

/** The same problem, seen from the container that has the value under `key`. */
export function within(key: string | number, { path, problem }: Problem): Problem {
  const rest = path === "" || path.startsWith("[") ? path : `.${path}`;
  return { path: pathSegment(key) + rest, problem };
}

function pathSegment(key: string | number): string {
  if (typeof key === "number") return `[${key}]`;
  return isPlainName(key) ? key : `[${showText(key)}]`;
}

function isPlainName(key: string): boolean {
  if (key.length === 0 || key.length > SHOWN_LENGTH_MAX) return false;
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i);
    const letter = ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a) || code === 0x5f;
    const digit = code >= 0x30 && code <= 0x39;
    if (!letter && !(digit && i > 0)) return false;
  }
  return true;
}

/** A short form of a value for "got ..."; containers and instances by their kind, not their contents. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return showText(value);
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "bigint":
      return "a BigInt";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "an array" : "an object";
    default:
      return String(value);
  }
}

/** `JSON.stringify` escapes lone surrogates and NUL, so the result is clean text. */
function showText(text: string): string {
  return JSON.stringify(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}
