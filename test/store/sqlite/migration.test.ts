import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { APPLICATION_ID, MIGRATIONS } from "../../../src/store/sqlite/schema.ts";
import { currentValue, SPACE, set, write } from "../conformance/requests.ts";
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
});
