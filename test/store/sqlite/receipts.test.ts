import { describe, expect, test } from "vitest";
import { madeAt } from "../../../src/store/receipt-name.ts";
import { commitBy, committed, ref, SPACE, set, write } from "../conformance/requests.ts";
import { START_MS } from "../controlled-host.ts";
import { startProgram } from "./program.ts";
import type { Repeated } from "./repeater.ts";
import { StoreFile } from "./store-file.ts";

const ROUNDS = 150;

describe("receipts in a file", () => {
  test("[S101] [S102] [S103] two processes that repeat requests and events while both remove receipts handle each once", async () => {
    await using file = new StoreFile();
    const names = ["first", "second"];
    const programs = names.map((name) => startProgram("repeater", { path: file.path, name, rounds: ROUNDS }));
    for (const program of programs) expect(await program.next()).toBe("ready");
    for (const program of programs) program.tell("go");
    const said = (await Promise.all(programs.map((program) => program.next()))) as never as Repeated[];
    for (const program of programs) await program.kill();
    const handled = said.flatMap((one) => one.handled);
    const twice = handled.filter((name, at) => handled.indexOf(name) !== at);
    expect(twice).toEqual([]);
    const events = new Set(said.flatMap((one) => one.takenIn));
    const missing = [...events].filter((id) => !handled.includes(`receipt:event:${id} worker ${id.length}`));
    expect(missing).toEqual([]);
    expect(said.some(({ removed }) => removed > 0) && said.some(({ tooOld }) => tooOld > 0)).toBe(true);
    const store = await file.open();
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S103] a removed receipt leaves no row in any table", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 5 } });
    const name = `receipt/${idAt(START_MS)}`;
    const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
    const labels = [{ ...ref(name), path: [], labels: ["secret"] }];
    const parts = { patches: [set(name, [], { text: "x".repeat(5_000) })], preconditions, labels };
    committed(await store.commit(commitBy("handler", 1, parts)));
    for (let n = 0; n < 300; n++) await write(store, set(`book ${n % 2}`, [], n));
    expect(await store.forgetReceipts({ madeBeforeMs: START_MS + 1, limit: 10 })).toMatchObject({ removed: 1 });
    const count = (table: string) => file.database().prepare(`SELECT count(*) AS rows FROM ${table}`).get();
    expect(["label", "snapshot", "document"].map(count)).toEqual([{ rows: 0 }, { rows: 0 }, { rows: 2 }]);
    const needing = file.database().prepare("SELECT count(*) AS rows FROM change WHERE commits LIKE '%xxxxx%'").get();
    expect(needing).toEqual({ rows: 0 });
  });

  test("[S180] [S105] the last document row stays, so that its number is not reused", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 5 } });
    await write(store, set("book", [], 0));
    const name = `receipt/${idAt(START_MS)}`;
    const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
    const { sequence } = committed(
      await store.commit(commitBy("h", 1, { patches: [set(name, [], {})], preconditions })),
    );
    const inputs = [{ ...ref(name), sequence, reads: [{ path: [], depth: "deep" } as const] }];
    committed(await store.commit(commitBy("nodes", 1, { basis: [{ node: "reader", fingerprint: "f", inputs }] })));
    for (let n = 0; n < 300; n++) await write(store, set("book", [], n));
    const forget = () => store.forgetReceipts({ madeBeforeMs: START_MS + 1, limit: 10 });
    expect(await forget()).toMatchObject({ removed: 0 });
    await write(store, set("another", [], {}));
    expect(await forget()).toMatchObject({ removed: 1 });
    await store.close();
    const again = await file.open();
    await write(again, set("third", [], {}));
    expect(await again.basis(SPACE, ["reader"])).toEqual([]);
  });

  test("[S103] a receipt that is written again in the same batch is in the feed again, and stays", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 5 } });
    const name = `receipt/${idAt(START_MS)}`;
    const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
    committed(await store.commit(commitBy("h", 1, { patches: [set(name, [], {})], preconditions })));
    for (let n = 0; n < 300; n++) await write(store, set("book", [], n));
    const [, { removed }] = await Promise.all([
      write(store, set(name, ["seen"], true)),
      store.forgetReceipts({ madeBeforeMs: START_MS + 1, limit: 10 }),
    ]);
    expect(removed).toBe(0);
    const { sequence } = await store.load(SPACE, []);
    const { commits } = await store.changesSince(SPACE, sequence - 1, 1);
    expect(commits[0]?.patches).toEqual([set(name, ["seen"], true)]);
  });

  test("[S104] receipts that cannot expire are scanned once, in steps, and not in every run", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 5 } });
    const old = Array.from({ length: 3_000 }, (_, n) => set(`receipt/${idAt(START_MS + n)}`, [], {}));
    await write(store, ...old);
    const name = `receipt/${idAt(START_MS + old.length)}`;
    const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
    committed(await store.commit(commitBy("h", 1, { patches: [set(name, [], {})], preconditions })));
    for (let n = 0; n < 300; n++) await write(store, set("book", [], n));
    const look = async () => {
      const { jobs } = store.stats();
      const { removed } = await store.forgetReceipts({ madeBeforeMs: START_MS + HOUR_MS, limit: 10 });
      return [removed, store.stats().jobs - jobs];
    };
    expect(await look()).toEqual([1, expect.any(Number)]);
    expect(await look()).toEqual([0, 1]);
  });

  test("[S99] [S101] behind a horizon a handling takes no additional statement", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { batchMs: 600_000, batchJobsMax: 100_000 } });
    await write(store, set("book", [], {}));
    const handled = async (fromMs: number) => {
      const before = store.stats();
      const handlings = Array.from({ length: 100 }, (_, n) => {
        const name = `receipt/${idAt(fromMs + n)}`;
        const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
        const patches = [set("book", [`k${n}`], n), set(name, [], { n })];
        return store.commit(commitBy(`from ${fromMs}`, n, { patches, preconditions }));
      });
      for (const outcome of await Promise.all(handlings)) committed(outcome);
      expect(store.stats().batches - before.batches).toBe(1);
      return store.stats().statements - before.statements;
    };
    await handled(START_MS);
    const without = await handled(START_MS + HOUR_MS);
    await store.forgetReceipts({ madeBeforeMs: START_MS + HOUR_MS, limit: 100 });
    expect(await handled(START_MS + 2 * HOUR_MS)).toBeLessThanOrEqual(without);
  });

  test("[S103] [S106] with retention of receipts the file stays bounded; without it the file grows", async () => {
    const pagesAfter = async (keeps: boolean) => {
      await using file = new StoreFile();
      // On a busy machine a batch that ends by its time would leave more blocks.
      const store = await file.open({ tuning: { feedCommits: 50, commitsRemembered: 500, batchMs: 600_000 } });
      const database = file.database();
      const pages: number[] = [];
      for (let hour = 0; hour < 12; hour++) {
        const handlings = Array.from({ length: 1_000 }, (_, n) => {
          const name = `receipt/${idAt(START_MS + hour * HOUR_MS + n)}`;
          const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
          const patches = [set(name, [], { request: "r".repeat(64), result: n }), set("book", [], n)];
          return store.commit(commitBy(`h${hour}`, n, { patches, preconditions }));
        });
        for (const outcome of await Promise.all(handlings)) committed(outcome);
        await write(store, set("book", [], hour));
        if (keeps) await store.forgetReceipts({ madeBeforeMs: START_MS + (hour - 1) * HOUR_MS, limit: 10_000 });
        const { used } = database
          .prepare(
            "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count) AS used",
          )
          .get() as { used: number };
        pages.push(used);
      }
      return pages;
    };
    const kept = await pagesAfter(false);
    const ended = await pagesAfter(true);
    expect(ended.at(-1)! - ended[4]!).toBeLessThanOrEqual(10);
    expect(kept.at(-1)! - kept[4]!).toBeGreaterThan(300);
  });
});

const HOUR_MS = 3_600_000;

function idAt(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}
