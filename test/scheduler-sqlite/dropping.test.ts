import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { isLongRun } from "../portable/long-run.ts";

const IDS = isLongRun ? 200_000 : 3_000;
const RESIDENT_MAX = 200;
/** Written in one commit: pending documents are not dropped. */
const TOGETHER = 50;

const directories: string[] = [];

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
});

describe("documents that only cells lead to, on a SQLite file", () => {
  test("[R44] documents without holders are bounded, for any number of ids; all cells read the stored values", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millrace-dropping-"));
    directories.push(directory);
    const host = systemHost();
    const store = await openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });
    const space = await Space.open({ store, host, name: "s", residentDocumentsMax: RESIDENT_MAX });
    const replica = space.replica("s");
    const early: Cell<number | undefined>[] = [];
    let most = 0;
    for (let i = 0; i < IDS; i++) {
      const cell = space.cell<number>(`id ${i}`);
      if (i < TOGETHER) early.push(cell);
      cell.get();
      cell.set(i);
      if (i % TOGETHER === TOGETHER - 1) await space.settled();
      most = Math.max(most, replica.residentDocuments);
    }
    expect(most).toBeLessThanOrEqual(RESIDENT_MAX + 2 * TOGETHER);
    await Promise.all(early.map((cell) => space.transact(() => cell.update((n = 0) => n + 1))));
    for (let from = 0; from < IDS; from += TOGETHER) {
      const ids = Array.from({ length: TOGETHER }, (_, at) => from + at);
      const values = await Promise.all(ids.map((id) => space.cell<number>(`id ${id}`).pull()));
      expect(values).toEqual(ids.map((id) => (id < TOGETHER ? id + 1 : id)));
      most = Math.max(most, replica.residentDocuments);
    }
    expect(most).toBeLessThanOrEqual(RESIDENT_MAX + 2 * TOGETHER);
    expect(await Promise.all(early.map((cell) => cell.pull()))).toEqual(early.map((_, at) => at + 1));
    await space.close();
    await store.close();
  }, 600_000);
});
