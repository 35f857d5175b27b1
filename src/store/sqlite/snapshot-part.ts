/**
 * The parts of a snapshot. Each part is a list of operations; applied in order to an absent document, they give the
 * value. A small snapshot is one part that sets the whole. A large one is cut at containers and texts, so that each
 * part takes bounded time to write and read. SPEC: S127.
 *
 *   [{"op":"set","path":[],"value":{}}, {"op":"merge","path":[],"value":{"a":1,"b":[]}}]
 *   [{"op":"splice","path":["b"],"index":0,"remove":0,"insert":[…]}, {"op":"set","path":["c"],"value":""}]
 *   [{"op":"append","path":["c"],"value":"a long text"}]
 */
import type { Json, JsonObject } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import { applyOperation, type Container, childAt, type Own, PatchError, setOwn } from "../patch.ts";
import type { PathOperation } from "../path-operation.ts";

export type PartOperation =
  | PathOperation
  /** Adds keys to the object at the path. */
  | { readonly op: "merge"; readonly path: Path; readonly value: JsonObject }
  /** Appends to the text at the path. */
  | { readonly op: "append"; readonly path: Path; readonly value: string };

/**
 * Parsed or built values are not shared, so they may be changed in place: a copy of a wide document took a millisecond
 * per patch.
 */
export const appliedInPlace: Own = (container) => container;

/** The value after the operations, which may change it in place. */
export function applyPart(value: Json | undefined, operations: readonly PartOperation[]): Json | undefined {
  let after = value;
  for (const operation of operations) after = applyOne(after, operation);
  return after;
}

function applyOne(value: Json | undefined, operation: PartOperation): Json | undefined {
  if (operation.op !== "merge" && operation.op !== "append")
    return applyOperation(value, operation, appliedInPlace).root;
  const { path } = operation;
  const there = path.reduce<Json | undefined>(
    (at, step) => (typeof at === "object" && at !== null ? childAt(at, step) : undefined),
    value,
  );
  if (operation.op === "append") {
    if (typeof there !== "string") throw new PatchError("a part of a snapshot continues a text that is not there");
    return applyOperation(value, { op: "set", path, value: there + operation.value }, appliedInPlace).root;
  }
  if (typeof there !== "object" || there === null || Array.isArray(there))
    throw new PatchError("a part of a snapshot continues an object that is not there");
  for (const [key, child] of Object.entries(operation.value)) setOwn(there as { [key: string]: Json }, key, child);
  return value;
}

/** A container or text larger than a part, and the position up to which it is written. */
type Frame =
  | {
      readonly kind: "object";
      readonly path: Path;
      readonly value: JsonObject;
      readonly keys: readonly string[];
      at: number;
    }
  | { readonly kind: "array"; readonly path: Path; readonly value: readonly Json[]; at: number }
  | { readonly kind: "text"; readonly path: Path; readonly value: string; at: number };

/** Bytes around an operation, and around an element. */
const AROUND_OPERATION = 64;
const AROUND_ELEMENT = 4;

/** Cuts a value into parts of about `partBytes`. The value must not change meanwhile. */
export class PartWriter {
  readonly #partBytes: number;
  readonly #frames: Frame[] = [];
  readonly #value: Json;
  #begun = false;

  constructor(value: Json, partBytes: number) {
    this.#value = value;
    this.#partBytes = partBytes;
  }

  /** Whether every part was returned. */
  get isDone(): boolean {
    return this.#begun && this.#frames.length === 0;
  }

