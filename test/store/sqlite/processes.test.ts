import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Store, StoreChange } from "../../../src/store/store.ts";
import { append, commitBy, currentValue, entries, read, ref, SPACE } from "../conformance/requests.ts";
import { startProgram } from "./program.ts";
import { StoreFile } from "./store-file.ts";

/**
 * Resolves when the condition holds, asked after each change of a space that the store tells of; others tell of leases.
 */
function untilTold(store: Store, condition: () => Promise<boolean>): Promise<StoreChange> {
  return new Promise((resolve, reject) => {
    const stop = store.watch((change) => {
      if (change.spaces?.length === 0) return;
      condition().then((holds) => {
        if (!holds) return;
        stop();
        resolve(change);
      }, reject);
    });
  });
}

async function noteIn(store: Store): Promise<unknown> {
  const note = await currentValue(store, "note");
  return typeof note === "object" && note !== null && "text" in note ? note.text : undefined;
}

describe("two processes on one file", () => {
  test("[S96] a commit of another process is announced with its space and can be read", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await using other = startProgram("writer", { path: file.path });
    expect(await other.next()).toBe("ready");
    for (const text of ["first", "second", "third"]) {
      const told = untilTold(store, async () => (await noteIn(store)) === text);
      other.tell(text);
      expect((await told).spaces).toEqual([SPACE]);
      await other.next();
    }
  });

  test("[S96] a commit of another process invalidates cached reads", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await using other = startProgram("writer", { path: file.path });
    expect(await other.next()).toBe("ready");
    for (const round of [0, 1, 2]) {
      other.tell(round);
      expect(await other.next()).toEqual([3 * round + 1]);
      const { sequence, documents } = await store.load(SPACE, [ref("note")]);
      expect([sequence, documents[0]?.sequence, documents[0]?.value]).toEqual([round + 2, round + 2, { text: round }]);
      const behind = commitBy(`reader ${round}`, 1, { reads: [read("note", [], round + 1)] });
      expect(await store.commit(behind)).toMatchObject({ class: "stale", reason: "read-moved" });
      expect(await append(store, ...entries(2))).toEqual([3 * round + 2, 3 * round + 3]);
    }
    expect((await store.changesSince(SPACE, 0, 10)).commits.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
  });

  test("[S97] two processes that append and claim get contiguous ids and no row twice, and both make progress", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await using one = startProgram("worker", { path: file.path, name: "one", rounds: 100 });
    await using two = startProgram("worker", { path: file.path, name: "two", rounds: 100 });
    expect([await one.next(), await two.next()]).toEqual(["ready", "ready"]);
    one.tell("go");
    two.tell("go");
    const results = [await one.next(), await two.next()] as unknown as { appended: number[]; claimed: number[] }[];
    const appended = results.flatMap((result) => result.appended);
    const claimed = results.flatMap((result) => result.claimed);
    const ascending = (a: number, b: number) => a - b;
    expect(appended.length).toBeGreaterThanOrEqual(800);
    expect(appended.sort(ascending)).toEqual(appended.map((_, n) => n + 1));
    expect(new Set(claimed).size).toBe(claimed.length);
    for (const { claimed } of results) expect(claimed.length).toBeGreaterThan(0);
    const { done, pending } = await store.count();
    expect([done, done + pending]).toEqual([claimed.length, appended.length]);
    // Neither was served only when the other had finished: each goes on until the other has come in between.
    const lastOf = results.map((result) => Math.max(...result.appended));
    const firstOf = results.map((result) => Math.min(...result.appended));
    expect(Math.max(...firstOf)).toBeLessThan(Math.min(...lastOf));
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
    expect(existsSync(`${file.path}-turn`)).toBe(false);
  });

  test("[S98] rows of a killed process are recovered at once, those of a living one are not", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, ...entries(3));
    await using holder = startProgram("holder", { path: file.path });
    expect(await holder.next()).toEqual([1, 2, 3]);
    expect(await store.recover()).toBe(0);
    expect(await store.count()).toMatchObject({ processing: 3 });
    await holder.kill();
    expect(await store.recover()).toBe(3);
    expect(await store.count()).toMatchObject({ pending: 3, processing: 0 });
  });
});
