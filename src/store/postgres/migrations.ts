/**
 * Makes and upgrades the schema of a store, under an advisory lock, so that several kernels may start at once. A kernel
 * refuses a database that is newer than it knows.
 */
import { StoreError } from "../store.ts";
import type { DatabaseLink } from "./link.ts";
import { outboxFunctions, outboxTables } from "./outbox.ts";
import { functionsOf, SCHEMA_VERSION, tablesOf } from "./schema.ts";

export interface Migration {
  /** 0: there was no store. */
  readonly from: number;
  readonly to: number;
}

/** The version of the store's schema; 0 if there is none. */
export async function schemaVersion(link: DatabaseLink, schema: string): Promise<number> {
  // Not `to_regclass`: after the wait for the lock, it may answer from a cache that is older than the lock.
  const [found] = await link.query(
    "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta'",
    [schema],
  );
  if (found === undefined) return 0;
  const [meta] = await link.query(`SELECT version FROM ${schema}.meta`);
  return Number(meta?.["version"] ?? 0);
}

export async function migrate(link: DatabaseLink, schema: string): Promise<Migration> {
  const before = await schemaVersion(link, schema);
  refuseNewer(before);
  if (before === SCHEMA_VERSION) return { from: before, to: before };
  return link.transaction(async () => {
    await link.query("SELECT pg_advisory_xact_lock(hashtext($1))", [`${schema}.migrate`]);
    const from = await schemaVersion(link, schema);
    refuseNewer(from);
    if (from === SCHEMA_VERSION) return { from, to: from };
    await link.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await link.query(functionsFirst(schema));
    return { from, to: SCHEMA_VERSION };
  });
}

/** Throws unless the database has this version's schema. */
export async function requireSchema(link: DatabaseLink, schema: string): Promise<void> {
  const version = await schemaVersion(link, schema);
  refuseNewer(version);
  if (version === SCHEMA_VERSION) return;
  const what = version === 0 ? `has no schema "${schema}"` : `has schema version ${version}, older than this build`;
  throw new StoreError("STORE_TOO_OLD", `the database ${what}; run: millrace migrate`);
}

function functionsFirst(schema: string): string {
  return `${tablesOf(schema)}\n${outboxTables(schema)}\n${functionsOf(schema)}\n${outboxFunctions(schema)}`;
}

function refuseNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return;
  const what = `the database has schema version ${version}, and this build knows ${SCHEMA_VERSION}`;
  throw new StoreError("STORE_TOO_NEW", `${what}; update millrace on this machine`);
}
