/**
 * `document_json` through connections that know none of our functions: of this runtime, and the `sqlite3` shell if
 * there is one.
 */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../../../src/message/json.ts";
import type { Store } from "../../../src/store/store.ts";
import { planEdit } from "../conformance/model/edits.ts";
import { currentValue, ref, remove, SPACE, set, splice, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

function viewed(file: StoreFile): Map<string, Json> {
  const rows = file.database().prepare("SELECT id, value FROM document_json WHERE space = ?").all(SPACE);
  return new Map(rows.map(({ id, value }) => [String(id), JSON.parse(String(value)) as Json]));
}

async function loaded(store: Store, ids: readonly string[]): Promise<Map<string, Json>> {
  const { documents } = await store.load(SPACE, ids.map(ref));
  return new Map(documents.flatMap(({ id, value }) => (value === undefined ? [] : [[id, value]])));
}

describe("document_json", () => {
  test("[S130] a plain connection reads every document as the store has it", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await write(store, set("small", [], 5), set("gone", [], 1), set("text", [], 'a "quoted" \\ text\n'));
    await write(store, set("a", [], { list: [1, "two", null, true, { x: [1.5, 1e300] }], o: { 0: 1 } }));
    await write(store, set("a", ["list", "1"], "zwei"), remove("gone", []));
    await write(store, splice("a", ["list"], 1, 2, ["x", { y: 1 }, [2], false, null, "1"]));
    await write(store, set("a", ["o", "0"], "key"), set("a", ["list", "9"], "end"));
    await write(store, set("odd", [], {}));
    await write(store, set("odd", ['"quoted" \\ \n'], [1]), set("odd", ["", "é \u{1f600}"].slice(0, 1), {}));
    await write(store, set("odd", ['"quoted" \\ \n', "1"], 2), set("odd", ["", "é \u{1f600}"], "$.x[0]"));
    await write(store, set("many", [], {}));
    for (let n = 0; n < 300; n++) await write(store, set("many", [`k${n % 50}`], `${n} ${"é".repeat(50)}`));
    expect(viewed(file)).toEqual(await loaded(store, ["small", "text", "gone", "a", "odd", "many"]));
  });

  test("[S130] the view shows a document of several snapshot parts whole", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const long = `${"\u{1f600}é".repeat(100_000)}`;
    await write(store, set("a", [], { list: [], long, tree: { deep: {} } }));
    for (let n = 0; n < 40; n++) {
      const items = Array.from({ length: 50 }, (_, at) => ({ n, at, text: "x".repeat(400) }));
      await write(
        store,
        splice("a", ["list"], n * 50, 0, items),
        set("a", ["tree", "deep", `k${n}`], "y".repeat(5_000)),
      );
    }
    const parts = file.database().prepare("SELECT count(DISTINCT part) AS n FROM snapshot");
    while (Number(parts.get()?.["n"]) < 3) await write(store, set("other", [], 0));
    expect(viewed(file).get("a")).toEqual(await currentValue(store, "a"));
  });

  test("[S130] the view shows random histories of patches as the store has them", async () => {
    const edit = fc.record({
      document: fc.nat(2),
      op: fc.constantFrom("set-root", "set-child", "set-grandchild", "delete-child", "delete-root", "splice"),
      key: fc.nat(3),
      innerKey: fc.nat(3),
      value: fc.nat(8),
    });
    const property = fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 25 }), async (edits) => {
      await using file = new StoreFile();
      const store = await file.open();
      for (const one of edits) {
        const id = `d${one.document}`;
        const { operation } = planEdit(one, await currentValue(store, id));
        await write(store, { ...ref(id), operations: [operation] });
      }
      expect(viewed(file)).toEqual(await loaded(store, ["d0", "d1", "d2"]));
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test("[S132] in the sqlite3 shell a value with keys that its version cannot name is NULL and never wrong", async (context) => {
    await using file = new StoreFile();
    const store = await file.open();
    await write(store, set("plain", [], { list: [1] }), set("odd", [], {}));
    await write(store, splice("plain", ["list"], 1, 0, [2]), set("odd", ['"'], 1));
    await store.close();
    const query = "SELECT id || ' ' || coalesce(value, 'NULL') FROM document_json ORDER BY id";
    const { error, stdout } = spawnSync("sqlite3", [file.path, query], { encoding: "utf8" });
    if (error) return context.skip("there is no sqlite3 shell on this machine");
    const [odd, plain] = stdout.trim().split("\n");
    expect(plain).toBe('plain {"list":[1,2]}');
    expect(["odd NULL", 'odd {"\\"":1}']).toContain(odd);
  });
});
