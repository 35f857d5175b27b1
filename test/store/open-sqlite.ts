/** Opens SQLite stores for the conformance suite, each on a fresh file. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { type OpenStore, storeUnderTest } from "./conformance/store-under-test.ts";
import { ControlledHost } from "./controlled-host.ts";

/** A file for each store. The suite does not test power loss, so writes do not wait for the disk. */
export const openSqlite: OpenStore = async ({ changesKept, payloadBytesMax } = {}) => {
  const host = new ControlledHost();
  const directory = await mkdtemp(join(tmpdir(), "millrace-conformance-"));
  return storeUnderTest(host, {
    open: async () =>
      openSqliteStore({
        path: join(directory, "store.db"),
        host,
        durability: "process",
        tuning: {
          ...(changesKept === undefined ? {} : { feedCommits: changesKept }),
          ...(payloadBytesMax === undefined ? {} : { payloadBytesMax }),
        },
      }),
    remove: () => rm(directory, { recursive: true, force: true }),
  });
};
