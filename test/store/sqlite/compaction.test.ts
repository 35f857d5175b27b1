import { describe, expect, test } from "vitest";
import { commitsIn } from "../../../src/store/sqlite/change-block.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, committed, currentValue, ref, remove, SPACE, set, splice, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

function expectedAfter(count: number): object {
  return Object.fromEntries(Array.from({ length: Math.min(50, count) }, (_, n) => [`k${n}`, lastWrite(n, count)]));
}

/** The value of key `n` after `count` writes that went round and round over fifty keys. */
function lastWrite(n: number, count: number): string {
  const last = n + 50 * Math.floor((count - 1 - n) / 50);
  return `${last} ${"x".repeat(100)}`;
}

async function writeRound(store: Store, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) await write(store, set("a", [`k${n % 50}`], `${n} ${"x".repeat(100)}`));
}

/** Every patch that is stored among the changes. */
function patchesIn(file: StoreFile): { readonly sequence: number; readonly document: number }[] {
  const blocks = file.database().prepare("SELECT commits FROM change ORDER BY space, first").all();
  return blocks
    .flatMap(({ commits }) => commitsIn(String(commits)))
    .flatMap(({ sequence, patches }) => patches.map(({ document }) => ({ sequence, document })));
}

/** Commits that each write a small document of their own whole. */
function noise(store: Store, count: number): Promise<unknown>[] {
  return Array.from({ length: count }, (_, n) => write(store, set(n === 0 ? "noise" : `noise ${n}`, [], {})));
}

