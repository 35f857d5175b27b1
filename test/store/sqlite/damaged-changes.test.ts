/** Blocks of changes that are incomplete, do not fit or lie across the floor of the feed. */
import { describe, expect, test } from "vitest";
import type { CommitRequest } from "../../../src/store/commit.ts";
import { Replica } from "../../../src/store/replica.ts";
import { commitBy, SPACE, set } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const DOC = { scope: "space", id: "doc" };

async function opened(file: StoreFile, feedCommits: number) {
  const open = () => file.open({ tuning: { feedCommits } });
  let store = await open();
  let n = 0;
  const commit = (more: Partial<CommitRequest>) => store.commit(commitBy("s", ++n, more));
  const reopen = async (sql: string) => {
    await store.close();
    file.database().exec(sql);
    store = await open();
    return store;
  };
  return { commit, reopen, store };
}

describe("blocks of changes", () => {
  test("[S20] [S76] a commit with only labels stays in the feed when its block loses an earlier change", async () => {
    await using file = new StoreFile();
    const { commit, store } = await opened(file, 50);
    const all: Promise<unknown>[] = [];
    for (let i = 1; i <= 249; i++) {
      if (i === 199) all.push(commit({ patches: [set("doc", [], { big: "x".repeat(600) })] }));
      else if (i === 205) all.push(commit({ labels: [{ ...DOC, path: [], labels: ["secret"] }] }));
      else all.push(commit({ patches: [set(`o${i % 5}`, [], i)] }));
    }
    await Promise.all(all);
    await commit({ patches: [set("o", [], 1)] });
    // The feed is shortened in a job of its own; `retain` comes behind it.
    await store.retain({ keepSettled: 0, limit: 1 });
    await commit({ patches: [set("doc", [], 1)] });
    const { gap, commits } = await store.changesSince(SPACE, 204, 1_000);
    expect([gap, commits[0]?.sequence, commits[0]?.labels?.length]).toEqual([false, 205, 1]);
    expect(commits.map(({ sequence }) => sequence)).toEqual(commits.map((_, at) => 205 + at));
    expect((await store.verify()).ok).toBe(true);
  });

  test("[S20] [S87] verify finds a missing block, and the feed does not skip it", async () => {
    await using file = new StoreFile();
    const { commit, reopen } = await opened(file, 1_000);
    for (let i = 1; i < 10; i++) await commit({ patches: [set(`o${i}`, [], i)] });
    const store = await reopen("DELETE FROM change WHERE first = 5");
    await expect(store.changesSince(SPACE, 0, 99)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(await store.verify()).toMatchObject({
      ok: false,
      problems: expect.arrayContaining([expect.stringContaining("sequences 5 to 5 are missing")]),
    });
  });

  test("[S213] [S88] a patch that does not fit is damage, and its document fails alone", async () => {
    await using file = new StoreFile();
    const { commit, store } = await opened(file, 1_000);
    await commit({ patches: [set("other", [], 1)] });
    await commit({ patches: [set("doc", [], { q: 5 })] });
    await commit({ patches: [set("doc", ["q", "x"], 1)] });
    await expect(store.load(SPACE, [DOC])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await using replica = await Replica.open({ store: store, space: SPACE });
    const other = { scope: "space", id: "other" };
    await replica.load([DOC, other]).catch(() => undefined);
    expect(replica.peek(other)).toBe(1);
  });

  test("[S62] [S219] a damaged document can be replaced whole or removed, also behind the feed", async () => {
    for (const operation of [
      { op: "set" as const, path: [], value: { a: 1 } },
      { op: "delete" as const, path: [] },
    ]) {
      await using file = new StoreFile();
      const { commit, reopen } = await opened(file, 5);
      await commit({ patches: [set("doc", [], { big: "x".repeat(600) })] });
      for (let i = 0; i < 300; i++) await commit({ patches: [set(`o${i % 3}`, [], i)] });
      const store = await reopen("UPDATE change SET commits = replace(commits, 'xxx', 'xyx') WHERE first = 1");
      await expect(store.load(SPACE, [DOC])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      expect(await commit({ patches: [{ ...DOC, operations: [operation] }] })).toMatchObject({ kind: "committed" });
      const { documents } = await store.load(SPACE, [DOC]);
      expect(documents[0]?.value).toEqual(operation.op === "set" ? { a: 1 } : undefined);
    }
  });
});
