/** Documents through the seam: loading, path operations, tombstones, labels. */
import { describe, expect, test } from "#test";
import type { Json } from "../../../src/message/json.ts";
import type { DocumentPatch } from "../../../src/store/commit.ts";
import { commitBy, committed, currentValue, ref, remove, SPACE, set, splice, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

export function documentCases(open: OpenStore): void {
  describe("documents", () => {
    test("[S160] a document that never existed has no value, no labels and sequence 0", async () => {
      await using at = await open();
      expect(await at.store.load("nowhere", [ref("none")])).toEqual({
        sequence: 0,
        history: at.store.connection.history,
        documents: [{ ...ref("none"), value: undefined, sequence: 0, labels: [] }],
      });
    });

    test("[S2] [S160] load answers in the order of the request, each with the sequence of its own last change", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 1));
      await write(at.store, set("b", [], 2), set("c", [], 3));
      await write(at.store, set("a", [], 4));
      const { sequence, documents } = await at.store.load(SPACE, [ref("c"), ref("none"), ref("a"), ref("b"), ref("a")]);
      expect(sequence).toBe(3);
      expect(documents.map(({ id, value, sequence }) => [id, value, sequence])).toEqual([
        ["c", 3, 2],
        ["none", undefined, 0],
        ["a", 4, 3],
        ["b", 2, 2],
        ["a", 4, 3],
      ]);
    });

    test("[S161] spaces and scopes do not see each other", async () => {
      await using at = await open();
      const mine = { scope: "user:1", id: "a" };
      const setMine: DocumentPatch = { ...mine, operations: [{ op: "set", path: [], value: "mine" }] };
      await at.store.commit(commitBy("one", 1, { patches: [set("a", [], "ours"), setMine] }));
      await at.store.commit(commitBy("two", 1, { space: "other", patches: [set("a", [], "elsewhere")] }));
      const { documents } = await at.store.load(SPACE, [ref("a"), mine]);
      expect(documents.map((document) => document.value)).toEqual(["ours", "mine"]);
      expect(await currentValue(at.store, "a", "other")).toBe("elsewhere");
      expect((await at.store.load("other", [mine])).documents[0]?.value).toBeUndefined();
    });

    test("[S2] documents loaded together are as of one sequence, while commits continue", async () => {
      await using at = await open();
      const refs = [ref("left"), ref("right")];
      const writes: Promise<unknown>[] = [];
      const loads: Promise<Json[]>[] = [];
      for (let n = 1; n <= 30; n++) {
        writes.push(write(at.store, set("left", [], n), set("right", [], n)));
        loads.push(at.store.load(SPACE, refs).then(({ documents }) => documents.map(({ value }) => value ?? 0)));
        if (n % 5 === 0) await at.host.yield();
      }
      for (const [left, right] of await Promise.all(loads)) expect(left).toBe(right);
      await Promise.all(writes);
      expect(await currentValue(at.store, "right")).toBe(30);
    });

    test("[S2] ten thousand documents load at once", async () => {
      await using at = await open();
      const ids = Array.from({ length: 10_000 }, (_, n) => `document ${n}`);
      await write(at.store, ...ids.map((id, n) => set(id, [], n)));
      const { documents } = await at.store.load(SPACE, ids.map(ref));
      expect(documents.map((document) => document.value)).toEqual(ids.map((_, n) => n));
    });

    test("[S3] a deleted document has no value and keeps a sequence; it can be set again", async () => {
      await using at = await open();
      await write(at.store, set("a", [], { x: 1 }));
      await write(at.store, remove("a", []));
      const { documents } = await at.store.load(SPACE, [ref("a")]);
      expect(documents[0]).toEqual({ ...ref("a"), value: undefined, sequence: 2, labels: [] });
      await write(at.store, set("a", [], "again"));
      expect(await currentValue(at.store, "a")).toBe("again");
    });

    test("[S4] a commit with patches or labels raises the sequence of its space by one, and of no other", async () => {
      await using at = await open();
      const labels = [{ ...ref("a"), path: ["x"], labels: ["secret"] }];
      const basis = [{ node: "n", fingerprint: "f", inputs: [] }];
      const requests = [
        commitBy("s", 1, { patches: [set("a", [], {}), set("b", [], {})] }),
        commitBy("s", 2, { labels }),
        commitBy("s", 3, { patches: [set("a", ["x"], 1)], labels }),
        commitBy("s", 4, { basis }),
        commitBy("s", 5, { due: [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: null }] }),
        commitBy("s", 6),
        commitBy("t", 1, { space: "other", patches: [set("a", [], {})] }),
      ];
      const sequences: number[] = [];
      for (const request of requests) sequences.push(committed(await at.store.commit(request)).sequence);
      expect(sequences).toEqual([1, 2, 3, 3, 3, 3, 1]);
      expect((await at.store.load(SPACE, [])).sequence).toBe(3);
    });

    test("[S14] set, delete and splice change only the value at their path", async () => {
      await using at = await open();
      const patches = [
        set("a", [], { list: [1, 2, 3], tree: { left: { x: 1 }, right: null } }),
        set("a", ["tree", "left", "y"], [true]),
        set("a", ["list", "1"], "two"),
        set("a", ["list", "3"], 4),
        splice("a", ["list"], 1, 2, [{ in: 1 }, "b", "c"]),
        remove("a", ["tree", "right"]),
        set("a", ["tree", "left", "y", "0"], false),
        splice("a", ["tree", "left", "y"], 1, 0, [7]),
      ];
      for (const patch of patches) await write(at.store, patch);
      const value = { list: [1, { in: 1 }, "b", "c", 4], tree: { left: { x: 1, y: [false, 7] } } };
      expect(await currentValue(at.store, "a")).toEqual(value);
      expect(await currentValue(await at.reopen(), "a")).toEqual(value);
    });

    test("[S14] several patches of one document in one commit apply in order", async () => {
      await using at = await open();
      await write(at.store, set("a", [], {}), set("a", ["x"], [1]), splice("a", ["x"], 1, 0, [2]), set("a", ["y"], 0));
      expect(await currentValue(at.store, "a")).toEqual({ x: [1, 2], y: 0 });
      await write(at.store, remove("a", []), set("a", [], [0]));
      expect(await currentValue(at.store, "a")).toEqual([0]);
    });

    test("[S14] a document that was patched a thousand times has the value of its patches", async () => {
      await using at = await open();
      await write(at.store, set("a", [], {}));
      const patches = Array.from({ length: 1_000 }, (_, n) => set("a", [`k${n % 100}`], n));
      await Promise.all(patches.map((patch) => write(at.store, patch)));
      const expected = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`k${n}`, 900 + n]));
      expect(await currentValue(at.store, "a")).toEqual(expected);
      expect(await currentValue(await at.reopen(), "a")).toEqual(expected);
    });

    test("[S169] a load without documents reports whether any label exists", async () => {
      await using at = await open();
      const label = (localSequence: number, labels: string[]) =>
        at.store.commit(commitBy("s", localSequence, { labels: [{ ...ref("a"), path: [], labels }] }));
      const isLabelled = async () => (await at.store.load(SPACE, [])).isLabelled === true;
      expect(await isLabelled()).toBe(false);
      committed(await label(1, ["secret"]));
      expect(await isLabelled()).toBe(true);
      committed(await label(2, []));
      expect(await isLabelled()).toBe(false);
    });

    test("[S17] labels are replaced by address, removed by an empty set, and change no document's sequence", async () => {
      await using at = await open();
      await write(at.store, set("a", [], { x: 1 }));
      const label = (localSequence: number, path: string[], labels: string[]) =>
        at.store.commit(commitBy("s", localSequence, { labels: [{ ...ref("a"), path, labels }] }));
      const labelsOf = async (id: string) => {
        const { documents } = await at.store.load(SPACE, [ref(id)]);
        const list = documents[0]?.labels ?? [];
        return Object.fromEntries(list.map(({ path, labels }) => [JSON.stringify(path), [...labels].sort()]));
      };
      await label(1, ["x"], ["a", "b"]);
      await label(2, [], ["root"]);
      await label(3, ["a", "b"], ["two steps"]);
      await label(4, ["a/b"], ["one step"]);
      expect(await labelsOf("a")).toEqual({
        '["x"]': ["a", "b"],
        "[]": ["root"],
        '["a","b"]': ["two steps"],
        '["a/b"]': ["one step"],
      });
      await label(5, ["x"], ["c"]);
      await label(6, ["a/b"], []);
      await label(7, ["never"], []);
      expect(await labelsOf("a")).toEqual({ '["x"]': ["c"], "[]": ["root"], '["a","b"]': ["two steps"] });
      expect(await labelsOf("b")).toEqual({});
      const { sequence, documents } = await at.store.load(SPACE, [ref("a")]);
      expect([sequence, documents[0]?.sequence]).toEqual([8, 1]);
    });
  });
}
