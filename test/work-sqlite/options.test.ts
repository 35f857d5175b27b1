/** The options of handlers on a SQLite file. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";
import { describeOptions } from "../work/describe-options.ts";
import { OPTION_ENTRIES } from "../work/option-entries.ts";
import type { MakeDisk } from "../work/world.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-options-"));
let files = 0;

const sqliteWorlds: MakeDisk = () => {
  const path = join(folder, `${++files}.db`);
  const tuning = { checkpointThread: false, feedCommits: 2 };
  return (host) => openSqliteStore({ path, host, durability: "process", tuning });
};

for (const entryPoint of OPTION_ENTRIES) describeOptions(entryPoint, "SQLite", sqliteWorlds);
