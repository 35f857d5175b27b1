import { describe, expect, test } from "vitest";
import { commitBy, committed, ref, SPACE, set, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const X = [{ path: ["x"], depth: "deep" }] as const;
const ROOT = [{ path: [], depth: "shallow" }] as const;

describe("an unreadable basis row", () => {
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
  ])("[S171] an unreadable basis row counts as missing for its node only: %s", async (_, damage) => {
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
