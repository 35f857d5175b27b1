/** Random batches get the same outcomes from the memory store and from Postgres, refusals included. */
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { CommitRequest } from "../../../src/store/commit.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, entry, read, ref, remove, SPACE, set } from "../conformance/requests.ts";
import { ControlledHost } from "../controlled-host.ts";
import { Numbers, renumbered } from "./renumbered-store.ts";
import { NO_POSTGRES, SchemaPool, testServer } from "./server.ts";

const SEEDS = 25;
const BATCHES = 4;
const REQUESTS = 12;
const DOCUMENTS = ["a/1", "a/2", "b", "c"];

const server = testServer();
const schemas = new SchemaPool(server);

/** Requests of one random history, the same for both stores. */
class Requests {
  readonly #random: SeededRandom;
  readonly #locals = new Map<string, number>();

  constructor(seed: number) {
    this.#random = new SeededRandom(seed, 9);
  }

  next(head: number): CommitRequest {
    const session = this.#pick(["s", "s", "s", "t"]);
    const local = (this.#locals.get(session) ?? 0) + 1;
    // Sometimes an identity is used again.
    this.#locals.set(session, this.#below(12) === 0 ? local - 1 : local);
    const parts: { -readonly [part in keyof CommitRequest]?: CommitRequest[part] } = {};
    const sequence = Math.max(0, head - this.#below(4));
    const id = this.#pick(DOCUMENTS);
    if (this.#below(3) > 0) parts.patches = [this.#patch(id)];
    if (this.#below(3) === 0) parts.reads = [read(this.#pick(DOCUMENTS), this.#pick([[], ["x"], ["y"]]), sequence)];
    if (this.#below(6) === 0) parts.preconditions = [{ kind: "absent", ...ref(this.#pick(DOCUMENTS)) }];
    if (this.#below(8) === 0) parts.preconditions = [{ kind: "members", scope: "space", prefix: "a/", sequence }];
    if (this.#below(6) === 0 && local > 1) parts.dependsOn = [local - 1 - this.#below(2)];
    if (this.#below(4) === 0) parts.entries = [entry({ id: `m${this.#below(6)}`, data: this.#below(2) })];
    if (this.#below(5) === 0) {
      const due = { kind: "k", key: this.#pick(["p", "q"]) };
      const set = { ...due, dueAtMs: this.#below(3), data: null };
      parts.due = [
        this.#pick([
          { op: "put", ...set },
          { op: "add", ...set },
          { op: "take", ...due },
          { op: "cancel", ...due },
        ]),
      ];
    }
    if (this.#below(8) === 0) parts.labels = [{ ...ref(id), path: ["x"], labels: this.#pick([[], ["secret"]]) }];
    return commitBy(session, local, parts);
  }

  #patch(id: string) {
    return this.#pick([
      set(id, [], { x: this.#below(9), y: {} }),
      set(id, ["x"], this.#below(9)),
      set(id, ["y", "z"], this.#below(9)),
      remove(id, []),
    ]);
  }

  #pick<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    return list[this.#below(list.length)] as T;
  }

  #below(bound: number): number {
    return this.#random.below(bound);
  }
}

/** The outcomes of requests that are made at once; an error by its code. */
async function outcomes(store: Store, requests: readonly CommitRequest[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(requests.map((request) => store.commit(request)));
  return settled.map((one) => {
    if (one.status === "rejected") return (one.reason as { code?: unknown }).code;
    if (one.value.kind === "rejected") return [one.value.class, one.value.reason];
    return one.value;
  });
}

async function sight(store: Store): Promise<unknown> {
  const { history: _, ...loaded } = await store.load(SPACE, DOCUMENTS.map(ref));
  const { history: __, ...feed } = await store.changesSince(SPACE, 0, 1_000);
  const rows = (await store.query({ limit: 100 })).map(({ id, status, message }) => [id, status, message]);
  const due = (await store.dueRows(10, 100)).map(({ kind, key, dueAtMs }) => [kind, key, dueAtMs]);
  return {
    loaded,
    feed,
    rows,
    due,
    list: (await store.list(SPACE, { scope: "space", prefix: "a/", limit: 9 })).documents,
  };
}

describe.skipIf(NO_POSTGRES !== undefined)("differences between backends", () => {
  test("[S1] random batches get the same outcomes and leave the same data on Postgres and in memory", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const schema = await schemas.take();
      const host = new ControlledHost();
      const memory = memoryStore({ host });
      const options = { url: server.url, schema, host, durability: "process", tuning: { clock: "host" } } as const;
      const postgres = renumbered(await openPostgresStore(options), new Numbers());
      const requests = new Requests(seed);
      for (let n = 0; n < BATCHES; n++) {
        const head = (await memory.load(SPACE, [])).sequence;
        const batch = Array.from({ length: REQUESTS }, () => requests.next(head));
        const expected = await outcomes(memory, batch);
        expect([seed, n, await outcomes(postgres, batch)]).toEqual([seed, n, expected]);
        expect([seed, n, await sight(postgres)]).toEqual([seed, n, await sight(memory)]);
      }
      expect(await postgres.verify()).toMatchObject({ ok: true, problems: [] });
      await postgres.close();
      await schemas.giveBack(schema);
    }
  });
});
