import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { documentStore } from "../../src/store/memory/document-store.ts";
import { commitBy, entry, set } from "./conformance/requests.ts";

describe("a store of documents alone", () => {
  test("[K142] keeps documents, and transactions over them", async () => {
    const space = await Space.open({ store: documentStore(), name: "page" });
    const count = space.cell<number>("count", 1);
    await space.transact(() => count.set((count.get() ?? 0) + 41));
    expect(count.get()).toBe(42);
    await space.close();
  });

  test("[K142] events, timers, leases and consumers throw, and the error names memoryStore()", async () => {
    const store = documentStore();
    const refused = { code: "STORE_MISUSE", message: expect.stringContaining("memoryStore()") };
    await expect(store.append([entry()])).rejects.toMatchObject(refused);
    await expect(store.openLease(1_000)).rejects.toMatchObject(refused);
    await expect(store.consumers()).rejects.toMatchObject(refused);
    await expect(store.earliestDue()).rejects.toMatchObject(refused);
    await expect(store.count()).rejects.toMatchObject(refused);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 0 });
  });

  test("[K142] a commit with an event is refused as a whole", async () => {
    const store = documentStore();
    const patches = [set("total", [], 1)];
    await expect(store.commit(commitBy("s", 1, { patches, entries: [entry()] }))).rejects.toMatchObject({
      ...{ code: "STORE_MISUSE" },
    });
    expect(await store.verify()).toMatchObject({ documents: 0 });
    expect(await store.commit(commitBy("s", 1, { patches }))).toMatchObject({ kind: "committed" });
    expect(await store.verify()).toMatchObject({ documents: 1 });
  });
});
