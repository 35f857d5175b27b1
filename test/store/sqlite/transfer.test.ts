/** A store as JSON lines, and a store made of them. */
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../../src/message/json.ts";
import { SHARED_SCOPE } from "../../../src/store/document.ts";
import { openSqliteStore } from "../../../src/store/sqlite/index.ts";
import { exportStore, importStore } from "../../../src/store/sqlite/transfer.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  currentValue,
  entry,
  remove,
  rowOf,
  set,
  settlement,
  write,
} from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const LARGE = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`key ${n}`, "ä\u0001€".repeat(100)]));

async function linesOf(file: StoreFile): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportStore({ path: file.path }, "1.2.3")) lines.push(line);
  return lines;
}

async function* given(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

/** Takes the lines into a new file. */
async function imported(lines: readonly string[]): Promise<StoreFile> {
  const file = new StoreFile();
  await (await file.open()).close();
  await importStore({ path: file.path }, given(lines), () => undefined);
  return file;
}

/** A store with documents, labels, rows in every status, a consumer and timers. */
async function filled(file: StoreFile): Promise<void> {
  const store = await file.open();
  await write(store, set("large", [], LARGE));
  await write(store, set("large", ["key 7"], "changed"), set("small", [], { a: 1 }));
  await write(store, set("gone", [], 1));
  await write(store, remove("gone", []));
  const labels = [{ scope: SHARED_SCOPE, id: "small", path: ["a"], labels: ["secret"] }];
  await store.commit(commitBy("labels", 1, { labels, patches: [set("small", ["b"], 2)] }));
  await store.commit(commitBy("elsewhere", 1, { space: "other", patches: [set("small", [], "other")] }));
  await append(
    store,
    ...Array.from({ length: 8 }, (_, n) => entry({ data: { n } as Json, correlation: `story ${n}` })),
  );
  const claims = await claimUnderNewLease(store, 6);
  await store.declareConsumers({ consumers: [{ name: "printer", pattern: "test.*" }] });
  const outcomes = [
    { kind: "done" },
    { kind: "done", ending: { outcome: "refused", reason: "no" } },
    { kind: "failed", error: "broken" },
    { kind: "retry", atMs: 5_000_000_000_000, error: "later" },
    { kind: "waits", error: "waits for printer" },
  ] as const;
  await store.settle(outcomes.map((outcome, n) => settlement(claims[n]!, outcome)));
  const waiting = { subscriber: "printer", status: "waiting", attempts: 0, awaits: "printer test.*" } as const;
  const [again] = await claimUnderNewLease(store, 1);
  await store.settle([{ ...settlement(again!, { kind: "waits", error: "waits" }), deliveries: [waiting] }]);
  await store.retain({ settledBeforeMs: Number.MAX_SAFE_INTEGER, limit: 1 });
  await store.changeDue([
    { op: "put", kind: "timer", key: "late", dueAtMs: 2_000, data: { n: 2 } },
    { op: "put", kind: "timer", key: "early", dueAtMs: 1_000, data: null },
  ]);
  await store.forgetReceipts({ madeBeforeMs: 12_345, limit: 10 });
  await store.close();
  const hand = file.database();
  hand.exec(
    "INSERT INTO event_journal (topic, source, payload, created_at) VALUES ('by.hand', 'me', '{ \"spaced\": 1 }', 1.5)",
  );
}

describe("a store as lines", () => {
  test("[S140] export, import and export give equal lines, and the imported store verifies", async () => {
    await using file = new StoreFile();
    await filled(file);
    const lines = await linesOf(file);
    await using copy = await imported(lines);
    expect(await linesOf(copy)).toEqual(lines);
    const store = await copy.open();
    expect(await store.verify()).toMatchObject({ ok: true, unsigned: 1, problems: [] });
    expect(await currentValue(store, "large")).toEqual({ ...LARGE, "key 7": "changed" });
    expect(await currentValue(store, "small", "other")).toBe("other");
    expect(await currentValue(store, "gone")).toBeUndefined();
    expect((await store.dueRows(9_000, 10)).map(({ key }) => key)).toEqual(["early", "late"]);
    expect((await store.consumers()).consumers).toMatchObject([{ name: "printer", waiting: 1 }]);
  });

  test("[S141] the first line has format, version and history, the last line the number of lines of each kind", async () => {
    await using file = new StoreFile();
    await filled(file);
    const lines = (await linesOf(file)).map((line) => JSON.parse(line) as JsonObject);
    expect(lines[0]).toMatchObject({
      ...{ line: "millrace-export", format: 1, version: "1.2.3" },
      history: { lastId: 9, signedId: 8, receiptsBeforeMs: 12_345, lastLease: expect.any(Number) },
    });
    const { line, ...counts } = lines.at(-1)!;
    expect([line, counts]).toEqual(["end", { space: 2, document: 4, gap: 1, row: 8, consumer: 1, due: 2 }]);
    expect(Object.values(counts).reduce<number>((sum, n) => sum + Number(n), 2)).toBe(lines.length);
  });

  test("[S142] a row that a process holds is pending after an import, and can be claimed", async () => {
    await using file = new StoreFile();
    await filled(file);
    await using copy = await imported(await linesOf(file));
    const [before, store] = [await file.open(), await copy.open()];
    expect(await rowOf(before, 6)).toMatchObject({ status: "processing", attempts: 1 });
    expect(await rowOf(store, 6)).toMatchObject({ status: "pending", attempts: 1 });
    const claims = await claimUnderNewLease(store, 10);
    expect(claims.map(({ row }) => row.id)).toContain(6);
    expect(claims[0]!.lease).toBeGreaterThan(2);
    expect(await append(store, entry())).toEqual([10]);
    expect(await store.verify()).toMatchObject({ ok: true });
  });

  test("[S143] import takes lines into an empty store alone", async () => {
    await using file = new StoreFile();
    await filled(file);
    const lines = await linesOf(file);
    await using other = new StoreFile();
    const store = await other.open();
    await write(store, set("a", [], 1));
    await store.close();
    await expect(importStore({ path: other.path }, given(lines), () => undefined)).rejects.toThrow(/is not empty/);
    const again = await other.open();
    expect(await currentValue(again, "a")).toBe(1);
    expect(await currentValue(again, "small")).toBeUndefined();
  });

  const cases: readonly [string, (lines: string[]) => string[], RegExp][] = [
    ["is not JSON", (lines) => lines.with(2, lines[2]!.slice(0, -5)), /^line 3: it is not JSON/],
    ["is not an object", (lines) => lines.with(1, "7"), /^line 2: it is not a JSON object/],
    ["has an unknown kind", (lines) => lines.with(1, '{"line":"ghost"}'), /^line 2: there is no kind of line "ghost"/],
    ["lacks a field", (lines) => lines.with(1, '{"line":"space","name":"x"}'), /^line 2: "sequence" must be a number/],
    ["is there twice", (lines) => lines.toSpliced(2, 0, lines[1]!), /^line 3: UNIQUE constraint failed/],
    ["names no space", (lines) => lines.toSpliced(1, 2), /^line 2: there is no line of the space/],
    ["has NUL", (lines) => lines.with(1, '{"line":"space","name":"\\u0000","sequence":1}'), /^line 2: "name" must be/],
    ["is no header", (lines) => lines.slice(1), /^line 1: it is not the first line of an export/],
    [
      "is of another format",
      (lines) => lines.with(0, lines[0]!.replace('"format":1', '"format":9')),
      /^line 1: .*is 9/,
    ],
    ["is missing", (lines) => lines.toSpliced(-2, 1), /the export had 2 lines of kind "due", the file has 1/],
    ["is missing at the end", (lines) => lines.slice(0, -1), /^the file ends before its last line/],
    ["follows the last", (lines) => [...lines, lines.at(-1)!], /a line follows after the last one/],
    [
      "was changed",
      (lines) => lines.map((line) => line.replace('{"n":3}', '{"n":4}')),
      /were changed after the export/,
    ],
  ];
  let good: Promise<string[]> | undefined;
  const goodLines = async () => {
    await using file = new StoreFile();
    await filled(file);
    return linesOf(file);
  };
  test.each(cases)(
    "[S144] a line that %s is refused with one error, and the store stays empty",
    async (_, change, error) => {
      good ??= goodLines();
      const lines = await good;
      await using target = new StoreFile();
      await (await target.open()).close();
      const failing = importStore({ path: target.path }, given(change(lines)), () => undefined);
      await expect(failing).rejects.toMatchObject({ code: "STORE_IMPORT", message: expect.stringMatching(error) });
      expect(await importStore({ path: target.path }, given(lines), () => undefined)).toMatchObject({ document: 4 });
      await using store = await openSqliteStore({ path: target.path });
      expect(await store.verify()).toMatchObject({ ok: true });
    },
  );
});
