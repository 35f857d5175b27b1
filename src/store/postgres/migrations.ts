/**
 * Makes and upgrades the schema of a store, under an advisory lock, so that several kernels may start at once. A kernel
 * refuses a database that is newer than it knows.
 */
import { StoreError } from "../store.ts";
import type { Link } from "./link.ts";
import { functionsOf, SCHEMA_VERSION, tablesOf } from "./schema.ts";

export interface Migration {
  /** 0: there was no store. */
  readonly from: number;
  readonly to: number;
}

/** The version of the store's schema; 0 if there is none. */
export async function schemaVersion(link: Link, schema: string): Promise<number> {
  const [found] = await link.query("SELECT to_regclass($1) IS NOT NULL AS there", [`${schema}.meta`]);
  if (found?.["there"] !== true) return 0;
  const [meta] = await link.query(`SELECT version FROM ${schema}.meta`);
  return Number(meta?.["version"] ?? 0);
}

export async function migrate(link: Link, schema: string): Promise<Migration> {
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

function functionsFirst(schema: string): string {
  return `${tablesOf(schema)}\n${functionsOf(schema)}`;
}

function refuseNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return;
  const what = `the database has schema version ${version}, and this build knows ${SCHEMA_VERSION}`;
  throw new StoreError("STORE_TOO_NEW", `${what}; update millrace on this machine`);
}
