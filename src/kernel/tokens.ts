/**
 * Tokens for clients that come over a network: `Kernel.AddToken`, `Kernel.RevokeToken`, `Kernel.Tokens`. The store
 * has the SHA-256 of a token and never the token itself; one document for each digest. SPEC: W27.
 */
import type { Collection } from "../cells/collection.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import { TOKENS_MAX } from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { transactional } from "../loop/transactional.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { hashText } from "../message/sha256.ts";

/** A token as the store has it, under the digest of its text. */
export interface TokenRecord {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly clearance?: readonly string[];
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
}

interface AddToken extends Omit<TokenRecord, "createdAtMs"> {
  readonly digest: string;
}

export class Tokens {
  readonly #host: Host;
  readonly #space: Space;
  readonly #records: Collection<TokenRecord>;

  constructor(host: Host, space: Space) {
    this.#host = host;
    this.#space = space;
    this.#records = space.collection<TokenRecord>("millrace.tokens");
  }

  /** The record of a token that is valid now. */
  async find(token: string): Promise<TokenRecord | undefined> {
    const record = await this.#records.at(hashText(token)).pull();
    if (record === undefined) return undefined;
    return record.expiresAtMs !== undefined && record.expiresAtMs <= this.#host.now() ? undefined : record;
  }

  capability(): Capability {
    const records = this.#records;
    return {
      ...transactional({
        space: this.#space,
        description: "tokens of clients that come over a network",
        commands: {
          "Kernel.AddToken": {
            description: "adds a token by the SHA-256 of its text",
            input: addInput,
            handle: ({ digest, ...given }: AddToken, tx) => {
              const all = records.all();
              if (all.some(({ value }) => value.name === given.name))
                throw new Failure(409, `there is a token "${given.name}"; revoke it first, or choose another name`);
              if (all.length >= TOKENS_MAX) throw new Failure(503, `a kernel has at most ${TOKENS_MAX} tokens`);
              tx.set(records.at(digest), { ...given, createdAtMs: tx.now });
              return { name: given.name };
            },
          },
          "Kernel.RevokeToken": {
            description: "removes a token; requests with it are refused from now on",
            input: nameInput,
            handle: ({ name }: { name: string }, tx) => {
              const found = records.all().find(({ value }) => value.name === name);
              if (found === undefined) throw new Failure(404, `there is no token "${name}"; see: millrace token list`);
              tx.delete(records.at(found.id));
              return { name };
            },
          },
        },
        queries: {
          "Kernel.Tokens": {
            description: "names, scopes and expiry of the tokens",
            handle: () => {
              const tokens = records.all().map(({ value }) => value);
              return { tokens: tokens.sort((a, b) => (a.name < b.name ? -1 : 1)) as unknown as Json };
            },
          },
        },
      }),
      operates: true,
    };
  }
}

const nameInput = dataSchema<{ name: string }>(
  (data) => (isNamed(data) ? undefined : "name: must be a text of 1 to 100 characters"),
  { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
);

const addInput = dataSchema<AddToken>(
  (data) => {
    if (!isNamed(data)) return "name: must be a text of 1 to 100 characters";
    const { digest, scopes, clearance, expiresAtMs } = data as Partial<AddToken>;
    if (typeof digest !== "string" || !/^[0-9a-f]{64}$/.test(digest)) return "digest: must be the SHA-256 of the token";
    if (!isTexts(scopes) || scopes.length === 0) return "scopes: must be a list of scopes, like send:Shop.*";
    if (clearance !== undefined && !isTexts(clearance)) return "clearance: must be a list of labels";
    return expiresAtMs === undefined || Number.isSafeInteger(expiresAtMs)
      ? undefined
      : "expiresAtMs: must be a time in milliseconds";
  },
  {
    type: "object",
    required: ["name", "digest", "scopes"],
    properties: {
      name: { type: "string" },
      digest: { type: "string" },
      scopes: { type: "array", items: { type: "string" } },
      clearance: { type: "array", items: { type: "string" } },
      expiresAtMs: { type: "integer" },
    },
  },
);

function isNamed(data: unknown): boolean {
  const { name } = (data ?? {}) as { name?: unknown };
  return typeof name === "string" && name.length > 0 && name.length <= 100;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}
