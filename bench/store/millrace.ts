/** Opens the systems that are ours: the SQLite store on a file in a directory, and the memory store. */
import { join } from "node:path";
import { systemHost } from "../../src/host/system-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { Durability } from "./durability.ts";

export function openMillrace(directory: string, durability: Durability): Promise<Store> {
  return openSqliteStore({ path: join(directory, "millrace.db"), durability });
}

export function openMemory(): Store {
  return memoryStore({ host: systemHost() });
}
