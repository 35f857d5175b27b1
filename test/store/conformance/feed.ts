/** The change feed and watching: how a second process follows. */
import { describe, expect, test } from "#test";
import type { Store, StoreChange } from "../../../src/store/store.ts";
import {
  append,
  commitBy,
  committed,
  currentValue,
  entry,
  read,
  ref,
  remove,
  SPACE,
  set,
  splice,
  write,
} from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

/** Resolves with the first change that is told of and answers the question. */
function told(store: Store, isIt: (change: StoreChange) => boolean): Promise<StoreChange> {
  return new Promise((resolve) => {
    const stop = store.watch((change) => {
      if (!isIt(change)) return;
      stop();
      resolve(change);
    });
  });
}

function mayHaveMoved(space: string): (change: StoreChange) => boolean {
  return ({ spaces }) => spaces === undefined || spaces.includes(space);
}

export function feedCases(open: OpenStore): void {
  describe("feed", () => {
    test("[S20] [S172] the feed returns commits as made, oldest first, with their label writes", async () => {
      await using at = await open();
      const requests = [
        commitBy("a", 1, { patches: [set("x", [], { l: [1] }), set("y", [], {})] }),
        commitBy("b", 1, { patches: [splice("x", ["l"], 0, 1, [2, 3]), remove("y", [])] }),
        commitBy("a", 2, { labels: [{ ...ref("x"), path: [], labels: ["secret"] }] }),
        commitBy("a", 3, { entries: [entry()] }),
        commitBy("b", 2, { patches: [set("x", ["k"], null)] }),
      ];
      for (const request of requests) committed(await at.store.commit(request));
      committed(await at.store.commit(commitBy("c", 1, { space: "other", patches: [set("x", [], 0)] })));
      const expected = [
        { sequence: 1, session: "a", localSequence: 1, patches: requests[0]!.patches, labels: [] },
        { sequence: 2, session: "b", localSequence: 1, patches: requests[1]!.patches, labels: [] },
        { sequence: 3, session: "a", localSequence: 2, patches: [], labels: requests[2]!.labels },
        { sequence: 4, session: "b", localSequence: 2, patches: requests[4]!.patches, labels: [] },
      ];
      expect(await at.store.changesSince(SPACE, 0, 100)).toEqual({
        commits: expected,
        head: 4,
        history: expect.any(String),
        gap: false,
      });
      expect(await (await at.second()).changesSince(SPACE, 0, 100)).toEqual({
        commits: expected,
        head: 4,
        history: expect.any(String),
        gap: false,
      });
      const store = await at.reopen();
      expect(await store.changesSince(SPACE, 2, 1)).toEqual({
        commits: [expected[2]],
        head: 4,
        history: expect.any(String),
        gap: false,
      });
      expect(await store.changesSince(SPACE, 4, 10)).toEqual({
        commits: [],
        head: 4,
        history: expect.any(String),
        gap: false,
      });
      expect(await store.changesSince("never was", 0, 10)).toEqual({
        commits: [],
        head: 0,
        history: expect.any(String),
        gap: false,
      });
    });

    test("[S172] a commit in the feed has one patch for each document, with all operations in order", async () => {
      await using at = await open();
      await write(at.store, set("x", [], {}), set("y", [], 1), set("x", ["a"], 1), remove("x", ["a"]));
      const { commits } = await at.store.changesSince(SPACE, 0, 10);
      expect(commits[0]?.patches).toEqual([
        {
          ...ref("x"),
          operations: [
            { op: "set", path: [], value: {} },
            { op: "set", path: ["a"], value: 1 },
            { op: "delete", path: ["a"] },
          ],
        },
        set("y", [], 1),
      ]);
    });

    test("[S20] pages of the feed join without gaps or repetitions while commits continue", async () => {
      await using at = await open();
      const reader = await at.second();
      const writes = Array.from({ length: 50 }, (_, n) => write(at.store, set("n", [], n)));
      const seen: number[] = [];
      while (seen.length < 50) {
        const page = await reader.changesSince(SPACE, seen.length, 7);
        expect(page.commits.length).toBeLessThanOrEqual(7);
        seen.push(...page.commits.map((commit) => commit.sequence));
        expect(page.head).toBeGreaterThanOrEqual(seen.length);
        if (page.commits.length === 0) await at.host.yield();
      }
      await Promise.all(writes);
      expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
    });

    test("[S21] a request beyond the kept commits gets a gap; the kept commits are complete", async () => {
      await using at = await open({ changesKept: 5 });
      await write(at.store, set("n", [], {}));
      await Promise.all(Array.from({ length: 999 }, (_, n) => write(at.store, set("n", [`k${n % 7}`], n))));
      for (const reopen of [false, true]) {
        const store = reopen ? await at.reopen() : at.store;
        expect(await store.changesSince(SPACE, 0, 10)).toEqual({
          commits: [],
          head: 1_000,
          history: expect.any(String),
          gap: true,
        });
        expect(await store.changesSince(SPACE, 994, 10)).toEqual({
          commits: [],
          head: 1_000,
          history: expect.any(String),
          gap: true,
        });
        const { commits, gap } = await store.changesSince(SPACE, 995, 10);
        expect(gap).toBe(false);
        expect(commits.map((commit) => commit.sequence)).toEqual([996, 997, 998, 999, 1_000]);
        expect(commits[4]?.patches).toEqual([set("n", ["k4"], 998)]);
        expect(await store.changesSince(SPACE, 1_000, 10)).toEqual({
          commits: [],
          head: 1_000,
          history: expect.any(String),
          gap: false,
        });
        expect(await currentValue(store, "n")).toEqual({
          k0: 994,
          k1: 995,
          k2: 996,
          k3: 997,
          k4: 998,
          k5: 992,
          k6: 993,
        });
        expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
      }
    });

    test("[S173] a read older than the feed is stale only if its document has changed", async () => {
      await using at = await open({ changesKept: 5 });
      const { sequence } = await write(at.store, set("doc", [], { x: 1 }), set("still", [], 1));
      await write(at.store, set("doc", ["x"], 2));
      await Promise.all(Array.from({ length: 500 }, (_, n) => write(at.store, set("noise", [], n))));
      committed(await at.store.commit(commitBy("s", 1, { reads: [read("still", [], sequence)] })));
      expect(await at.store.commit(commitBy("s", 2, { reads: [read("doc", ["x"], sequence)] }))).toMatchObject({
        class: "stale",
        reason: "read-moved",
      });
    });

    test("[S23] a watcher is notified of commits through any store object, asynchronously", async () => {
      await using at = await open();
      const other = await at.second();
      let inside = false;
      const toldInside: boolean[] = [];
      const noteAndAsk = (change: StoreChange) => {
        toldInside.push(inside);
        return mayHaveMoved(SPACE)(change);
      };
      const mine = told(at.store, noteAndAsk);
      const theirs = told(other, noteAndAsk);
      inside = true;
      const done = write(at.store, set("a", [], 1));
      inside = false;
      await done;
      await Promise.all([mine, theirs]);
      expect(toldInside).not.toContain(true);
      const page = await other.changesSince(SPACE, 0, 10);
      expect(page.head).toBe(1);
    });

    test("[S23] a watcher is notified of journal and due rows of another store object", async () => {
      await using at = await open();
      const other = await at.second();
      const appended = told(other, (change) => change.journal);
      await append(at.store, entry());
      await appended;
      const set = told(other, (change) => change.journal);
      await at.store.changeDue([{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: null }]);
      await set;
    });

    test("[S240] [S23] a watcher knows whether another store object has written", async () => {
      await using at = await open();
      const one = await at.second();
      const changes: StoreChange[] = [];
      one.watch((change) => void changes.push(change));
      const own = told(one, (change) => change.journal);
      await append(one, entry());
      await own;
      expect(changes.some(({ isForeign }) => isForeign)).toBe(false);
      const other = await at.second();
      const foreign = told(one, ({ journal, isForeign }) => journal && isForeign === true);
      await append(other, entry());
      await foreign;
    });

    test("[S275] a notice of own writes names sequences, claimable rows and due rows, where the store gives details", async () => {
      await using at = await open();
      const store = await at.second();
      const settledRow = {
        ...entry(),
        as: { status: "done", ending: { outcome: "unheard", reason: "no subscriber" } },
      } as const;
      const due = [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: null }] as const;
      const writes: readonly [() => Promise<unknown>, { readonly claimable: boolean; readonly due: boolean }][] = [
        [() => append(store, entry()), { claimable: true, due: false }],
        [() => append(store, settledRow), { claimable: false, due: false }],
        [() => store.changeDue(due), { claimable: false, due: true }],
        [() => store.commit(commitBy("a", 1, { patches: [set("x", [], 1)] })), { claimable: false, due: false }],
        [() => store.commit(commitBy("a", 2, { entries: [entry()], due })), { claimable: true, due: true }],
      ];
      for (const [write, expected] of writes) {
        const notice = told(store, () => true);
        await write();
        const { own, isForeign } = await notice;
        expect(isForeign).toBeUndefined();
        if (own !== undefined) expect(own).toMatchObject(expected);
      }
      const notice = told(store, mayHaveMoved(SPACE));
      const outcome = await store.commit(commitBy("a", 3, { patches: [set("x", [], 2)] }));
      const { own } = await notice;
      if (own !== undefined) expect(own.sequences.get(SPACE)).toBe(outcome.kind === "committed" ? outcome.sequence : 0);
    });

    test("[S23] [S174] several watchers are notified; a stopped one is not", async () => {
      await using at = await open();
      let calls = 0;
      const stop = at.store.watch(() => calls++);
      stop();
      stop();
      const first = told(at.store, mayHaveMoved(SPACE));
      const second = told(at.store, mayHaveMoved(SPACE));
      await write(at.store, set("a", [], 1));
      await Promise.all([first, second]);
      expect(calls).toBe(0);
    });

    test("[S174] [H20] a watcher that throws or rejects does not affect other watchers", async () => {
      await using at = await open();
      const thrown = new Error("thrown by a watcher");
      const rejected = new Error("rejected by a watcher");
      at.store.watch(() => {
        throw thrown;
      });
      at.store.watch(async () => Promise.reject(rejected));
      const first = told(at.store, mayHaveMoved(SPACE));
      await write(at.store, set("a", [], 1));
      await first;
      const second = told(at.store, mayHaveMoved(SPACE));
      await write(at.store, set("a", [], 2));
      await second;
      expect([thrown, rejected].map((error) => at.host.reported.includes(error))).toEqual([true, true]);
    });
  });
}
