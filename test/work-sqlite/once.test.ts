/** Every entry point on a SQLite file. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";
import { describeOnce } from "../work/describe-once.ts";
import { ENTRY_POINTS } from "../work/entry-points.ts";
import type { MakeDisk } from "../work/world.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-once-"));
let files = 0;

const sqliteWorlds: MakeDisk = () => {
  const path = join(folder, `${++files}.db`);
  const tuning = { checkpointThread: false, feedCommits: 2 };
  return (host) => openSqliteStore({ path, host, durability: "process", tuning });
};

for (const entryPoint of ENTRY_POINTS) describeOnce(entryPoint, "SQLite", sqliteWorlds);
