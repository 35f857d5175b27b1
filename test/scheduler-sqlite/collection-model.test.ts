import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Space } from "../../src/cells/space.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { runHistory } from "../cells/collection-program.ts";

const ROUNDS = 25;
const directories: string[] = [];

afterAll(async () => {
  for (const directory of directories) await rm(directory, { recursive: true, force: true });
});

describe("random histories of a collection on a SQLite file", () => {
  test("[R94] [R98] two stores on one file that write and restart agree with a map", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millrace-collection-"));
    directories.push(directory);
    const host = systemHost();
    const open = async () => {
      const store = await openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });
      return { store, space: await Space.open({ store, host, name: "s" }) };
    };
    const sites = [await open(), await open()];
    const spaces = sites.map(({ space }) => space);
    const rest = async <T>(work: () => Promise<T>): Promise<T> => {
      const result = await work();
      for (const space of spaces) await space.settled();
      // Commits of the other process are integrated, without a wait for its notification.
      for (const space of spaces) await space.replica("s").catchUp();
      return result;
    };
    const close = async (at: number) => {
      await sites[at]?.space.close();
      await sites[at]?.store.close();
    };
    const restart = async (at: number) => {
      await close(at);
      sites[at] = await open();
      spaces[at] = sites[at].space;
    };
    await runHistory({ spaces, restart, rest }, 1, ROUNDS);
    await close(0);
    await close(1);
    expect(directories).toHaveLength(1);
  }, 120_000);
});
