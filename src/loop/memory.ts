/**
 * `Memory.*`: a small durable key-value store in every kernel. Keys start with "/"; values are any JSON. Each key is a
 * document of its own (`memory` + key), so that the cost of a write does not grow with the number of keys. The document
 * `memory` counts keys and bytes, which are bounded. SPEC: L60-L63.
 */
import type { Cell } from "../cells/cell.ts";
import type { Space } from "../cells/space.ts";
import { LIST_DOCUMENTS_MAX, MEMORY_BYTES_MAX, MEMORY_KEYS_MAX, MEMORY_UNIT_BYTES } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { isWithin, labelOf, labelOfRead } from "../store/label.ts";
import type { ListedDocument } from "../store/store.ts";
import type { Tx } from "../work/tx.ts";
import type { Capability } from "./capability.ts";
import { type DataSchema, dataSchema } from "./message-schema.ts";
import { transactional } from "./transactional.ts";

/** Keys are names, not documents: long enough for any path a person would write. */
const KEY_LENGTH_MAX = 1_024;

const COUNT_DOCUMENT = "memory";
const encoder = new TextEncoder();

type Count = { readonly keys: number; readonly units: number };
type Listing = { readonly prefix?: string; readonly after?: string; readonly limit?: number };

/** With a clearance, it answers only within that, so that clients with one may use it. */
export function memoryCapability(space: Space, clearance?: readonly string[]): Capability {
  const within = clearance === undefined ? {} : { clearance };
  const memory: Memory = { space, count: space.cell<Count>(COUNT_DOCUMENT) };
  return transactional({
    ...{ ...within, space },
    description: "a small key-value memory",
    emits: { "Memory.Changed": keyed([]) },
    commands: {
      "Memory.Set": {
        input: keyed(["value"]),
        handle: ({ key, value }: { key: string; value: Json }, tx) => put(memory, tx, key, value),
      },
      "Memory.Delete": {
        input: keyed([]),
        handle: ({ key }: { key: string }, tx) => put(memory, tx, key, undefined),
      },
    },
    queries: {
      "Memory.Get": {
        input: keyed([]),
        handle: async ({ key }: { key: string }) => {
          const value = await space.cell<Json>(refOf(key).id).pull(within);
          if (value === undefined) throw new Failure(404, `no value is stored under ${key}`);
          return { value };
        },
      },
      "Memory.List": {
        input: LISTING,
        handle: (data: Listing | null) => list(space, data ?? {}, clearance),
      },
    },
  });
}

interface Memory {
  readonly space: Space;
  readonly count: Cell<Count | undefined>;
}

/** Sets a key, or removes it if there is no value; waits while its document is loaded. */
function put(memory: Memory, tx: Tx, key: string, value: Json | undefined) {
  const { space } = memory;
  const ref = refOf(key);
  const replica = space.replica(space.name);
  // The size is read outside of the transaction, because a client that may set a key need not be cleared for its value.
  const apply = () => change(memory, tx, { key, ref, value, before: unitsOf(replica.peek(ref)) });
  return replica.find(ref)?.isKnown === true ? apply() : replica.load([ref]).then(apply);
}

interface Change {
  readonly key: string;
  readonly ref: DocumentRef;
  readonly value: Json | undefined;
  /** Units of the present value. */
  readonly before: number;
}

/** The count changes only with the number of keys or their sizes. */
function change({ space, count }: Memory, tx: Tx, { key, ref, value, before }: Change) {
  const after = unitsOf(value);
  if (before !== after) {
    const { keys, units } = tx.get(count) ?? { keys: 0, units: 0 };
    const next = { keys: keys + Number(after > 0) - Number(before > 0), units: units + after - before };
    if (after > before) requireRoom(next);
    tx.set(count, next);
  }
  const cell = space.cell<Json>(ref.id);
  if (value !== undefined) tx.set(cell, value);
  else if (before > 0) tx.delete(cell);
  tx.emit("Memory.Changed", { key });
  return { success: true };
}

