import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { APPLICATION_ID, MIGRATIONS } from "../../../src/store/sqlite/schema.ts";
import { commitBy, committed, ref, SPACE, set, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

/** A file as format 7 wrote it, with a row for each input of a node: two inputs, none, and one that has moved since. */
function writeFormat7(path: string): void {
  using database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  database.function("checksum", { varargs: true }, () => 0);
  database.function("checksum4", { varargs: true }, () => 0);
  for (const migration of MIGRATIONS.slice(0, 7)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 7`);
  database.prepare("INSERT INTO space VALUES (1, ?, 9, 9)").run(SPACE);
  const document = database.prepare(
    "INSERT INTO document (id, space, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence) " +
      "VALUES (?, 1, ?, ?, ?, 0, 0, 0, 0)",
  );
  document.run(1, "space", "a", 4);
  document.run(2, "user:1", "b", 3);
  document.run(3, "space", "c", 7);
  database.exec(`
    INSERT INTO path_set VALUES (1, '[{"path":["x"],"depth":"deep"}]', 2), (2, '[{"path":[],"depth":"shallow"}]', 1);
    INSERT INTO node VALUES (11, 1, 'two', 'f', '{"seen":"s"}'), (12, 1, 'none', 'f', NULL), (13, 1, 'moved', 'g', NULL);
    INSERT INTO basis VALUES (11, 1, 2, 3, 2), (11, 0, 1, 4, 1), (13, 0, 3, 6, 1);
  `);
}

const X = [{ path: ["x"], depth: "deep" }] as const;
const ROOT = [{ path: [], depth: "shallow" }] as const;

describe("a file of format 7, with a row for each input of a node", () => {
  test("[S82] [S18] keeps what nodes rest on, in the order in which it was read", async () => {
    await using file = new StoreFile();
    writeFormat7(file.path);
    const store = await file.open();
    expect(await store.basis(SPACE, ["moved", "none", "two"])).toEqual([
      { node: "moved", fingerprint: "g", inputs: [{ ...ref("c"), sequence: 6, reads: X, moved: true }] },
      { node: "none", fingerprint: "f", inputs: [] },
      {
        node: "two",
        fingerprint: "f",
        settings: { seen: "s" },
        inputs: [
          { ...ref("a"), sequence: 4, reads: X, moved: false },
          { scope: "user:1", id: "b", sequence: 3, reads: ROOT, moved: false },
        ],
      },
    ]);
  });

  test("[S82] [S95] goes on: rows are replaced, and sets of paths that no row names any more are gone", async () => {
    await using file = new StoreFile();
    writeFormat7(file.path);
    const store = await file.open();
    const { sequence } = await write(store, set("d", [], 1));
    const inputs = [{ ...ref("d"), sequence, reads: X }];
    const basis = [{ node: "two", fingerprint: "h", inputs }];
    committed(await store.commit(commitBy("s", 1, { basis, basisRemoved: ["moved"] })));
    expect(await store.basis(SPACE, ["moved", "two"])).toEqual([
      { node: "two", fingerprint: "h", inputs: [{ ...inputs[0], moved: false }] },
    ]);
    expect(file.database().prepare("SELECT id, uses FROM path_set").all()).toEqual([{ id: 1, uses: 1 }]);
  });
});

describe("a row that cannot be read", () => {
  test.each([
    ["settings that are cut off", "UPDATE node SET settings = '{' WHERE name = 'b'"],
    ["settings that are several", "UPDATE node SET settings = '1,2' WHERE name = 'b'"],
    ["inputs that are cut off", "UPDATE node SET inputs = '[1' WHERE name = 'b'"],
    ["inputs that are several", "UPDATE node SET inputs = '[],[]' WHERE name = 'b'"],
    ["inputs that are no list", "UPDATE node SET inputs = '1' WHERE name = 'b'"],
    ["a number too few", "UPDATE node SET inputs = '[1,1]' WHERE name = 'b'"],
    ["a document that is not there", "UPDATE node SET inputs = '[99,1,1]' WHERE name = 'b'"],
    ["paths that are not there", "UPDATE node SET inputs = '[1,1,99]' WHERE name = 'b'"],
    ["paths that are none", "UPDATE path_set SET reads = '[{\"path\":1}]' WHERE id = 2"],
  ])("[S18] counts as none, and no other: %s", async (_, damage) => {
    await using file = new StoreFile();
    const store = await file.open();
    const { sequence } = await write(store, set("d", [], 1));
    const basis = ["a", "b", "c"].map((node) => ({
      node,
      fingerprint: "f",
      settings: node,
      inputs: [{ ...ref("d"), sequence, reads: node === "b" ? ROOT : X }],
    }));
    committed(await store.commit(commitBy("s", 1, { basis })));
    file.database().exec(damage);
    const found = await store.basis(SPACE, ["a", "b", "c"]);
    expect(found.map(({ node, settings, inputs }) => [node, settings, inputs.length])).toEqual([
      ["a", "a", 1],
      ["c", "c", 1],
    ]);
  });
});
