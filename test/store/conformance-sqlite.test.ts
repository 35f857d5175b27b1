import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { describeStore } from "./conformance/describe-store.ts";
import { type OpenStore, storeUnderTest } from "./conformance/store-under-test.ts";
import { ControlledHost } from "./controlled-host.ts";

/** A real file each time. Power loss is not what this suite is about, so it need not wait for the disk. */
const open: OpenStore = async ({ changesKept, payloadBytesMax } = {}) => {
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

describeStore("SQLite store", open, { modelRuns: 60 });
