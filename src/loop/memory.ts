/** `Memory.*`: a small durable key-value store, on in every kernel. Keys start with "/"; values are any JSON; kept in one document. */
import type { Space } from "../cells/space.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { Capability } from "./capability.ts";
import { type DataSchema, dataSchema } from "./message-schema.ts";
import { transactional } from "./transactional.ts";

/** Keys are names, not documents: long enough for any path a person would write. */
const KEY_LENGTH_MAX = 1_024;

const DOCUMENT = "memory";

type Entries = { readonly [key: string]: Json };

/** With a clearance it answers only what lies within, so that clients with one may ask it. */
export function memoryCapability(space: Space, clearance?: readonly string[]): Capability {
  const within = clearance === undefined ? {} : { clearance };
  const entries = space.cell<Entries>(DOCUMENT);
  let making: Promise<void> | undefined;
  let isMade = false;
  /** The document is made once, so that setting a key depends on nothing but that key. */
  const whenMade = <T>(then: () => T): T | Promise<T> => {
    if (isMade) return then();
    making ??= make(space).then(
      () => {
        isMade = true;
      },
      (thrown: unknown) => {
        // The next one tries again.
        making = undefined;
        throw thrown;
      },
    );
    return making.then(then);
  };
  return transactional({
    ...{ ...within, space },
    description: "a small key-value memory",
    emits: { "Memory.Changed": keyed([]) },
    commands: {
      "Memory.Set": {
        input: keyed(["value"]),
        handle: ({ key, value }: { key: string; value: Json }, tx) =>
          whenMade(() => {
            tx.set(entries.key(key), value);
            tx.emit("Memory.Changed", { key });
            return { success: true };
          }),
      },
      "Memory.Delete": {
        input: keyed([]),
        handle: ({ key }: { key: string }, tx) =>
          whenMade(() => {
            tx.delete(entries.key(key));
            tx.emit("Memory.Changed", { key });
            return { success: true };
          }),
      },
    },
    queries: {
      "Memory.Get": {
        input: keyed([]),
        handle: async ({ key }: { key: string }) => {
          const value = await entries.key(key).pull(within);
          if (value === undefined) throw new Failure(404, `nothing is kept under ${key}`);
          return { value };
        },
      },
      "Memory.List": {
        input: dataSchema<{ prefix?: string } | null>(
          (data) => {
            if (data === null) return undefined;
            if (!isJsonObject(data as Json)) return "must be an object with a prefix, or null";
            const { prefix } = data as { prefix?: unknown };
            return prefix === undefined || typeof prefix === "string" ? undefined : "prefix: must be a string";
          },
          { type: ["object", "null"], properties: { prefix: { type: "string" } } },
        ),
        handle: async (data: { prefix?: string } | null) => {
          const all = Object.keys((await entries.pull(within)) ?? {});
          return { keys: all.filter((key) => key.startsWith(data?.prefix ?? "")).sort() };
        },
      },
    },
  });
}

async function make(space: Space): Promise<void> {
  const replica = space.replica(space.name);
  const transaction = replica.transaction();
  const ref = { scope: SHARED_SCOPE, id: DOCUMENT };
  transaction.preconditions.push({ kind: "absent", ...ref });
  transaction.write(ref, [], {});
  const outcome = await transaction.commit().outcome;
  // That it is there already is all that was wanted.
  if (outcome.kind === "rejected" && outcome.reason !== "document-exists")
    throw new Failure(503, `not committed: ${outcome.message}`);
  await replica.load([ref]);
  // Keys are set in it by handlers that do not look at it before.
  replica.observe(ref);
}

/** Data with a key, and what else it must have. */
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
