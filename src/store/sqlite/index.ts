/** `millrace/sqlite`: the store in a file. */
export { openSqliteStore } from "./open.ts";
export type { SqliteStoreOptions, SqliteTuning } from "./options.ts";
