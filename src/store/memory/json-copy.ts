/**
 * Copies through JSON text. What comes in and goes out is copied, as a file would, so that nobody can change what is stored by
 * changing an object he once gave or got (rule S16).
 */
const encoder = new TextEncoder();

export function copyJson<T>(value: T): T {
  // Leaves, the most frequent values, need no copy.
  return typeof value === "object" && value !== null ? JSON.parse(JSON.stringify(value)) : value;
}

/** Length of the value's JSON text in UTF-8. */
export function jsonBytes(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}

export function utf8Bytes(text: string): number {
  return encoder.encode(text).length;
}
