import { describe, expect, test } from "vitest";
import { SNAPSHOT_SLICE_BYTES } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import { PARTS_REMOVED_MAX } from "../../../src/store/sqlite/sliced-work.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, committed, currentValue, set, splice, write } from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

/** Until the document has another snapshot than that of a sequence. */
async function compacted(file: StoreFile, store: Store, before = 0): Promise<void> {
  const row = file.database().prepare("SELECT snapshot_sequence AS at FROM document WHERE name = 'a'");
  for (let n = 0; Number(row.get()?.["at"]) <= before; n++) await write(store, set("other", [], n));
}

/** A document of 4 MB, and as many bytes of patches. */
async function grown(store: Store): Promise<{ [key: string]: Json }> {
  const value: { [key: string]: Json } = {};
  await write(store, set("a", [], {}));
  for (const letter of ["x", "y"]) {
    for (let from = 0; from < 4_000; from += 100) {
      const keys = Array.from({ length: 100 }, (_, at) => `key ${from + at}`);
      for (const key of keys) value[key] = `${key} ${letter.repeat(1_000)}`;
      await write(store, ...keys.map((key) => set("a", [key], value[key] as Json)));
    }
  }
  return value;
}

describe("snapshots in slices", () => {
  test("[S127] no job of a large document's snapshot reads or writes more than a slice", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const value = await grown(store);
    await compacted(file, store);
    // A slice ends with the patch that fills it; patches here have some 105,000 bytes.
    expect(store.stats().upkeepBytesMax).toBeLessThan(SNAPSHOT_SLICE_BYTES * 1.5);
    expect(await currentValue(store, "a")).toEqual(value);
    const parts = file.database().prepare("SELECT max(length(operations)) AS most, count(*) AS n FROM snapshot").get();
    expect(Number(parts?.["most"])).toBeLessThan(SNAPSHOT_SLICE_BYTES * 1.1);
    expect(Number(parts?.["n"])).toBeGreaterThan(10);
    await store.close();
    const again = await file.open();
    expect(await currentValue(again, "a")).toEqual(value);
    expect(await again.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S127] a batch has at most one slice, and other writes continue in between", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await grown(store);
    const before = store.stats().batches;
    let others = 0;
    const row = file.database().prepare("SELECT base_sequence AS at FROM document WHERE name = 'a'");
    const at = row.get()?.["at"];
    await write(store, set("a", ["last"], "z".repeat(4_000_000)));
    while (row.get()?.["at"] === at) {
      await write(store, set("other", [], others));
      others++;
    }
    expect(others).toBeGreaterThan(5);
    expect(store.stats().batches - before).toBeGreaterThanOrEqual(others);
  });

  test("[S127] a batch removes at most one slice of a replaced snapshot, and all of it is removed", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await grown(store);
    await compacted(file, store);
    const row = file.database().prepare("SELECT snapshot_sequence AS at FROM document WHERE name = 'a'");
    const at = Number(row.get()?.["at"]);
    await write(store, set("a", ["last"], "z".repeat(4_000_000)));
    const parts = file.database().prepare("SELECT count(*) AS n FROM snapshot WHERE sequence = ?");
    const look = () => ({ parts: Number(parts.get(at)?.["n"]), batches: store.stats().batches });
    let before = look();
    expect(before.parts).toBeGreaterThan(2 * PARTS_REMOVED_MAX);
    for (let n = 0; before.parts > 0; n++) {
      expect(n).toBeLessThan(1_000);
      await write(store, set("other", [], n));
      const after = look();
      expect(before.parts - after.parts).toBeLessThanOrEqual(PARTS_REMOVED_MAX * (after.batches - before.batches));
      before = after;
    }
  });

  test("[S128] patches that arrive while a snapshot is made are kept", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    const value = await grown(store);
    const row = file.database().prepare("SELECT base_sequence AS at FROM document WHERE name = 'a'");
    const at = row.get()?.["at"];
    value["last"] = "z".repeat(4_000_000);
    await write(store, set("a", ["last"], value["last"]));
    for (let n = 0; row.get()?.["at"] === at; n++) {
      value["late"] = n;
      await write(store, set("a", ["late"], n));
    }
    expect(await currentValue(store, "a")).toEqual(value);
    for (let n = 0; n < 300; n++) await write(store, set("other", [], n));
    expect(await currentValue(store, "a")).toEqual(value);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S128] a document that is replaced while a snapshot is made keeps no part of it", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    await grown(store);
    const parts = file.database().prepare("SELECT count(*) AS n FROM snapshot");
    await write(store, set("a", ["last"], "z".repeat(4_000_000)));
    await write(store, set("a", [], { small: true }));
    await grown(store);
    await compacted(file, store);
    const others =
      "SELECT count(*) AS n FROM snapshot JOIN document ON document.id = document WHERE snapshot.sequence <> snapshot_sequence";
    const left = file.database().prepare(others);
    while (left.get()?.["n"] !== 0) await write(store, set("other", [], 1));
    await write(store, set("a", [], { small: true }));
    while (parts.get()?.["n"] !== 0) await write(store, set("other", [], 2));
    expect(await currentValue(store, "a")).toEqual({ small: true });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S197] the removal of a replaced document keeps the snapshots made since", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    const large = await grown(store);
    const inForce =
      "SELECT count(*) AS n FROM snapshot JOIN document ON document.id = document WHERE snapshot.sequence = snapshot_sequence";
    const parts = file.database().prepare(inForce);
    for (let n = 0; Number(parts.get()?.["n"]) < 10; n++) {
      large["late"] = n;
      await write(store, set("a", ["late"], n));
    }
    expect(await currentValue(store, "a")).toEqual(large);
    // The new value is small enough for a snapshot in one job, which overtakes the removal of the old one.
    const value = { one: "z".repeat(3_000), two: "z".repeat(3_000) };
    await Promise.all([
      write(store, set("a", [], {})),
      write(store, set("a", ["one"], value.one)),
      write(store, set("a", ["two"], value.two)),
    ]);
    const all = file.database().prepare("SELECT count(*) AS n FROM snapshot");
    while (Number(all.get()?.["n"]) > 1) await write(store, set("other", [], 1));
    await store.close();
    const again = await file.open();
    expect(await currentValue(again, "a")).toEqual(value);
    expect(await again.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S196] a snapshot that was cut off by a close is made by the next process", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const value = await grown(store);
    value["last"] = "z".repeat(4_000_000);
    await write(store, set("a", ["last"], value["last"]));
    const unfinished =
      "SELECT count(*) AS n FROM snapshot JOIN document ON document.id = document WHERE snapshot.sequence > snapshot_sequence";
    const parts = file.database().prepare(unfinished);
    while (parts.get()?.["n"] === 0) await write(store, set("other", [], 0));
    await store.close();
    const again = await file.open();
    expect(await currentValue(again, "a")).toEqual(value);
    const { at } = file.database().prepare("SELECT snapshot_sequence AS at FROM document WHERE name = 'a'").get() ?? {};
    const snapshot = Number(at);
    await write(again, set("a", ["late"], 1));
    await compacted(file, again, snapshot);
    expect(await currentValue(again, "a")).toEqual({ ...value, late: 1 });
  });

  test("[S128] two processes that make snapshots of one document keep its value", async () => {
    await using file = new StoreFile();
    const [one, two] = [await file.open(), await file.open()];
    await write(one, set("a", [], { list: [] }));
    let length = 0;
    for (let n = 0; n < 60; n++) {
      const store = n % 2 === 0 ? one : two;
      const insert = Array.from({ length: 10 }, (_, at) => `${n} ${at} ${"z".repeat(5_000)}`);
      committed(await store.commit(commitBy(`s${n}`, 1, { patches: [splice("a", ["list"], length, 0, insert)] })));
      length += 10;
    }
    const { list } = (await currentValue(one, "a")) as { list: string[] };
    expect(list.map((text) => text.split(" ").slice(0, 2).join(" "))).toEqual(
      Array.from({ length: 600 }, (_, at) => `${Math.floor(at / 10)} ${at % 10}`),
    );
    expect(await two.verify()).toMatchObject({ ok: true, problems: [] });
  });
});
