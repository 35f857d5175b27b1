/**
 * Random transaction bodies: lists of steps that read, compute and write. A body is a function of its reads. It runs in
 * a transaction of a replica and over plain values, and the results are compared.
 */
import type { SeededRandom } from "../../../src/host/seeded-random.ts";
import { isJsonObject, type Json } from "../../../src/message/json.ts";
import { arrayIndex, getAt, type Path } from "../../../src/message/path.ts";
import type { DocumentRef } from "../../../src/store/document.ts";
import { applyOperations } from "../../../src/store/patch.ts";
import type { PathOperation } from "../../../src/store/path-operation.ts";
import { Receipt } from "../../../src/store/receipt.ts";
import { StoreError } from "../../../src/store/store.ts";

export const DOCUMENTS: readonly DocumentRef[] = ["a", "b", "c", "d"].map((id) => ({ scope: "space", id }));
export const RECEIPTS: readonly DocumentRef[] = [1, 2, 3, 4, 5, 6].map((n) => ({ scope: "space", id: `receipt/${n}` }));

/** The data of a body: a transaction, or plain values. */
export interface Access {
  read(ref: DocumentRef, path: Path, depth: "deep" | "shallow"): Json | undefined;
  write(ref: DocumentRef, path: Path, value: Json): void;
  remove(ref: DocumentRef, path: Path): void;
  splice(ref: DocumentRef, path: Path, index: number, remove: number, insert: readonly Json[]): void;
  leave(receipt: Receipt): void;
}

/** One run of a body: its reads so far, as text, and a number computed from them. */
export interface Run {
  readonly seen: string[];
  state: number;
}

export type Step = (access: Access, run: Run) => void;

const PATHS: readonly Path[] = [
  ["n"],
  ["m"],
  ["m", "x"],
  ["m", "y"],
  ["m", "deep"],
  ["m", "deep", "z"],
  ["list"],
  ["list", "0"],
  ["list", "1"],
  ["list", "2", "k"],
  ["k7"],
];

export function randomProgram(random: SeededRandom): Step[] {
  const steps = Array.from({ length: 1 + random.below(5) }, () => randomStep(random));
  return steps.map((step) => (access, run) => {
    try {
      step(access, run);
    } catch (error) {
      // A write that is refused is skipped, in both runs.
      if (!(error instanceof StoreError) || error.code !== "STORE_MISUSE") throw error;
      run.state++;
    }
  });
}

/** The same, of which every fourth leaves a receipt in the end. */
export function randomHandling(random: SeededRandom): Step[] {
  const steps = randomProgram(random);
  const receipt = RECEIPTS[random.below(4 * RECEIPTS.length)];
  if (receipt !== undefined) steps.push((access, run) => access.leave(new Receipt(receipt, run.state)));
  return steps;
}

function randomStep(random: SeededRandom): Step {
  const ref = DOCUMENTS[random.below(DOCUMENTS.length)] as DocumentRef;
  const path = PATHS[random.below(PATHS.length)] as Path;
  const constant = random.below(3);
  const removed = random.below(4) === 0 ? [] : path;
  const receipt = RECEIPTS[random.below(RECEIPTS.length)] as DocumentRef;
  switch (random.below(13)) {
    case 0:
      return read(ref, path, "deep");
    case 1:
      return read(ref, path, "shallow");
    case 2:
      return read(ref, [], "deep");
    case 3:
      return (access) => access.write(ref, path, constant);
    case 4:
      return (access, run) => access.write(ref, path, run.state % 4);
    case 5:
      return (access, run) => access.write(ref, path, { x: run.state % 3, deep: { z: constant } });
    case 6:
      return (access, run) => access.write(ref, [], document(run.state % 3));
    case 7:
      return (access, run) => access.write(ref, [], { ...wide(access.read(ref, [], "deep")), k7: run.state % 3 });
    case 8:
      return (access) => access.remove(ref, removed);
    case 9:
      return append(ref);
    case 10:
      return splice(ref, constant);
    case 11:
      return read(receipt, [], "deep");
    default:
      return count(ref, path);
  }
}

