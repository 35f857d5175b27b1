import type { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { append, claimUnderNewLease, entry, ref, SPACE, set, settlement, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

/** A store with every kind of text that is signed or summed, and a hand that can reach it. */
async function setup(): Promise<{ file: StoreFile; store: Store; hand: DatabaseSync }> {
  const file = new StoreFile();
  const store = await file.open();
  for (const text of ["first", "second", "third with ümlaut"]) {
    await append(store, entry({ data: { text }, correlation: "conversation", causation: "cause" }));
  }
  await write(store, set("plain", [], { a: 1, b: ["x", "y"] }));
  await write(store, set("plain", ["a"], 2));
  await write(store, set("twin", [], { a: 1 }));
  await write(store, set("twin", ["a"], 3));
  await write(store, set("long", [], {}));
  await store.changeDue([{ op: "put", kind: "timer", key: "tea", dueAtMs: 1, data: { minutes: 5 } }]);
  for (let n = 0; n < 60; n++) await write(store, set("long", [`key ${n}`], "x".repeat(100)));
  return { file, store, hand: file.database() };
}

/** Changes one byte of a text and gives the way back. */
function flip(hand: DatabaseSync, table: string, column: string, where: string, at: number): () => void {
  const read = hand.prepare(`SELECT CAST(${column} AS BLOB) AS bytes FROM ${table} WHERE ${where}`).get();
  const original = Buffer.from(read?.["bytes"] as Uint8Array);
  const changed = Buffer.from(original);
  changed[at % changed.length]! ^= 1 << (at % 8);
  const put = hand.prepare(`UPDATE ${table} SET ${column} = CAST(? AS TEXT) WHERE ${where}`);
  put.run(changed);
  return () => put.run(original);
}

describe("verify", () => {
  test("[S188] reading a due row that is no longer JSON throws an error that names it", async () => {
    const { file, store, hand } = await setup();
    await using _ = file;
    hand.exec(`UPDATE due SET data = '{"minutes": '`);
    await expect(store.dueRows(1, 10)).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      message: expect.stringContaining("the timer tea of the due table"),
    });
  });

  test("[S87] verify finds no problem in a sound store", async () => {
    const { file, store, hand } = await setup();
    await using _ = file;
    expect(hand.prepare("SELECT count(*) AS n FROM snapshot").get()).toEqual({ n: 1 });
    expect(await store.verify()).toEqual({ ok: true, rows: 3, unsigned: 0, documents: 3, problems: [] });
  });

  test.each([
    ["event_journal", "payload", "id = 2"],
    ["event_journal", "topic", "id = 1"],
    ["event_journal", "source", "id = 3"],
    ["event_journal", "message_id", "id = 2"],
    ["event_journal", "type", "id = 2"],
    ["event_journal", "correlation_id", "id = 1"],
    ["event_journal", "causation_id", "id = 3"],
    ["event_journal", "hash", "id = 3"],
    ["document", "base", "id = 1"],
    ["change", "commits", "first = 1"],
    ["change", "commits", "first = 2"],
    ["snapshot", "operations", "document = 3"],
  ])("[S87] verify finds every changed byte of %s.%s", async (table, column, where) => {
    const { file, store, hand } = await setup();
    await using _ = file;
    const length = hand.prepare(`SELECT octet_length(${column}) AS n FROM ${table} WHERE ${where}`).get()?.["n"];
    const step = Math.max(1, Math.floor(Number(length) / 40));
    for (let at = 0; at < Number(length); at += step) {
      const restore = flip(hand, table, column, where, at);
      const { ok, problems } = await store.verify();
      expect([at, ok, problems.length > 0]).toEqual([at, false, true]);
      restore();
    }
    expect((await store.verify()).ok).toBe(true);
  });

  test.each([
    ["a number of a row", "UPDATE event_journal SET created_at = created_at + 1 WHERE id = 2", /row 2 /],
    ["a removed row", "DELETE FROM event_journal WHERE id = 2", /rows 2 to 2 are missing/],
    ["a removed first row", "DELETE FROM event_journal WHERE id = 1", /rows 1 to 1 are missing/],
    ["a removed tail", "DELETE FROM event_journal WHERE id = 3", /rows 3 to 3 are missing/],
    ["a removed journal", "DELETE FROM event_journal", /rows 1 to 3 are missing/],
    ["a row made unsigned", "UPDATE event_journal SET hash = NULL WHERE id = 2", /row 3 /],
    ["a tail made unsigned", "UPDATE event_journal SET hash = NULL WHERE id = 3", /does not end with row 3/],
    [
      "payloads that changed places",
      `UPDATE event_journal SET payload = (SELECT payload FROM event_journal AS other WHERE other.id = 3 - event_journal.id)
       WHERE id < 3`,
      /row 1 /,
    ],
    ["a removed patch", "DELETE FROM change WHERE first = 2", /plain/],
    ["a patch that is passed over", "UPDATE change SET commits = replace(commits, '1 1 [', '1 0 [')", /plain/],
    ["a patch that follows itself", "UPDATE change SET commits = replace(commits, '1 1 [', '1 2 [')", /plain/],
    ["a removed snapshot", "DELETE FROM snapshot", /long/],
    ["a removed base", "UPDATE document SET base = NULL WHERE id = 1", /plain/],
    [
      "a base with its sum in place of another's",
      "UPDATE document SET (base, base_sum) = (SELECT base, base_sum FROM document AS other WHERE other.id = 2) WHERE id = 1",
      /plain/,
    ],
    [
      "a block with its sum in place of another's",
      "UPDATE change SET (commits, sum) = (SELECT commits, sum FROM change AS other WHERE other.first = 4) WHERE first = 2",
      /plain/,
    ],
    ["a due row that is no JSON any more", `UPDATE due SET data = '{"minutes": '`, /the timer tea of the due table/],
    [
      "blocks that changed places",
      "UPDATE change SET first = -first WHERE first IN (2, 4); UPDATE change SET (first, last) = (6 + first, 6 + first) WHERE first < 0",
      /plain/,
    ],
  ])("[S87] verify finds %s", async (_, sql, message) => {
    const { file, store, hand } = await setup();
    await using __ = file;
    hand.exec(sql);
    const { ok, problems } = await store.verify();
    expect(ok).toBe(false);
    expect(problems.join("\n")).toMatch(message);
  });

  test("[S87] [J30] rows removed by retention in any order are not missing", async () => {
    const { file, store } = await setup();
    await using _ = file;
    for (let n = 0; n < 20; n++) await append(store, entry());
    const claims = await claimUnderNewLease(store, 23);
    for (const which of [[1, 2], [0], [7], [4], [5, 6], [20], [12]]) {
      await store.settle(which.map((n) => settlement(claims[n]!, { kind: "done" })));
      expect(await store.retain({ keepSettled: 0, limit: 100 })).toBe(which.length);
      expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
    }
    const gaps = file.database().prepare("SELECT first_id, last_id FROM journal_gap ORDER BY first_id").all();
    expect(gaps.map(({ first_id, last_id }) => [first_id, last_id])).toEqual([
      [1, 3],
      [5, 8],
      [13, 13],
      [21, 21],
    ]);
    expect((await store.verify()).rows).toBe(14);
  });

  test.each([
    ["which others follow", 3],
    ["which retention removed", 2],
  ])(
    "[S87] [J10] after the engine's counters were emptied the journal continues after its last row, %s",
    async (_, last) => {
      const { file, store, hand } = await setup();
      await using _file = file;
      const claims = await claimUnderNewLease(store, 3);
      if (last === 2) {
        await store.settle([settlement(claims[2]!, { kind: "done" })]);
        expect(await store.retain({ keepSettled: 0, limit: 100 })).toBe(1);
      }
      hand.exec("DELETE FROM sqlite_sequence");
      expect((await store.verify()).ok).toBe(false);
      expect(await append(store, entry())).toEqual([4]);
      expect(await append(store, entry())).toEqual([5]);
      expect(await store.verify()).toMatchObject({ ok: true, rows: last + 2, problems: [] });
    },
  );

  test("[S87] verify reports at most a hundred problems", async () => {
    const { file, store, hand } = await setup();
    await using _ = file;
    for (let n = 0; n < 200; n++) await append(store, entry());
    hand.exec("UPDATE event_journal SET payload = '0'");
    expect((await store.verify()).problems.length).toBe(100);
  });

  test("[S88] a damaged document is not returned; others are", async () => {
    const { file, store, hand } = await setup();
    await using _ = file;
    flip(hand, "change", "commits", "first = 2", 20);
    await expect(store.load(SPACE, [ref("plain")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    flip(hand, "snapshot", "operations", "document = 3", 20);
    await expect(store.load(SPACE, [ref("long")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    flip(hand, "document", "base", "id = 2", 20);
    await expect(store.load(SPACE, [ref("twin")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await write(store, set("other", [], 1));
    expect((await store.load(SPACE, [ref("other")])).documents[0]?.value).toBe(1);
  });
});
