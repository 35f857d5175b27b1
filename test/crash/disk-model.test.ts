/**
 * The crash harness's own model of a disk: the data that it keeps and loses. A model that keeps too much would prove
 * little.
 */
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { DiskModel, type Image } from "./disk-model.ts";
import type { IoRecord } from "./io-log.ts";

const create = (name: string): IoRecord => ({ kind: "create", name, emptied: false });
const write = (name: string, offset: number, text: string): IoRecord => ({
  kind: "write",
  name,
  offset,
  data: Buffer.from(text),
});
const sync = (name: string): IoRecord => ({ kind: "sync", name });

describe("[J1] the model of a disk", () => {
  test("the disk model keeps every write after a kill", () => {
    const disk = diskAfter(create("f"), write("f", 0, "abc"), write("f", 2, "xyz"));
    expect(textsOf(disk.afterKill())).toEqual({ f: "abxyz" });
  });

  test("the disk model keeps synced writes after a power loss, each file separately", () => {
    const disk = diskAfter(create("f"), create("g"), sync("."), write("f", 0, "old"), sync("f"), write("f", 0, "new"));
    disk.apply(write("g", 0, "lost"));
    expect(textsOf(disk.afterPowerLoss())).toEqual({ f: "old", g: "" });
  });

  test("a name is durable only when its directory is, and a deleted file may come back", () => {
    const disk = diskAfter(create("f"), write("f", 0, "abc"), sync("f"));
    expect(textsOf(disk.afterPowerLoss())).toEqual({});
    disk.apply(sync("."));
    disk.apply({ kind: "unlink", name: "f" });
    expect(textsOf(disk.afterKill())).toEqual({});
    expect(textsOf(disk.afterPowerLoss())).toEqual({ f: "abc" });
    disk.apply(sync("."));
    expect(textsOf(disk.afterPowerLoss())).toEqual({});
  });

  test("a truncation is a change like others, and a file that grows again contains zeros", () => {
    const disk = diskAfter(create("f"), sync("."), write("f", 0, "abcdef"), sync("f"));
    disk.apply({ kind: "truncate", name: "f", length: 2 });
    expect(textsOf(disk.afterPowerLoss())).toEqual({ f: "abcdef" });
    disk.apply(write("f", 4, "z"));
    expect(textsOf(disk.afterKill())).toEqual({ f: "ab\0\0z" });
  });

  test("writes of a failed sync are not saved by a later sync", () => {
    const disk = diskAfter(create("f"), sync("."), write("f", 0, "one"), { kind: "failedSync", name: "f" });
    disk.apply(write("f", 3, "two"));
    disk.apply(sync("f"));
    expect(textsOf(disk.afterPowerLoss())).toEqual({ f: "\0\0\0two" });
  });

  test("a torn power loss leaves any part of the unsynced writes, cut at sectors", () => {
    const sector = 512;
    const disk = diskAfter(create("f"), sync("."), write("f", 0, "s".repeat(4 * sector)), sync("f"));
    disk.apply(write("f", 0, "n".repeat(4 * sector)));
    const seen = new Set<string>();
    const random = new SeededRandom(1);
    for (let i = 0; i < 2_000; i++) seen.add(textsOf(disk.afterTornPowerLoss(random))["f"] ?? "");
    // Each of four sectors old or new.
    expect(seen.size).toBe(16);
    for (const text of seen) {
      for (let at = 0; at < text.length; at += sector) expect(new Set(text.slice(at, at + sector)).size).toBe(1);
    }
  });
});

function diskAfter(...records: readonly IoRecord[]): DiskModel {
  const disk = new DiskModel();
  for (const record of records) disk.apply(record);
  return disk;
}

function textsOf(image: Image): Record<string, string> {
  return Object.fromEntries(Array.from(image, ([name, content]) => [name, content.toString("latin1")]));
}
