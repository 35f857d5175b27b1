/**
 * Opens a file exclusively to erase a subject from it (`erase.ts`).
 */

import type { Erased } from "../erase.ts";
import { type Connection, configure, openConnection } from "./connection.ts";
import { eraseSubject, rebuild } from "./erase.ts";
import { resolveOptions, type SqliteStoreOptions } from "./options.ts";

/**
 * `apply: false` only reports matches. The caller holds the lock of the data directory; throws if the store is open
 * elsewhere.
 */
export function eraseFromFile(options: SqliteStoreOptions, subject: string, apply: boolean): Erased {
  const resolved = resolveOptions(options);
  const connection = openConnection(resolved, !apply);
  try {
    configure(connection, resolved, !apply);
    if (!apply) return inTransaction(connection, "BEGIN", () => eraseSubject(connection, { subject, apply }));
    // Freed space is overwritten, even if the rebuild is interrupted.
    connection.exec("PRAGMA secure_delete = ON; PRAGMA locking_mode = EXCLUSIVE");
    const erased = inTransaction(connection, "BEGIN EXCLUSIVE", () => eraseSubject(connection, { subject, apply }));
    rebuild(connection);
    return erased;
  } finally {
    connection.close();
  }
}

function inTransaction<T>(connection: Connection, begin: string, work: () => T): T {
  connection.exec(begin);
  try {
    const result = work();
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  }
}
