import { copyFileSync, renameSync, rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { commitBy, set, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const WAYS: [string, (path: string) => void][] = [
  ["its file is removed", (path) => rmSync(path)],
  ["its log is removed", (path) => rmSync(`${path}-wal`)],
  [
    "its file is replaced by a copy",
    (path) => {
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
  ],
];

describe("files that are removed or replaced", () => {
  const CASES = WAYS.flatMap(([what, harm]) =>
    (["power", "process"] as const).map((durability) => [what, durability, harm] as const),
  );
  test.each(CASES)("[S129] no write is acknowledged after %s, with durability %s", async (_, durability, harm) => {
    await using file = new StoreFile();
    const store = await file.open({ durability });
    await write(store, set("a", [], 1));
    expect(store.trouble).toBeUndefined();
    harm(file.path);
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, n) => store.commit(commitBy("s", n, { patches: [set("a", [], n)] }))),
    );
    expect(outcomes.filter(({ kind }) => kind === "committed")).toEqual([]);
    expect(store.trouble).toMatch(/^The store stopped: .*app\.db.* was (removed|replaced).*while it was open/);
    await expect(store.load("home", [])).rejects.toMatchObject({ code: "STORE_STOPPED" });
  });

  test.each(WAYS)("[S129] an idle store stops after %s", async (_, harm) => {
    await using file = new StoreFile();
    const store = await file.open();
    await write(store, set("a", [], 1));
    harm(file.path);
    while (store.trouble === undefined) await new Promise((resolve) => setImmediate(resolve));
    await expect(write(store, set("a", [], 2))).rejects.toThrow();
    await expect(store.commit(commitBy("s", 1))).rejects.toMatchObject({ code: "STORE_STOPPED" });
  });
});