describe("compaction", () => {
  test("[S92] patches that outgrow their base become a snapshot, and the value stays", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await write(store, set("a", [], {}));
    await writeRound(store, 0, 500);
    const row = file.database().prepare("SELECT * FROM document").get();
    expect(Number(row?.["snapshot_sequence"])).toBeGreaterThan(0);
    expect(Number(row?.["patch_bytes"])).toBeLessThan(8_000);
    expect(await currentValue(store, "a")).toEqual(expectedAfter(500));
    await store.close();
    expect(await currentValue(await file.open(), "a")).toEqual(expectedAfter(500));
  });

  test("[S92] snapshots cost no more than the patches that made them due", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const big = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`key ${n}`, "y".repeat(20)]));
    await write(store, set("a", [], big));
    const before = store.stats().bytesWritten;
    await Promise.all(Array.from({ length: 3_000 }, (_, n) => write(store, set("a", [`key ${n % 2_000}`], n))));
    await write(store, set("b", [], 0));
    const perPatch = (store.stats().bytesWritten - before) / 3_000;
    expect(perPatch).toBeLessThan(2 * 60);
  });

  test("[S92] a whole new value is a base and needs no snapshot", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const value = { text: "x".repeat(20_000) };
    for (let n = 0; n < 5; n++) await write(store, set("a", [], { ...value, n }));
    await write(store, set("a", ["n"], "last"));
    expect(file.database().prepare("SELECT count(*) AS n FROM snapshot").get()).toEqual({ n: 0 });
    expect(await currentValue(store, "a")).toEqual({ ...value, n: "last" });
  });

  test("[S92] a tombstone, a new value and operations in the middle survive compaction", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await write(store, set("a", [], { list: [] }));
    for (let n = 0; n < 300; n++) await write(store, splice("a", ["list"], n % 7 === 0 ? 0 : n, 0, [`item ${n}`]));
    const value = (await currentValue(store, "a")) as { list: string[] };
    expect(new Set(value.list).size).toBe(300);
    await write(store, remove("a", []));
    expect(await currentValue(store, "a")).toBeUndefined();
    await write(store, set("a", [], [1]), splice("a", [], 1, 0, [2]));
    expect(await currentValue(store, "a")).toEqual([1, 2]);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S92] patches behind the feed are dropped, and all documents still load", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 100 } });
    await write(store, set("once", [], { never: "changed" }));
    await write(store, set("patched", [], {}), set("replaced", [], 0));
    await write(store, set("patched", ["x"], 1));
    await write(store, set("a", [], {}));
    for (let round = 0; round < 10; round++) {
      await writeRound(store, round * 100, (round + 1) * 100);
      await write(store, set("replaced", [], round));
    }
    // 1,014 were written; a step of upkeep takes 200 commits at a time.
    expect(patchesIn(file).length).toBeLessThan(500);
    expect(await currentValue(store, "once")).toEqual({ never: "changed" });
    expect(await currentValue(store, "patched")).toEqual({ x: 1 });
    expect(await currentValue(store, "replaced")).toBe(9);
    expect(await currentValue(store, "a")).toEqual(expectedAfter(1_000));
    const { sequence } = await store.load(SPACE, []);
    const page = await store.changesSince(SPACE, sequence - 100, 1_000);
    expect([page.gap, page.commits.length]).toEqual([false, 100]);
    expect(page.commits.every(({ patches }) => patches.length === 1)).toBe(true);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S92] a document replaced behind the feed leaves no part of its old value", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await write(store, set("old", [], {}));
    for (let n = 0; n < 5; n++) await write(store, set("old", [`k${n}`], n));
    for (let n = 0; n < 300; n++) await write(store, set("other", [], n));
    const { id } = file.database().prepare("SELECT id FROM document WHERE name = 'old'").get()!;
    const kept = () => patchesIn(file).filter(({ document }) => document === id).length;
    // Its base is in its row.
    expect(kept()).toBe(5);
    await write(store, set("old", [], "new"));
    expect(kept()).toBe(1);
    expect(await currentValue(store, "old")).toBe("new");
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S92] [S164] the commit log keeps exactly the number of commits for the replay check", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { commitsRemembered: 100, feedCommits: 50 } });
    for (let n = 1; n <= 2_100; n++) await store.commit(commitBy("s", n));
    const kept = file.database().prepare("SELECT sum(last - first + 1) AS n FROM commit_run").get();
    expect(Number(kept?.["n"])).toBeLessThan(1_300);
    for (let n = 2_001; n <= 2_100; n++) expect(committed(await store.commit(commitBy("s", n))).replayed).toBe(true);
  });

  test("[S192] receipts behind the feed need only their own row", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    const receipt = (n: number) => {
      const preconditions = [{ kind: "absent", ...ref(`receipt ${n}`) } as const];
      return commitBy("s", n, { preconditions, patches: [set(`receipt ${n}`, [], { n }), set("book", [], { n })] });
    };
    for (let n = 1; n <= 500; n++) committed(await store.commit(receipt(n)));
    expect(patchesIn(file).length).toBeLessThanOrEqual(2 * (10 + 200 + 1));
    const refs = Array.from({ length: 500 }, (_, index) => ref(`receipt ${index + 1}`));
    const { documents } = await store.load(SPACE, refs);
    expect(documents.map(({ value }) => value)).toEqual(refs.map((_, index) => ({ n: index + 1 })));
    expect(await store.commit({ ...receipt(3), localSequence: 501 })).toMatchObject({ reason: "document-exists" });
    expect(await store.verify()).toMatchObject({ ok: true, documents: 501, problems: [] });
  });

  test("[S92] a block with one needed patch keeps that patch and drops the others", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await write(store, set("old", [], { large: "x".repeat(1_000) }), set("older", [], {}));
    await Promise.all([write(store, set("old", ["k"], 1)), ...noise(store, 20), write(store, set("older", ["k"], 2))]);
    for (let n = 0; n < 300; n++) await write(store, set("noise", ["n"], n));
    const names = file.database().prepare("SELECT id, name FROM document").all();
    const left = patchesIn(file)
      .filter(({ sequence }) => sequence <= 23)
      .map(({ document }) => names.find(({ id }) => id === document)?.["name"]);
    expect(left).toEqual(["old", "old", "older"]);
    expect(await currentValue(store, "old")).toMatchObject({ k: 1 });
    expect(await currentValue(store, "older")).toEqual({ k: 2 });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S95] an input of a node takes at most 120 bytes", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const inputs = Array.from({ length: 10 }, (_, n) => ({
      ...ref(`a document with an id of some length, number ${n}`),
      sequence: 1_000_000 + n,
      reads: [{ path: ["some", "path", "of", "ordinary", "length"], depth: "deep" as const }],
    }));
    const nodes = Array.from({ length: 1_000 }, (_, n) => ({ node: `node ${n}`, fingerprint: "f", inputs }));
    committed(await store.commit(commitBy("s", 1, { basis: nodes })));
    const pages = file.database().prepare("SELECT sum(pgsize) AS bytes FROM dbstat WHERE name = 'node'").get();
    expect(Number(pages?.["bytes"]) / 10_000).toBeLessThan(120);
    expect(file.database().prepare("SELECT count(*) AS n FROM path_set").get()).toEqual({ n: 1 });
  });

  test("[S95] unused path sets are removed", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const basis = (path: string) => [
      {
        node: "n",
        fingerprint: "f",
        inputs: [{ ...ref("a"), sequence: 1, reads: [{ path: [path], depth: "deep" as const }] }],
      },
    ];
    for (let n = 1; n <= 20; n++) await store.commit(commitBy("s", n, { basis: basis(`path ${n % 3}`) }));
    const count = () => file.database().prepare("SELECT count(*) AS n FROM path_set").get()?.["n"];
    expect(count()).toBe(1);
    await store.commit(commitBy("s", 21, { basisRemoved: ["n"] }));
    expect(count()).toBe(0);
  });
});
