import { describe, expect, test } from "vitest";
import { commitBy, committed, currentValue, read, SPACE, set } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

describe("a store whose feed an earlier process kept shorter", () => {
  test("[S21] a feed that an earlier process kept shorter is neither returned in part nor reported as damage", async () => {
    await using file = new StoreFile();
    const first = await file.open({ tuning: { feedCommits: 20 } });
    for (let n = 1; n <= 600; n++) {
      const patch = n === 1 ? set("a", [], {}) : n % 3 ? set("a", [`k${n % 5}`], n) : set("b", [], n);
      committed(await first.commit(commitBy("writer", n, { patches: [patch] })));
    }
    await first.close();
    const store = await file.open({ tuning: { feedCommits: 1_000 } });
    expect(await store.changesSince(SPACE, 100, 1_000)).toEqual({
      commits: [],
      head: 600,
      history: expect.any(String),
      gap: true,
    });
    const { commits, gap } = await store.changesSince(SPACE, 580, 1_000);
    expect([gap, commits.length]).toEqual([false, 20]);
    const old = commitBy("reader", 1, { reads: [read("a", ["k1"], 100)], patches: [set("c", [], 1)] });
    expect(await store.commit(old)).toMatchObject({ kind: "rejected", reason: "read-moved" });
    const other = commitBy("reader", 2, { reads: [read("b", [], 100)], patches: [set("c", [], 1)] });
    expect(await store.commit(other)).toMatchObject({ kind: "rejected", reason: "read-moved" });
    committed(
      await store.commit(commitBy("reader", 3, { reads: [read("a", ["k1"], 600)], patches: [set("c", [], 1)] })),
    );
    expect(await currentValue(store, "c")).toBe(1);
  });
});
