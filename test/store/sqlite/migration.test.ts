import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { crc32, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { madeAt } from "../../../src/store/receipt.ts";
import { APPLICATION_ID, MIGRATIONS } from "../../../src/store/sqlite/schema.ts";
import {
  claimUnderNewLease,
  commitBy,
  committed,
  currentValue,
  ref,
  SPACE,
  set,
  write,
} from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

/** A file as format 2 wrote it: `patches` are those of two documents, in turn. */
function writeFormat2(path: string, patches: readonly string[]): void {
  using database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  for (const migration of MIGRATIONS.slice(0, 2)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 2`);
  database.prepare("INSERT INTO space VALUES (1, ?, ?, 0)").run(SPACE, patches.length);
  database.exec("INSERT INTO session VALUES (1, 'old')");
  const document = database.prepare("INSERT INTO document VALUES (?, 1, 'space', ?, ?, ?, 10, 10, 0)");
  document.run(1, "a", patches.length - 1, 1);
  document.run(2, "b", patches.length, 2);
  const change = database.prepare("INSERT INTO change VALUES (?, ?, 1, ?, ?)");
  const commit = database.prepare("INSERT INTO commit_log VALUES (?, 1, ?, 1, ?, 'digest', NULL, ?, NULL)");
  for (const [at, patch] of patches.entries()) {
    const [row, sequence] = [1 + (at % 2), at + 1];
    change.run(row, sequence, patch, crc32(patch, (row * 0x9e3779b1 + sequence) >>> 0));
    commit.run(sequence, sequence, sequence, JSON.stringify([row]));
  }
}

/**
 * A file that the store wrote when its format was 4, with a feed of 20 commits: documents that are whole, patched, large, with a
 * snapshot and removed, of which the feed has left the first 200 commits behind; then two hundred handlings of one book, the
 * first five and the last five with a receipt, a settled and an emitted event; labels, and a commit that changed nothing.
 */
function writeFormat4(path: string): DatabaseSync {
  unpack("format-4", path);
  return new DatabaseSync(path);
}

function unpack(fixture: string, path: string): void {
  writeFileSync(path, gunzipSync(readFileSync(join(import.meta.dirname, `fixtures/${fixture}.db.gz`))));
}

/** When what the receipts of the fixture of format 6 are of was made. */
const MADE_AT_MS = 1_767_225_600_000;

describe("a file of an older format", () => {
  test("[S82] format 2, with changes by document, keeps its documents and its feed", async () => {
    await using file = new StoreFile();
    const whole = (value: string) => `[{"op":"set","path":[],"value":${value}}]`;
    const key = (name: string) => `[{"op":"set","path":["${name}"],"value":"${name}"}]`;
    writeFormat2(file.path, [whole("{}"), whole("{}"), key("x"), key("y"), key("z"), key("x")]);
    const store = await file.open();
    expect(await currentValue(store, "a")).toEqual({ x: "x", z: "z" });
    expect(await currentValue(store, "b")).toEqual({ y: "y", x: "x" });
    expect(await store.verify()).toMatchObject({ ok: true, documents: 2, problems: [] });
    await write(store, set("a", ["new"], 1));
    expect(await currentValue(store, "a")).toEqual({ x: "x", z: "z", new: 1 });
    const { commits, gap } = await store.changesSince(SPACE, 0, 100);
    expect([gap, commits.map(({ patches }) => patches.map(({ id }) => id).join())]).toEqual([
      false,
      ["a", "b", "a", "b", "a", "b", "a"],
    ]);
  });

  test("[S82] format 4, with a row for each change and each commit, keeps all it holds", async () => {
    await using file = new StoreFile();
    writeFormat4(file.path).close();
    const store = await file.open({ tuning: { feedCommits: 20 } });
    expect(await store.verify()).toEqual({ ok: true, rows: 20, unsigned: 0, documents: 16, problems: [] });
    expect(await currentValue(store, "plain")).toEqual({ a: 2 });
    expect(await currentValue(store, "large")).toEqual({ text: "x".repeat(2000), k: 1 });
    expect(Object.keys((await currentValue(store, "long")) as object)).toHaveLength(60);
    expect((await store.load(SPACE, [ref("gone")])).documents[0]).toMatchObject({ value: undefined, sequence: 67 });
    for (const n of [1, 5, 196, 200]) expect(await currentValue(store, `receipt ${n}`)).toEqual({ n });
    expect((await store.load(SPACE, [ref("book")])).documents[0]).toEqual({
      ...ref("book"),
      value: { n: 200 },
      sequence: 267,
      labels: [{ path: ["n"], labels: ["l"] }],
    });
  });

  test("[S82] format 4: feed, replay answers, conflicts and new commits go on", async () => {
    await using file = new StoreFile();
    writeFormat4(file.path).close();
    const store = await file.open({ tuning: { feedCommits: 20 } });
    const { commits, head, gap } = await store.changesSince(SPACE, 248, 100);
    expect([head, gap, commits.map(({ sequence }) => sequence)]).toEqual([
      268,
      false,
      Array.from({ length: 20 }, (_, index) => 249 + index),
    ]);
    expect(commits.at(-2)).toEqual({
      sequence: 267,
      session: "handler",
      localSequence: 200,
      patches: [set("book", [], { n: 200 }), set("receipt 200", [], { n: 200 })],
      labels: [],
    });
    expect(commits.at(-1)).toMatchObject({
      session: "labels",
      patches: [],
      labels: [{ ...ref("book"), labels: ["l"] }],
    });
    const again = committed(await store.commit(commitBy("handler", 5, { digest: "handling 5" })));
    expect(again).toMatchObject({ sequence: 72, replayed: true, journalIds: [10] });
    expect(committed(await store.commit(commitBy("still", 1)))).toMatchObject({ sequence: 268, replayed: true });
    const preconditions = [{ kind: "absent", ...ref("receipt 1") } as const];
    expect(await store.commit(commitBy("new", 1, { preconditions }))).toMatchObject({ reason: "document-exists" });
    for (let n = 2; n < 500; n++) {
      committed(await store.commit(commitBy("new", n, { patches: [set("plain", [`k${n % 3}`], n)] })));
    }
    expect(await currentValue(store, "plain")).toEqual({ a: 2, k0: 498, k1: 499, k2: 497 });
    expect(await currentValue(store, "receipt 196")).toEqual({ n: 196 });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S82] [S83] format 4 is not changed by somebody who may only read, and he is told what to do", async () => {
    await using file = new StoreFile();
    writeFormat4(file.path).close();
    const before = readFileSync(file.path);
    const opening = file.open({ readOnly: true });
    await expect(opening).rejects.toMatchObject({
      code: "STORE_OPEN_FAILED",
      message: /format is 4.*without readOnly/,
    });
    expect(readFileSync(file.path).equals(before)).toBe(true);
    await (await file.open()).close();
    expect(await currentValue(await file.open({ readOnly: true }), "plain")).toEqual({ a: 2 });
  });

  test.each([
    ["a base", "receipt 1", "UPDATE change SET patch = replace(patch, 'set', 'sat') WHERE sequence = 68"],
    ["a patch", "large", "UPDATE change SET patch = replace(patch, '1', '2') WHERE sequence = 4"],
  ])("[S82] [S87] format 4: %s whose bytes had changed is not made sound", async (_, id, damage) => {
    await using file = new StoreFile();
    using hand = writeFormat4(file.path);
    hand.exec(damage);
    const store = await file.open();
    expect(await store.verify()).toMatchObject({ ok: false });
    await expect(currentValue(store, id)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(await currentValue(store, "plain")).toEqual({ a: 2 });
  });

  test("[S82] [S103] format 6: receipts from before they had an end stay, and answer, whatever the horizon is", async () => {
    await using file = new StoreFile();
    // Two requests, one with an id of its own kind; an event that waits, and the receipt of one of its subscribers; then a short feed.
    unpack("format-6", file.path);
    const store = await file.open({ tuning: { feedCommits: 5 } });
    const horizonMs = MADE_AT_MS + 1_000;
    expect(await store.forgetReceipts({ madeBeforeMs: horizonMs, limit: 100 })).toEqual({ removed: 0, horizonMs });
    const waiting = "019b76da-a800-7000-8000-0000000000ff";
    const handled = ["receipt/019b76da-a800-7000-8000-000000000001", "receipt/order-17", `receipt:36:${waiting}:done`];
    for (const [n, name] of handled.entries()) {
      const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
      expect(await store.commit(commitBy("new", n, { preconditions }))).toMatchObject({ reason: "document-exists" });
    }
    const never = "receipt/019b76da-a800-7000-8000-000000000002";
    const preconditions = [{ kind: "absent", ...ref(never), madeAtMs: MADE_AT_MS } as const];
    expect(await store.commit(commitBy("new", 9, { preconditions }))).toMatchObject({ reason: "too-old" });
    expect((await claimUnderNewLease(store, 1)).map(({ row }) => row.message?.metadata.id)).toEqual([waiting]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 1, documents: 4, problems: [] });
  });
});
