/** The common suite on SQLite files, and on the same files by two connections. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../../src/store/sqlite/index.ts";
import { describeStore } from "../conformance/describe-store.ts";
import { type OpenStore, storeUnderTest } from "../conformance/store-under-test.ts";
import { ControlledHost } from "../controlled-host.ts";

const open: OpenStore = async ({ changesKept } = {}) => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-store-"));
  const host = new ControlledHost();
  const tuning = changesKept === undefined ? {} : { feedCommits: changesKept };
  return storeUnderTest(host, {
    open: () => openSqliteStore({ path: join(directory, "app.db"), durability: "process", host, tuning }),
    remove: async () => rmSync(directory, { recursive: true, force: true }),
  });
};

describeStore("sqlite store", open, { modelRuns: 50 });
