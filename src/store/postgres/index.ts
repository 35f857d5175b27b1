/** `millrace/postgres`: the store on Postgres, for several kernels on several machines. */
export { LocalServer, type LocalServerOptions } from "./local-server.ts";
export type { PostgresStoreOptions, PostgresTuning } from "./options.ts";
export { migratePostgres, openPostgresStore } from "./store.ts";