/** Looks only at the part of the value that the depth covers. */
function read(ref: DocumentRef, path: Path, depth: "deep" | "shallow"): Step {
  return (access, run) => {
    const value = access.read(ref, path, depth);
    const text = depth === "deep" ? JSON.stringify(sorted(value)) : shapeOf(value);
    run.seen.push(`${ref.id} /${path.join("/")} ${depth}: ${text}`);
    for (let i = 0; i < (text ?? "").length; i++) run.state = (run.state * 31 + (text as string).charCodeAt(i)) % 9973;
  };
}

/** Reads and writes the same place, so that a lost update shows. */
function count(ref: DocumentRef, path: Path): Step {
  return (access, run) => {
    read(ref, path, "deep")(access, run);
    const value = access.read(ref, path, "deep");
    access.write(ref, path, typeof value === "number" ? value + 1 : 0);
  };
}

function append(ref: DocumentRef): Step {
  return (access, run) => {
    const list = access.read(ref, ["list"], "shallow");
    if (Array.isArray(list)) access.write(ref, ["list", String(list.length)], { k: run.state % 3 });
  };
}

function splice(ref: DocumentRef, count: number): Step {
  return (access, run) => {
    const list = access.read(ref, ["list"], "shallow");
    if (!Array.isArray(list)) return;
    const index = run.state % (list.length + 1);
    const insert = Array.from({ length: count }, (_, i) => (i === 0 ? run.state % 3 : { k: i }));
    access.splice(ref, ["list"], index, Math.min(count, list.length - index), insert);
  };
}

function document(variant: number): Json {
  if (variant === 0) return { n: 0, m: { x: 0 }, list: [1, { k: 1 }, { k: 2 }] };
  return variant === 1 ? { n: 1, m: { x: 1, y: 2, deep: { z: 0 } }, list: [] } : wide(undefined);
}

/** An object with so many keys that replacing it is stored as its differences. */
function wide(value: Json | undefined): { [key: string]: Json } {
  const keys = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, i]));
  return { ...keys, n: 0, m: { x: 0 }, list: [0, 1, { k: 1 }], ...(isJsonObject(value) ? value : {}) };
}

function shapeOf(value: Json | undefined): string {
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (isJsonObject(value)) return `object of ${Object.keys(value).sort().join()}`;
  return value === undefined ? "nothing" : "leaf";
}

/** Keys in one order: replicas and plain values may differ in it. */
export function sorted(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => sorted(item) as Json);
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key]) as Json]));
}

/** The bodies' other world: values in a map, changed at once. */
export class PlainAccess implements Access {
  readonly documents: Map<string, Json>;

  constructor(documents: ReadonlyMap<string, Json>) {
    this.documents = new Map(documents);
  }

  read({ id }: DocumentRef, path: Path): Json | undefined {
    const value = this.documents.get(id);
    return value === undefined ? undefined : getAt(value, path);
  }

  write(ref: DocumentRef, path: Path, value: Json): void {
    if (path.length > 0) {
      const parent = this.read(ref, path.slice(0, -1));
      require(typeof parent === "object" && parent !== null);
      if (Array.isArray(parent)) require((arrayIndex(path.at(-1) as string) ?? Infinity) <= parent.length);
    }
    this.#apply(ref, { op: "set", path, value });
  }

  remove(ref: DocumentRef, path: Path): void {
    if (path.length > 0) require(isJsonObject(this.read(ref, path.slice(0, -1))));
    if (this.read(ref, path) !== undefined) this.#apply(ref, { op: "delete", path });
  }

  splice(ref: DocumentRef, path: Path, index: number, remove: number, insert: readonly Json[]): void {
    const array = this.read(ref, path);
    require(Array.isArray(array) && index + remove <= array.length);
    this.#apply(ref, { op: "splice", path, index, remove, insert });
  }

  leave(receipt: Receipt): void {
    if (this.documents.has(receipt.id)) throw new Error(`${receipt.id} was left twice`);
    this.documents.set(receipt.id, receipt.value);
  }

  #apply({ id }: DocumentRef, operation: PathOperation): void {
    const value = applyOperations(this.documents.get(id), [operation]);
    if (value === undefined) this.documents.delete(id);
    else this.documents.set(id, value);
  }
}

function require(holds: boolean): void {
  if (!holds) throw new StoreError("STORE_MISUSE", "cannot be written here");
}
