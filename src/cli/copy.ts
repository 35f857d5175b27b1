/** `millrace copy FILE URL`: moves an embedded app to Postgres: a store file into an empty database. SPEC: K196. */
import { dirname, resolve } from "node:path";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { copyToDatabase } from "../kernel/database.ts";
import { storePlaceText } from "../kernel/open-store.ts";
import { databaseOf, existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";
import { packageVersion } from "./version.ts";

export const copy: Verb = {
  name: "copy",
  usage: "FILE URL [--json]",
  summary: "copy a store file into an empty Postgres database; no kernel may run on the file",
  example: "millrace copy .millrace/kernel.db postgres://owner@db.example/shop",
  options: { json: JSON_OPTION },
  wordsMax: 2,
  run,
};

async function run({ words: [source, target], options, environment, terminal }: VerbCall): Promise<ExitCode> {
  if (source === undefined)
    throw new UsageError("name the file and the database: millrace copy .millrace/kernel.db postgres://…");
  const file = existingDatabaseFile(source, environment);
  const url = databaseOf(target, environment);
  terminal.progress(`verifying ${file}`);
  const { row, document, consumer, due } = await copyToDatabase(systemHost(), file, url, {
    version: packageVersion(),
    // A kernel locks the directory of its file.
    directory: dataDirectory({ MILLRACE_DIR: dirname(resolve(file)) }),
    progress: (lines) => terminal.progress(`copying ${file}: ${lines} lines`),
  });
  const database = storePlaceText(url);
  if (options["json"])
    terminal.line(JSON.stringify({ file, database, rows: row, documents: document, consumers: consumer, due }));
  else
    terminal.line(
      `${database}: ${row} journal rows, ${document} documents, ${consumer} consumers and ${due} timers, verified`,
    );
  return EXIT.ok;
}
