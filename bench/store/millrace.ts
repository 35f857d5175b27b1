/** Opens the systems that are ours: the SQLite store on a file in a directory, and the memory store. */
import { join } from "node:path";
import { openSqliteStore } from "millrace/sqlite";
import { memoryStore, type Store, systemHost } from "millrace/store";
import type { Durability } from "./durability.ts";

export function openMillrace(directory: string, durability: Durability): Promise<Store> {
  return openSqliteStore({ path: join(directory, "millrace.db"), durability });
}

export function openMemory(): Store {
  return memoryStore({ host: systemHost() });
}
