/** A second connection that can only read, for what reads long: it sees one moment while the writer goes on. */
import { type Connection, configure, openConnection } from "./connection.ts";
import type { ResolvedOptions } from "./options.ts";

export interface Reader extends AsyncDisposable {
  readonly connection: Connection;
}

/** Its moment is that of its first read. */
export function openReader(options: ResolvedOptions): Reader {
  const connection = openConnection(options, true);
  configure(connection, options, true);
  connection.exec("BEGIN");
  return {
    connection,
    [Symbol.asyncDispose]: async () => {
      connection.rollback();
      connection.close();
    },
  };
}
