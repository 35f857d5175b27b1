/**
 * Canonical JSON, RFC 8785: one text for each value, so that equal values have equal hashes. SPEC: M17.
 *
 * Keys are sorted by UTF-16 code units, as JavaScript compares strings; numbers and strings are written as by
 * `JSON.stringify`, which is the form of the RFC. The walk keeps its own stack, so depth is not limited. A value that
 * is not JSON throws.
 */

import type { Json, JsonObject } from "./json.ts";
import { MillraceError } from "./millrace-error.ts";
import { show } from "./problem.ts";

export class CanonicalJsonError extends MillraceError<"NOT_JSON"> {
  override readonly name = "CanonicalJsonError";

  constructor(message: string, options?: ErrorOptions) {
    super("NOT_JSON", message, options);
  }
}

/** Up to this length, a scan of the characters costs less than a call of `JSON.stringify`. */
const PLAIN_LENGTH_MAX = 64;

/** An open container; `next` is the index of the next child. */
interface Frame {
  readonly container: readonly Json[] | JsonObject;
  /** Sorted; undefined for an array. */
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  next: number;
}

/** JSON with sorted keys (RFC 8785), so that equal values have equal texts. */
export function canonicalJson(value: Json): string {
  if (!isContainer(value)) return leaf(value);
  const frames = [open(value)];
  let text = openText(frames[0]!);
  while (frames.length > 0) {
    const frame = frames.at(-1)!;
    if (frame.next === frame.length) {
      text += frame.keys === undefined ? "]" : "}";
      frames.pop();
      continue;
    }
    if (frame.next > 0) text += ",";
    const child = nextChild(frame);
    if (frame.keys !== undefined) text += `${leaf(frame.keys[frame.next]!)}:`;
    frame.next++;
    if (isContainer(child)) {
      const inner = open(child);
      text += openText(inner);
      frames.push(inner);
    } else {
      text += leaf(child);
    }
  }
  return text;
}

function open(container: readonly Json[] | JsonObject): Frame {
  if (Array.isArray(container)) return { container, keys: undefined, length: container.length, next: 0 };
  const keys = sortedKeys(container);
  return { container, keys, length: keys.length, next: 0 };
}

/** Most objects are small and many are sorted already; the check is cheaper than a sort. */
function sortedKeys(object: object): readonly string[] {
  const keys = Object.keys(object);
  for (let i = 1; i < keys.length; i++) if (keys[i - 1]! > keys[i]!) return keys.sort();
  return keys;
}

function openText(frame: Frame): string {
  return frame.keys === undefined ? "[" : "{";
}

function nextChild({ container, keys, next }: Frame): Json | undefined {
  return keys === undefined ? (container as readonly Json[])[next] : (container as JsonObject)[keys[next]!];
}

function isContainer(value: Json | undefined): value is readonly Json[] | JsonObject {
  return typeof value === "object" && value !== null;
}

function leaf(value: Json | undefined): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      if (!Number.isFinite(value)) throw new CanonicalJsonError(`canonical JSON has no ${value}`);
      // `String(-0)` is "0".
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return "null";
    default:
      throw new CanonicalJsonError(`canonical JSON is made of JSON values, got ${show(value)}`);
  }
}

function quoted(text: string): string {
  if (text.length <= PLAIN_LENGTH_MAX && isPlain(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new CanonicalJsonError("canonical JSON has no lone surrogates");
  return JSON.stringify(text);
}

/** Contains no character that is escaped: quote, backslash, control character or surrogate. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x22 || code === 0x5c || code >= 0xd800) return false;
  }
  return true;
}
