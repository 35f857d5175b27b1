/** Opening, closing, verifying and counting. */
import { describe, expect, test } from "#test";
import { JOURNAL_START } from "../../../src/store/journal-position.ts";
import type { Store } from "../../../src/store/store.ts";
import { append, commitBy, committed, currentValue, entries, entry, ref, SPACE, set, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const EVERY_CALL: readonly ((store: Store) => Promise<unknown>)[] = [
  (store) => store.load(SPACE, []),
  (store) => store.commit(commitBy("s", 9)),
  (store) => store.changesSince(SPACE, 0, 1),
  (store) => store.basis(SPACE, []),
  (store) => store.append([entry()]),
  (store) => store.openLease(1),
  (store) => store.renewLease(1, 1),
  (store) => store.closeLease(1),
  (store) => store.claim({ lease: 1, limit: 1, kinds: ["event"] }),
  (store) => store.settle([]),
  (store) => store.recover(),
  (store) => store.requeue([]),
  (store) => store.conclude([], { from: "failed", ending: { outcome: "discarded", reason: "no" } }),
  (store) => store.releaseRetries(1),
  (store) => store.query({ limit: 1 }),
  (store) => store.count(),
  (store) => store.retain({ limit: 1 }),
  (store) => store.follow(JOURNAL_START, 1),
  (store) => store.journalEnd(),
  (store) => store.hasCommits([]),
  (store) => store.verify(),
  (store) => store.changeDue([]),
  (store) => store.dueRows(1, 1),
  (store) => store.dueRow("timer", "a"),
  (store) => store.earliestDue(),
];

export function lifeCases(open: OpenStore): void {
  describe("life", () => {
    test("[S24] acknowledged data survives reopening, including leases and replay results", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(1_000);
      const request = commitBy("s", 1, {
        patches: [set("a", [], { x: 1 })],
        entries: [entry({}, { status: "claimed", lease }), entry()],
        due: [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: null }],
        labels: [{ ...ref("a"), path: ["x"], labels: ["secret"] }],
      });
      committed(await at.store.commit(request));
      const store = await at.reopen();
      expect((await store.load(SPACE, [ref("a")])).documents).toEqual([
        { ...ref("a"), value: { x: 1 }, sequence: 1, labels: [{ path: ["x"], labels: ["secret"] }] },
      ]);
      expect(await store.count()).toEqual({ pending: 1, processing: 1, done: 0, failed: 0 });
      expect(await store.earliestDue()).toBe(1);
      expect(committed(await store.commit(request)).replayed).toBe(true);
      expect(await store.renewLease(lease, 1_000)).toBe(true);
      expect(await store.settle([{ id: 1, lease, attempt: 1, outcome: { kind: "done" } }])).toEqual(["settled"]);
    });

    test("[S25] close waits for earlier calls", async () => {
      await using at = await open();
      const writes = Array.from({ length: 50 }, (_, n) => write(at.store, set(`d${n}`, [], n)));
      const appended = at.store.append(entries(10));
      await at.store.close();
      expect((await Promise.all(writes)).length).toBe(50);
      expect(await appended).toMatchObject({ kind: "appended" });
      const store = await at.reopen();
      expect(await currentValue(store, "d49")).toBe(49);
      expect((await store.count()).pending).toBe(10);
    });

    test("[S25] every call on a closed store is refused; closing twice is harmless", async () => {
      await using at = await open();
      const other = await at.second();
      await Promise.all([other.close(), other.close()]);
      await other.close();
      await other[Symbol.asyncDispose]();
      for (const [n, call] of EVERY_CALL.entries()) {
        await expect(call(other), `call ${n}`).rejects.toMatchObject({ name: "StoreError", code: "STORE_CLOSED" });
      }
      await write(at.store, set("a", [], 1));
    });

    test("[S26] verify finds no problem in a sound store and counts its rows and documents", async () => {
      await using at = await open();
      await append(at.store, ...entries(3), entry({}, { status: "done" }));
      await write(at.store, set("a", [], 1), set("b", [], {}));
      for (let n = 0; n < 40; n++) await write(at.store, set("b", [`k${n % 3}`], n));
      const sound = { ok: true, rows: 4, unsigned: 0, documents: 2, problems: [] };
      expect(await at.store.verify()).toEqual(sound);
      await at.store.retain({ keepSettled: 0, limit: 10 });
      expect(await (await at.reopen()).verify()).toEqual({ ...sound, rows: 3 });
    });

    test("[S27] stats count jobs and the bytes written: a small change of a large document writes little", async () => {
      await using at = await open();
      const store = await at.second();
      const large = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`key ${n}`, n]));
      const before = store.stats();
      await write(store, set("a", [], large));
      const made = store.stats();
      await write(store, set("a", ["key 77"], 0));
      const changed = store.stats();
      expect(made.jobs).toBeGreaterThan(before.jobs);
      expect(changed.jobs).toBeGreaterThan(made.jobs);
      expect(made.bytesWritten - before.bytesWritten).toBeGreaterThan(100_000);
      expect(changed.bytesWritten - made.bytesWritten).toBeLessThan(1_000);
    });
  });
}
