import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, committed, currentValue, set, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const FEED = { tuning: { feedCommits: 20 } };

/** Moves the horizon of the feed behind all commits so far. */
async function leaveBehind(store: Store): Promise<void> {
  for (let n = 0; n < 500; n++) await write(store, set("noise", [], n));
}

describe("a commit that replaces a document with patches that only loads need", () => {
  test("[S4] [S92] a commit that replaces such a document also writes the documents after it", async () => {
    await using file = new StoreFile();
    const store = await file.open(FEED);
    await write(store, set("old", [], { a: 1 }));
    await write(store, set("old", ["b"], 2));
    await leaveBehind(store);
    await write(store, set("old", [], { whole: true }), set("next", [], 1), set("last", [], 2));
    expect(await currentValue(store, "old")).toEqual({ whole: true });
    expect([await currentValue(store, "next"), await currentValue(store, "last")]).toEqual([1, 2]);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S4] [S92] the same commit also writes them if the document was patched in the same batch", async () => {
    await using file = new StoreFile();
    const store = await file.open(FEED);
    await write(store, set("old", [], { a: 1 }));
    await leaveBehind(store);
    const outcomes = await Promise.all([
      store.commit(commitBy("s", 1, { patches: [set("old", ["b"], 2)] })),
      store.commit(commitBy("s", 2, { patches: [set("old", [], { whole: true }), set("next", [], 1)] })),
      store.commit(commitBy("s", 3, { patches: [set("old", ["c"], 3), set("next", [], 2)] })),
    ]);
    for (const outcome of outcomes) committed(outcome);
    await store.close();
    const again = await file.open(FEED);
    expect(await currentValue(again, "old")).toEqual({ whole: true, c: 3 });
    expect(await currentValue(again, "next")).toBe(2);
    expect(await again.verify()).toMatchObject({ ok: true, problems: [] });
  });
});