function requireRoom({ keys, units }: Count): void {
  const remedy = "delete some, or keep large data in documents of your own";
  if (keys > MEMORY_KEYS_MAX) throw new Failure(413, `at most ${MEMORY_KEYS_MAX} keys are kept; ${remedy}`);
  const bytes = units * MEMORY_UNIT_BYTES;
  if (bytes > MEMORY_BYTES_MAX) throw new Failure(413, `at most ${MEMORY_BYTES_MAX} bytes are kept; ${remedy}`);
}

/** 0 for a key without a value. */
function unitsOf(value: Json | undefined): number {
  if (value === undefined) return 0;
  return Math.max(1, Math.ceil(encoder.encode(JSON.stringify(value)).length / MEMORY_UNIT_BYTES));
}

async function list(space: Space, { prefix = "", after, limit }: Listing, clearance: readonly string[] | undefined) {
  const wanted = Math.min(limit ?? LIST_DOCUMENTS_MAX, LIST_DOCUMENTS_MAX);
  const replica = space.replica(space.name);
  const { documents } = await replica.list({
    scope: SHARED_SCOPE,
    prefix: `${refOf("/").id}${prefix.slice(1)}`,
    after: after === undefined ? undefined : refOf(after).id,
    limit: wanted,
  });
  const keys = documents.filter((document) => mayKnow(document, clearance)).map(({ id }) => keyOf(id));
  const last = documents.at(-1);
  return documents.length < wanted || last === undefined ? { keys } : { keys, after: keyOf(last.id) };
}

function mayKnow({ labels }: ListedDocument, clearance: readonly string[] | undefined): boolean {
  if (clearance === undefined || labels.length === 0) return true;
  const places = labels.map(({ path, labels: names }) => ({ path, label: labelOf(names) }));
  return isWithin(labelOfRead(places, [], false), labelOf(clearance));
}

function refOf(key: string): DocumentRef {
  return { scope: SHARED_SCOPE, id: `${COUNT_DOCUMENT}${key}` };
}

function keyOf(id: string): string {
  return id.slice(COUNT_DOCUMENT.length);
}

const LISTING = dataSchema<Listing | null>(
  (data) => {
    if (data === null) return undefined;
    if (!isJsonObject(data as Json)) return "must be an object with a prefix, or null";
    const { prefix, after, limit } = data as { prefix?: unknown; after?: unknown; limit?: unknown };
    if (prefix !== undefined && !isKeyStart(prefix)) return 'prefix: must be the start of a key, which begins with "/"';
    if (after !== undefined && !isKeyStart(after)) return 'after: must be a key, which begins with "/"';
    const isLimit = Number.isInteger(limit) && (limit as number) >= 1 && (limit as number) <= LIST_DOCUMENTS_MAX;
    return limit === undefined || isLimit ? undefined : `limit: must be a whole number from 1 to ${LIST_DOCUMENTS_MAX}`;
  },
  {
    type: ["object", "null"],
    properties: {
      prefix: { type: "string" },
      after: { type: "string" },
      limit: { type: "integer", minimum: 1, maximum: LIST_DOCUMENTS_MAX },
    },
  },
);

function isKeyStart(value: unknown): value is string {
  return typeof value === "string" && (value === "" || value.startsWith("/"));
}

/** Data with a key, and other required fields. */
function keyed(required: readonly string[]): DataSchema<{ key: string; value: Json }> {
  return dataSchema(
    (data) => {
      if (typeof data !== "object" || data === null || Array.isArray(data)) return "must be an object with a key";
      const { key } = data as { key?: unknown };
      if (typeof key !== "string" || !key.startsWith("/") || key.length > KEY_LENGTH_MAX) {
        return `key: must be text that starts with "/", at most ${KEY_LENGTH_MAX} characters`;
      }
      const missing = required.find((name) => !Object.hasOwn(data, name));
      return missing === undefined ? undefined : `${missing}: is required; use null for none`;
    },
    {
      type: "object",
      properties: { key: { type: "string", pattern: "^/" }, value: {} },
      required: ["key", ...required],
    },
  );
}
