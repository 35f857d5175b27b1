import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { DocumentRef } from "../../src/store/document.ts";
import { RETRY_RULES } from "../../src/store/rejection.ts";
import { Replica } from "../../src/store/replica.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { type Store, StoreError } from "../../src/store/store.ts";
import { DOCUMENTS, type Run, randomProgram } from "./core/random-program.ts";

const SPACE = "s";
const COUNTER: DocumentRef = { scope: "space", id: "counter" };

const host = systemHost();
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A file that several store objects can be opened on, as processes would. */
async function setup() {
  const directory = await mkdtemp(join(tmpdir(), "millrace-replica-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  const open = async (): Promise<Store> => {
    const store = await openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });
    cleanups.push(() => store.close());
    return store;
  };
  const replica = async () => Replica.open({ store: await open(), space: SPACE, host });
  return { open, replica };
}

/** Adds one, as often as it takes. */
async function increment(replica: Replica): Promise<void> {
  for (;;) {
    const transaction = replica.transaction();
    transaction.write(COUNTER, ["n"], (transaction.read(COUNTER, ["n"]) as number) + 1);
    const outcome = await transaction.commit().outcome;
    if (outcome.kind === "committed") return;
    expect(RETRY_RULES[outcome.class]).toBe("run-again");
    await replica.catchUp();
  }
}

describe("replicas over SQLite", () => {
  test("[S168] later changes to the lists of a finished transaction have no effect on its commit", async () => {
    const { replica } = await setup();
    const here = await replica();
    const made = here.transaction();
    made.write(COUNTER, [], { n: 0 });
    await made.commit().outcome;
    const [lists, rows] = [here.transaction(), here.transaction()];
    for (const transaction of [lists, rows]) transaction.preconditions.push({ kind: "absent", ...COUNTER });
    const given = [lists.preconditions, rows.preconditions[0] as { id: string }] as const;
    const outcomes = [lists.commit().outcome, rows.commit().outcome];
    given[0].length = 0;
    given[1].id = "another";
    const classOf = { class: "permanent", reason: "document-exists" };
    expect(await Promise.all(outcomes)).toEqual([expect.objectContaining(classOf), expect.objectContaining(classOf)]);
  });

  test("[S54] counters that two replicas of one file increment at once lose no increment", async () => {
    const { replica } = await setup();
    const [here, there] = [await replica(), await replica()];
    const made = here.transaction();
    made.write(COUNTER, [], { n: 0 });
    await made.commit().outcome;
    await there.load([COUNTER]);
    const work = async (one: Replica) => {
      for (let i = 0; i < 100; i++) await increment(one);
    };
    await Promise.all([work(here), work(there), work(here), work(there)]);
    await here.catchUp();
    await there.catchUp();
    expect([here.peek(COUNTER), there.peek(COUNTER)]).toEqual([{ n: 400 }, { n: 400 }]);
    here.checkInvariants();
    there.checkInvariants();
  });

  for (const seed of [1, 2, 3]) {
    test(`[S75] documents of random transactions load from a file as the replicas have them (seed ${seed})`, async () => {
      const { open, replica } = await setup();
      const sites = [await replica(), await replica()];
      const random = new SeededRandom(seed);
      let committed = 0;
      for (let round = 0; round < 60; round++) {
        const commits = Array.from({ length: 1 + random.below(6) }, () => {
          const transaction = (sites[random.below(2)] as Replica).transaction();
          const run: Run = { seen: [], state: 0 };
          try {
            for (const step of [...randomProgram(random), ...randomProgram(random)]) step(transaction, run);
            return transaction.commit();
          } catch (error) {
            transaction.abort();
            if (error instanceof StoreError && error.code === "STORE_STALE") return undefined;
            throw error;
          }
        });
        for (const commit of commits) if ((await commit?.outcome)?.kind === "committed") committed++;
      }
      for (const site of sites) {
        await site.load(DOCUMENTS);
        await site.catchUp();
        site.checkInvariants();
      }
      expect(committed).toBeGreaterThan(50);
      const [here, there] = sites.map((site) => DOCUMENTS.map((ref) => site.peek(ref)));
      expect(there).toEqual(here);
      const store = await open();
      const { documents } = await store.load(SPACE, DOCUMENTS);
      expect(documents.map(({ value }) => value)).toEqual(here);
      expect(await store.verify()).toMatchObject({ ok: true });
    });
  }

  test("[S69] a replica of another store object is notified of a commit", async () => {
    const { replica } = await setup();
    const [here, there] = [await replica(), await replica()];
    await there.load([COUNTER]);
    const heard = new Promise((resolve) => there.subscribe(({ changes }) => resolve(changes[0]?.after)));
    const transaction = here.transaction();
    transaction.write(COUNTER, [], { n: 1 });
    transaction.commit();
    expect(await heard).toEqual({ n: 1 });
  });
});
