/** Memory stores with a lane for each store object: ids have gaps, and rows with smaller ids appear later. */
import { describe, expect, test } from "#test";
import type { JournalRow } from "../../src/store/journal.ts";
import { JOURNAL_START, type JournalPosition, journalLaneOf } from "../../src/store/journal-position.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { describeStore } from "./conformance/describe-store.ts";
import { append, claimUnderNewLease, commitBy, committed, entries, entry } from "./conformance/requests.ts";
import type { OpenStore } from "./conformance/store-under-test.ts";
import { ControlledHost } from "./controlled-host.ts";
import { openMemory } from "./open-memory.ts";
import { Numbers, renumbered } from "./postgres/renumbered-store.ts";

const openLaned: OpenStore = async (options) => {
  const numbers = new Numbers();
  const at = await openMemory({ isLaned: true })(options);
  return {
    ...at,
    idsAreChosen: true,
    store: renumbered(at.store, numbers),
    second: async () => renumbered(await at.second(), numbers),
    reopen: async () => renumbered(await at.reopen(), numbers),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  };
};

describeStore("memory store with lanes", openLaned, { modelRuns: 60, hasModel: false, isBrief: true });

function twoLanes() {
  const host = new ControlledHost();
  const disk = new MemoryDisk({ isLaned: true });
  return [memoryStore({ host, disk }), memoryStore({ host, disk })] as const;
}

const idsOf = (rows: readonly JournalRow[]) => rows.map(({ id }) => id);

/** All rows after a position, by pages. */
async function followed(store: Store, from: JournalPosition, limit: number) {
  const rows: JournalRow[] = [];
  for (let after = from; ; ) {
    const page = await store.follow(after, limit);
    rows.push(...page.rows);
    after = page.end;
    if (!page.isFull) return { rows, end: after };
  }
}

describe("lanes", () => {
  const greatest = async (store: Store) => (await append(store, ...entries(5))).at(-1)!;
  const done = { status: "done" } as const;

  test("[J170] a row in another lane may appear late, with a smaller id than a row that exists", async () => {
    const [one, two] = twoLanes();
    const last = await greatest(one);
    expect((await append(two, entry()))[0]).toBeLessThan(last);
  });

  test("[J170] an id is greater than every id that a query, a page, a claim or an append has answered with", async () => {
    const known = entry();
    const repeats: Record<string, (store: Store) => Promise<unknown>> = {
      query: (store) => store.query({ limit: 10 }),
      follow: (store) => store.follow(JOURNAL_START, 10),
      claim: (store) => claimUnderNewLease(store, 10),
      append: (store) => append(store, known),
      commit: async (store) => committed(await store.commit(commitBy("s", 1, { entries: [known] }))),
    };
    for (const [name, look] of Object.entries(repeats)) {
      const [one, two] = twoLanes();
      await greatest(one);
      const [last] = await append(one, known);
      await look(two);
      expect((await append(two, entry()))[0], name).toBeGreaterThan(last!);
    }
  });

  test("[J172] a follower gets each row once, in order of id in a page, and also a row that appears behind its position", async () => {
    const [one, two] = twoLanes();
    await append(one, ...entries(3));
    await append(two, ...entries(2));
    for (const limit of [1, 2, 100]) {
      const first = await followed(one, JOURNAL_START, limit);
      expect(idsOf(first.rows).toSorted((a, b) => a - b)).toEqual(idsOf(await one.query({ limit: 100 })));
      const [late] = await append(two, entry());
      const [early] = await append(one, entry());
      const { rows } = await followed(two, first.end, limit);
      expect(idsOf(rows).toSorted((a, b) => a - b)).toEqual([late!, early!].toSorted((a, b) => a - b));
      expect(new Set(rows.map(journalLaneOf))).toEqual(new Set([0, 1]));
    }
    const { rows } = await one.follow(JOURNAL_START, 100);
    expect(idsOf(rows)).toEqual(idsOf(rows).toSorted((a, b) => a - b));
  });

  test("[J173] a page names the removed rows of each lane, and the row before which they were", async () => {
    const [one, two] = twoLanes();
    const removed = [...(await append(one, entry({}, done))), ...(await append(two, entry({}, done)))];
    await two.query({ limit: 10 });
    const [left] = await append(two, entry());
    const [after] = await append(one, entry({}, done));
    expect(await one.retain({ keepSettled: 0, limit: 10 })).toBe(3);
    const page = await one.follow(JOURNAL_START, 10);
    expect(idsOf(page.rows)).toEqual([left]);
    expect(page.gone).toContainEqual({ before: 0, lane: 1, through: removed[1] });
    expect(page.gone.some(({ lane, through }) => lane === 0 && through >= after!)).toBe(true);
    expect(page.end.lanes).toEqual(
      new Map([
        [0, after!],
        [1, left!],
      ]),
    );
    expect((await one.follow(page.end, 10)).gone).toEqual([]);
  });

  test("[J10] a lane goes on after its store object was closed, with greater ids", async () => {
    const host = new ControlledHost();
    const disk = new MemoryDisk({ isLaned: true });
    const first = memoryStore({ host, disk });
    const last = await greatest(first);
    await first.close();
    const next = memoryStore({ host, disk });
    const [id] = await append(next, entry());
    expect(id).toBeGreaterThan(last);
    expect((await next.query({ id: id!, limit: 1 })).map(journalLaneOf)).toEqual([0]);
  });
});