  next(): PartOperation[] {
    const operations: PartOperation[] = [];
    let room = this.#partBytes;
    if (!this.#begun) {
      this.#begun = true;
      if (!this.#isCut(this.#value)) return [{ op: "set", path: [], value: this.#value }];
      operations.push({ op: "set", path: [], value: this.#open([], this.#value) });
    }
    for (let frame = this.#frames.at(-1); frame !== undefined && room > 0; frame = this.#frames.at(-1)) {
      const written = this.#advance(frame, room, operations);
      if (written === "full") break;
      room -= written;
    }
    return operations;
  }

  /** Whether a value is written in several pieces. */
  #isCut(value: Json): boolean {
    const isPlain = typeof value !== "string" && (typeof value !== "object" || value === null);
    return !isPlain && measure(value, this.#partBytes) > this.#partBytes;
  }

  /** Begins a value that is too large for one part: returns the empty value that later operations fill. */
  #open(path: Path, value: Json): Json {
    if (typeof value === "string") {
      this.#frames.push({ kind: "text", path, value, at: 0 });
      return "";
    }
    if (Array.isArray(value)) {
      this.#frames.push({ kind: "array", path, value, at: 0 });
      return [];
    }
    this.#frames.push({ kind: "object", path, value: value as JsonObject, keys: Object.keys(value as object), at: 0 });
    return {};
  }

  /**
   * Writes from the innermost frame; returns the bytes, or "full" if the rest of the part is too small for the next
   * element.
   */
  #advance(frame: Frame, room: number, operations: PartOperation[]): number | "full" {
    switch (frame.kind) {
      case "text":
        return this.#advanceText(frame, room, operations);
      case "array":
        return this.#advanceArray(frame, room, operations);
      case "object":
        return this.#advanceObject(frame, room, operations);
    }
  }

  #advanceText(frame: Frame & { kind: "text" }, room: number, operations: PartOperation[]): number {
    const { path, value } = frame;
    let end = Math.min(value.length, frame.at + room);
    // Keep both halves of a surrogate pair together.
    if (end < value.length && isHighSurrogate(value.charCodeAt(end - 1))) end++;
    operations.push({ op: "append", path, value: value.slice(frame.at, end) });
    const written = end - frame.at;
    frame.at = end;
    if (end === value.length) this.#frames.pop();
    return written + AROUND_OPERATION;
  }

  #advanceArray(frame: Frame & { kind: "array" }, room: number, operations: PartOperation[]): number | "full" {
    const { path, value } = frame;
    const insert: Json[] = [];
    const from = frame.at;
    const written = this.#gather(value.length, frame, room, {
      child: (at) => value[at] as Json,
      step: String,
      bytes: () => 0,
      take: (_, child) => insert.push(child),
    });
    if (insert.length > 0) operations.push({ op: "splice", path, index: from, remove: 0, insert });
    return written;
  }

  #advanceObject(frame: Frame & { kind: "object" }, room: number, operations: PartOperation[]): number | "full" {
    const { path, value, keys } = frame;
    const merged: { [key: string]: Json } = {};
    const from = frame.at;
    const written = this.#gather(keys.length, frame, room, {
      child: (at) => childAt(value as Container, keys[at] as string) as Json,
      step: (at) => keys[at] as string,
      bytes: (at) => Buffer.byteLength(keys[at] as string),
      take: (at, child) => setOwn(merged, keys[at] as string, child),
    });
    if (frame.at > from) operations.push({ op: "merge", path, value: merged });
    return written;
  }

  /** Takes children while they fit; opens one that is larger than a whole part. */
  #gather(
    count: number,
    frame: Frame & { kind: "array" | "object" },
    room: number,
    { child, step, bytes, take }: Children,
  ): number | "full" {
    const isFresh = room === this.#partBytes;
    let written = AROUND_OPERATION;
    for (let taken = 0; frame.at < count; taken++) {
      const { at } = frame;
      const value = child(at);
      const isCut = this.#isCut(value);
      // A fresh part must take at least one element; otherwise the writer would never finish.
      const mustTake = isFresh && taken === 0;
      if (isCut) {
        frame.at++;
        take(at, this.#open([...frame.path, step(at)], value));
        return written + bytes(at);
      }
      const size = measure(value, this.#partBytes) + bytes(at) + AROUND_ELEMENT;
      if (written + size > room && !mustTake) return taken > 0 ? written : "full";
      frame.at++;
      take(at, value);
      written += size;
    }
    this.#frames.pop();
    return written;
  }
}

/** Access to the children of a container. */
interface Children {
  child(at: number): Json;
  step(at: number): string;
  /** Bytes of its key. */
  bytes(at: number): number;
  take(at: number, child: Json): void;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Approximate size of a value's text; stops counting above the maximum. */
export function measure(value: Json, max: number): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 2;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const child of value) {
      bytes += measure(child, max - bytes) + 1;
      if (bytes > max) return bytes;
    }
    return bytes;
  }
  for (const key in value) {
    bytes += Buffer.byteLength(key) + AROUND_ELEMENT + measure((value as JsonObject)[key] as Json, max - bytes);
    if (bytes > max) return bytes;
  }
  return bytes;
}
