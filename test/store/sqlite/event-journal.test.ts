import { describe, expect, test } from "vitest";
import type { Message } from "../../../src/message/envelope.ts";
import { append, claimUnderNewLease, entries, entry, rowOf, settlement } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const ADR_COLUMNS = [
  "id",
  "correlation_id",
  "topic",
  "source",
  "payload",
  "status",
  "created_at",
  "processed_at",
  "error",
];
const BY_HAND = "INSERT INTO event_journal (topic, source, payload, created_at) VALUES (?, ?, ?, ?)";

describe("the journal as a table", () => {
  test("[S84] the table has the ADR's columns and indexes, visible to a plain connection", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry({ data: { text: "hällo" }, correlation: "c" }));
    const plain = file.database();
    const columns = plain.prepare("PRAGMA table_info(event_journal)").all();
    expect(columns.slice(0, 9).map(({ name }) => name)).toEqual(ADR_COLUMNS);
    const indexes = plain.prepare("PRAGMA index_list(event_journal)").all();
    expect(indexes.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["idx_ej_topic_status", "idx_ej_status_created", "idx_ej_correlation"]),
    );
    expect(plain.prepare(`SELECT ${ADR_COLUMNS.join(", ")} FROM event_journal`).get()).toMatchObject({
      id: 1,
      correlation_id: "c",
      topic: "test.happened",
      source: "suite",
      payload: '{"text":"hällo"}',
      status: "pending",
      processed_at: null,
      error: null,
    });
  });

  test("[S84] [J28] counting rows by status is right at any moment", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const plain = file.database().prepare("SELECT status, count(*) AS n FROM event_journal GROUP BY status");
    const counted = () => Object.fromEntries(plain.all().map(({ status, n }) => [status, n]));
    await append(store, ...entries(5));
    expect(counted()).toEqual({ pending: 5 });
    const claims = await claimUnderNewLease(store, 3);
    expect(counted()).toEqual({ pending: 2, processing: 3 });
    await store.settle([
      settlement(claims[0]!, { kind: "done" }),
      settlement(claims[1]!, { kind: "failed", error: "no" }),
      settlement(claims[2]!, { kind: "retry", atMs: 0, error: "later" }),
    ]);
    expect(counted()).toEqual({ pending: 3, done: 1, failed: 1 });
    expect(await store.count()).toEqual({ pending: 3, processing: 0, done: 1, failed: 1 });
  });

  test("[S85] a row inserted by hand is a pending event with an id, a type and a time", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry());
    file.database().prepare(BY_HAND).run("email.received", "a person", '{"from":"ada"}', 1_700_000_000.25);
    await append(store, entry());
    const expected: Message = {
      kind: "event",
      type: "Email.Received",
      data: { from: "ada" },
      metadata: { id: "journal-2", timestamp: 1_700_000_000_250 },
    };
    expect(await rowOf(store, 2)).toMatchObject({
      status: "pending",
      source: "a person",
      attempts: 0,
      message: expected,
    });
    const claims = await claimUnderNewLease(store, 10);
    expect(claims.map(({ row }) => row.message?.metadata.id)).toEqual([
      expect.stringMatching(/^message/),
      "journal-2",
      expect.stringMatching(/^message/),
    ]);
    expect(await store.settle(claims.map((claim) => settlement(claim, { kind: "done" })))).toEqual([
      "settled",
      "settled",
      "settled",
    ]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 3, unsigned: 1 });
  });

  test.each([
    ["no JSON", "email.received", '{"from":'],
    ["no topic", "not a topic!", "{}"],
    ["no payload that could be written again", "email.received", '"\\u0000"'],
  ])(
    "[S187] a row with %s is handed out without a message, with a reason, and does not affect other rows",
    async (_, topic, payload) => {
      await using file = new StoreFile();
      const store = await file.open();
      file.database().prepare(BY_HAND).run(topic, "a person", payload, 1_700_000_000);
      await append(store, entry());
      const claims = await claimUnderNewLease(store, 10);
      expect(claims.map(({ row }) => [row.id, row.message === undefined, typeof row.unreadable])).toEqual([
        [1, true, "string"],
        [2, false, "undefined"],
      ]);
      expect(await store.settle([settlement(claims[0]!, { kind: "failed", error: "unreadable" })])).toEqual([
        "settled",
      ]);
      expect((await rowOf(store, 1)).status).toBe("failed");
    },
  );

  test("[S186] a failed row set to pending by hand is claimable again", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry());
    const [claim] = await claimUnderNewLease(store, 1);
    await store.settle([settlement(claim!, { kind: "failed", error: "no" })]);
    file.database().exec("UPDATE event_journal SET status = 'pending' WHERE status = 'failed'");
    const [again] = await claimUnderNewLease(store, 1);
    expect([again?.row.id, again?.attempt]).toEqual([1, 2]);
  });

  test("[S85] [J10] ids continue after rows that were inserted by hand and removed by retention", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    file.database().prepare(BY_HAND).run("tick", "a person", "{}", 1);
    file.database().exec("UPDATE event_journal SET status = 'done', processed_at = 2");
    expect(await store.retain({ keepSettled: 0, limit: 10 })).toBe(1);
    expect(await append(store, entry())).toEqual([2]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 1, problems: [] });
  });

  test("[S85] a processing row without a holder is recovered", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry());
    file.database().exec("UPDATE event_journal SET status = 'processing'");
    expect(await store.recover()).toBe(1);
  });

  test.each([
    ["id = 1", "INTEGER PRIMARY KEY"],
    ["message_id = 'x'", "sqlite_autoindex"],
    ["status = 'failed'", "idx_ej_failed"],
    ["status = 'pending'", "idx_ej_status_created"],
    ["status = 'processing'", "idx_ej_processing"],
    ["topic = 'x'", "idx_ej_topic_status"],
    ["correlation_id = 'x'", "idx_ej_correlation"],
    ["causation_id = 'x'", "idx_ej_causation"],
  ])("[S86] rows with %s are found by %s", async (condition, index) => {
    await using file = new StoreFile();
    await file.open();
    const plan = file
      .database()
      .prepare(`EXPLAIN QUERY PLAN SELECT * FROM event_journal WHERE ${condition} ORDER BY id LIMIT 10`)
      .all();
    expect(String(plan[0]?.["detail"])).toMatch(new RegExp(`SEARCH.*${index}`));
  });
});
