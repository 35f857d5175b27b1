/**
 * `millrace restore FILE`: replaces the store by a copy; the earlier store is moved aside. SPEC: K66.
 */
import { existsSync } from "node:fs";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { restore as restoreStore } from "../kernel/store-copy.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const restore: Verb = {
  name: "restore",
  usage: "FILE [--yes] [--json]",
  summary: "put a copy in the place of the store, which is moved aside (--yes does it)",
  example: "millrace restore kernel-backup.db --yes",
  options: { yes: { type: "boolean", about: "do it where there is a store already" }, json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const [named] = words;
  if (named === undefined) throw new UsageError("name the copy: millrace restore kernel-backup.db");
  const source = existingDatabaseFile(named, environment);
  const directory = dataDirectory(environment);
  const { databaseFile } = directory;
  if (existsSync(databaseFile) && !options["yes"]) {
    if (options["json"]) terminal.line(JSON.stringify({ restored: false, file: databaseFile }));
    else terminal.line(`${databaseFile} would be moved aside and replaced by ${source}; add --yes to do it`);
    return EXIT.ok;
  }
  terminal.progress(`copying ${source}`);
  const { report, movedTo } = await restoreStore(systemHost(), source, directory);
  const { rows, documents } = report;
  if (options["json"]) terminal.line(JSON.stringify({ restored: true, file: databaseFile, movedTo, rows, documents }));
  else {
    terminal.line(`${databaseFile}: ${rows} journal rows and ${documents} documents from ${source}`);
    if (movedTo !== undefined) terminal.line(`the store that was there is ${movedTo}`);
  }
  return EXIT.ok;
}
