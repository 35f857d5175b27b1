/**
 * Writes much, says how long the log has become, and leaves without closing the store: the process ends when nothing
 * keeps it alive.
 */
import { statSync } from "node:fs";
import { openSqliteStore } from "../../../src/store/sqlite/index.ts";
import { CHECKPOINT_PAGES, fill } from "./long-log.ts";

const [, , path = ""] = process.argv;
const store = await openSqliteStore({ path, durability: "process", tuning: { checkpointPages: CHECKPOINT_PAGES } });
await fill(store, 60);
console.log(statSync(`${path}-wal`).size);
