/** The due table: setting, ordering, taking. */
import { describe, expect, test } from "#test";
import type { DueChange } from "../../../src/store/due.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, committed } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

function put(key: string, dueAtMs: number, kind = "timer"): DueChange {
  return { op: "put", kind, key, dueAtMs, data: { key } };
}

function add(key: string, dueAtMs: number, kind = "timer"): DueChange {
  return { op: "add", kind, key, dueAtMs, data: { key } };
}

function take(key: string, kind = "timer"): DueChange {
  return { op: "take", kind, key };
}

function cancel(key: string, kind = "timer"): DueChange {
  return { op: "cancel", kind, key };
}

async function dueKeys(store: Store, nowMs: number, limit = 100): Promise<string[]> {
  return (await store.dueRows(nowMs, limit)).map((row) => row.key);
}

export function dueCases(open: OpenStore): void {
  describe("due table", () => {
    test("[S110] a due row is found by its kind and key, also after reopening", async () => {
      await using at = await open();
      await at.store.changeDue([put("a", 1), put("a", 2, "cron")]);
      const store = await at.reopen();
      expect(await store.dueRow("cron", "a")).toMatchObject({ kind: "cron", key: "a", dueAtMs: 2 });
      expect(await store.dueRow("cron", "b")).toBeUndefined();
      expect(await store.dueRow("none", "a")).toBeUndefined();
    });

    test("[S30] cancel and take remove a due row and report whether it existed; kinds are separate", async () => {
      await using at = await open();
      const { store } = at;
      expect(await store.changeDue([put("a", 1), put("b", 2), put("a", 3, "cron")])).toEqual([true, true, true]);
      const answers = await store.changeDue([take("a"), cancel("a"), cancel("b"), cancel("b"), cancel("c"), take("c")]);
      expect(answers).toEqual([true, false, true, false, false, false]);
      expect((await store.dueRows(10, 10)).map(({ kind, key }) => [kind, key])).toEqual([["cron", "a"]]);
      expect(await store.changeDue([put("x", 1), cancel("x"), put("x", 2), take("x")])).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect(await store.changeDue([])).toEqual([]);
    });

    test("[S177] after a failed take the rest of the call is not done", async () => {
      await using at = await open();
      const { store } = at;
      await store.changeDue([put("a", 1), put("b", 2)]);
      expect(await store.changeDue([take("a"), put("next", 5), put("mark", 6)])).toEqual([true, true, true]);
      expect(await store.changeDue([cancel("b"), take("a"), put("next", 7), cancel("mark")])).toEqual([
        true,
        false,
        false,
        false,
      ]);
      expect((await store.dueRows(10, 10)).map(({ key, dueAtMs }) => [key, dueAtMs])).toEqual([
        ["next", 5],
        ["mark", 6],
      ]);
    });

    test("[S175] [S177] add sets a missing due row; if it exists, the rest of the call is not done", async () => {
      await using at = await open();
      const { store } = at;
      expect(await store.changeDue([add("a", 1), put("next", 5)])).toEqual([true, true]);
      expect(await store.changeDue([cancel("next"), add("a", 2), put("next", 7)])).toEqual([true, false, false]);
      expect((await (await at.reopen()).dueRows(10, 10)).map(({ key, dueAtMs }) => [key, dueAtMs])).toEqual([["a", 1]]);
    });

    test("[S176] a take with data gets the row only while its data are equal, in any order of keys", async () => {
      await using at = await open();
      const { store } = at;
      const row = { kind: "timer", key: "a" };
      await store.changeDue([{ op: "put", ...row, dueAtMs: 1, data: { n: 1, of: [null] } }]);
      expect(await store.changeDue([{ op: "take", ...row, was: { n: 2, of: [null] } }, put("b", 1)])).toEqual([
        false,
        false,
      ]);
      const late = await store.commit(commitBy("s", 1, { due: [{ op: "take", ...row, was: null }] }));
      expect(late).toMatchObject({ kind: "rejected", reason: "due-row-gone" });
      expect(await dueKeys(store, 1)).toEqual(["a"]);
      committed(await store.commit(commitBy("s", 2, { due: [{ op: "take", ...row, was: { of: [null], n: 1 } }] })));
      expect(await dueKeys(store, 1)).toEqual([]);
    });

    test("[S31] due rows of one kind are found among any number of others", async () => {
      await using at = await open();
      const { store } = at;
      await store.changeDue([put("a", 1), put("b", 2), put("late", 4, "cron"), put("early", 3, "cron")]);
      const keys = async (nowMs: number, limit: number) =>
        (await store.dueRows(nowMs, limit, "cron")).map(({ key }) => key);
      expect(await keys(4, 10)).toEqual(["early", "late"]);
      expect(await keys(3, 10)).toEqual(["early"]);
      expect(await keys(4, 1)).toEqual(["early"]);
    });

    test("[S30] put replaces the row of the same kind and key, data and deadline", async () => {
      await using at = await open();
      await at.store.changeDue([{ op: "put", kind: "timer", key: "a", dueAtMs: 5, data: "old" }]);
      await at.store.changeDue([{ op: "put", kind: "timer", key: "a", dueAtMs: 9, data: { new: [1] } }]);
      expect(await at.store.dueRows(5, 10)).toEqual([]);
      expect(await (await at.reopen()).dueRows(9, 10)).toEqual([
        { kind: "timer", key: "a", dueAtMs: 9, data: { new: [1] }, order: expect.any(Number) },
      ]);
    });

    test("[S31] due rows come earliest first, equal deadlines in the order they were last set", async () => {
      await using at = await open();
      const { store } = at;
      await store.changeDue([put("late", 30), put("z", 20), put("a", 20, "cron")]);
      committed(await store.commit(commitBy("s", 1, { due: [put("m", 20), put("first", 10)] })));
      expect(await dueKeys(store, 9)).toEqual([]);
      expect(await dueKeys(store, 10)).toEqual(["first"]);
      expect(await dueKeys(store, 20)).toEqual(["first", "z", "a", "m"]);
      expect(await dueKeys(store, 20, 2)).toEqual(["first", "z"]);
      expect(await dueKeys(store, 20)).toEqual(["first", "z", "a", "m"]);
      await store.changeDue([put("z", 20)]);
      expect(await dueKeys(store, 1_000)).toEqual(["first", "a", "m", "z", "late"]);
      const reopened = await at.reopen();
      await reopened.changeDue([put("b", 20)]);
      expect(await dueKeys(reopened, 20)).toEqual(["first", "a", "m", "z", "b"]);
    });

    test("[S32] the earliest deadline follows every change", async () => {
      await using at = await open();
      const { store } = at;
      expect(await store.earliestDue()).toBeUndefined();
      await store.changeDue([put("a", 20), put("b", 10)]);
      expect(await store.earliestDue()).toBe(10);
      await store.changeDue([put("b", 30)]);
      expect(await store.earliestDue()).toBe(20);
      committed(await store.commit(commitBy("s", 1, { due: [take("a"), cancel("nothing")] })));
      expect(await store.earliestDue()).toBe(30);
      await store.changeDue([cancel("b")]);
      expect(await store.earliestDue()).toBeUndefined();
    });

    test("[S31] [S32] queries of one kind ignore rows of other kinds", async () => {
      await using at = await open();
      const { store } = at;
      const never = Number.MAX_SAFE_INTEGER;
      await store.changeDue([put("a", 20), put("b", 10, "cron"), put("c", never), put("d", never, "cron")]);
      const keys = async (nowMs: number, limit: number, kind: string) =>
        (await store.dueRows(nowMs, limit, kind)).map(({ key }) => key);
      expect(await keys(20, 9, "cron")).toEqual(["b"]);
      expect(await keys(never - 1, 9, "cron")).toEqual(["b"]);
      expect(await keys(never, 9, "cron")).toEqual(["b", "d"]);
      await store.changeDue([put("e", 2 * never, "cron")]);
      expect(await keys(never, 9, "cron")).toEqual(["b", "d"]);
      expect(await keys(never, 1, "cron")).toEqual(["b"]);
      expect(await Promise.all(["cron", "timer", "none"].map((kind) => store.earliestDue(kind)))).toEqual([
        10,
        20,
        undefined,
      ]);
      await store.changeDue([{ op: "cancel", kind: "cron", key: "b" }]);
      expect(await store.earliestDue("cron")).toBe(never);
      expect(await store.earliestDue("timer")).toBe(20);
    });

    test("[S30] deadlines may be a hundred years away, in the past, and between milliseconds", async () => {
      await using at = await open();
      const century = 3_155_760_000_000 + 1_767_225_600_000;
      await at.store.changeDue([put("far", century), put("past", -5), put("between", 0.5)]);
      const rows = await at.store.dueRows(century, 10);
      expect(rows.map(({ key, dueAtMs }) => [key, dueAtMs])).toEqual([
        ["past", -5],
        ["between", 0.5],
        ["far", century],
      ]);
    });

    test("[S33] of several takers of one row exactly one gets it, in commits and outside, in two store objects", async () => {
      await using at = await open();
      const other = await at.second();
      const keys = Array.from({ length: 10 }, (_, n) => `row ${n}`);
      await at.store.changeDue(keys.map((key) => put(key, 1)));
      const wins = await Promise.all(
        keys.map(async (key, n) => {
          const tries = await Promise.all([
            at.store.changeDue([take(key)]).then(([taken]) => taken === true),
            other.changeDue([take(key)]).then(([taken]) => taken === true),
            other.commit(commitBy("b", n, { due: [take(key)] })).then(({ kind }) => kind === "committed"),
            at.store.commit(commitBy("a", n, { due: [take(key)] })).then(({ kind }) => kind === "committed"),
          ]);
          return tries.filter((won) => won).length;
        }),
      );
      expect(wins).toEqual(keys.map(() => 1));
      expect(await at.store.earliestDue()).toBeUndefined();
    });

    test("[S33] of several adders of one row exactly one succeeds, in commits and outside, in two store objects", async () => {
      await using at = await open();
      const other = await at.second();
      const tries = await Promise.all([
        at.store.changeDue([add("a", 1)]).then(([added]) => added === true),
        other.commit(commitBy("b", 1, { due: [add("a", 2)] })).then(({ kind }) => kind === "committed"),
        other.changeDue([add("a", 3)]).then(([added]) => added === true),
        at.store.commit(commitBy("a", 1, { due: [add("a", 4)] })).then(({ kind }) => kind === "committed"),
      ]);
      expect(tries.filter((won) => won)).toEqual([true]);
      expect(await other.earliestDue()).toBe(tries.indexOf(true) + 1);
      const late = await at.store.commit(commitBy("a", 2, { due: [put("b", 9), add("a", 5)] }));
      expect(late).toMatchObject({ kind: "rejected", class: "permanent", reason: "due-row-there" });
      expect(await dueKeys(at.store, 10)).toEqual(["a"]);
    });

    test("[S165] a commit takes due rows as they were before it, and not those it puts itself", async () => {
      await using at = await open();
      const outcome = await at.store.commit(commitBy("s", 1, { due: [put("a", 1), take("a")] }));
      expect(outcome).toMatchObject({ kind: "rejected", reason: "due-row-gone" });
      await at.store.changeDue([put("a", 1)]);
      committed(await at.store.commit(commitBy("s", 1, { due: [take("a"), put("a", 2)] })));
      expect(await at.store.earliestDue()).toBe(2);
    });

    test("[S165] [S177] a commit adds a row that was missing before it; outside of one each change sees the earlier ones", async () => {
      await using at = await open();
      const { store } = at;
      const taken = { ...put("a", 1), data: "old" };
      await store.changeDue([taken]);
      for (const due of [
        [take("a"), add("a", 2)],
        [cancel("a"), add("a", 2)],
      ]) {
        const outcome = await store.commit(commitBy("s", 1, { due }));
        expect(outcome).toMatchObject({ kind: "rejected", class: "permanent", reason: "due-row-there" });
      }
      const twice = await store.commit(commitBy("s", 1, { due: [put("b", 3), add("b", 4), take("a"), take("a")] }));
      expect(twice.kind).toBe("committed");
      expect((await store.dueRows(10, 10)).map(({ key, dueAtMs }) => [key, dueAtMs])).toEqual([["b", 3]]);
      expect(await store.changeDue([taken, take("a"), add("a", 2), cancel("b"), add("b", 5), take("b")])).toEqual(
        Array(6).fill(true),
      );
      expect((await store.dueRows(10, 10)).map(({ key, dueAtMs }) => [key, dueAtMs])).toEqual([["a", 2]]);
    });
  });
}
