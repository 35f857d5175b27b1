/** `millrace/sqlite`: the store in a file. */
/// <reference lib="esnext.disposable" preserve="true" />
export { openSqliteStore } from "./open.ts";
export type { SqliteStoreOptions, SqliteTuning } from "./options.ts";
