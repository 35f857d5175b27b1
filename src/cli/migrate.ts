/** `millrace migrate [URL]`: makes or upgrades the schema of a store on Postgres. SPEC: K193. */
import { migrateDatabase } from "../kernel/database.ts";
import { storePlaceText } from "../kernel/open-store.ts";
import { databaseOf } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, type Verb, type VerbCall } from "./verb.ts";

export const migrate: Verb = {
  name: "migrate",
  usage: "[URL] [--json]",
  summary: "make or upgrade the schema of a store on Postgres; kernels do it too if their role may",
  example: "millrace migrate postgres://owner@db.example/shop",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run({ words: [named], options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const url = databaseOf(named, environment);
  const { from, to } = await migrateDatabase(url);
  if (options["json"]) terminal.line(JSON.stringify({ database: storePlaceText(url), from, to }));
  else if (from === to) terminal.line(`${storePlaceText(url)}: the schema has version ${to} already`);
  else if (from === 0) terminal.line(`${storePlaceText(url)}: the schema was made, version ${to}`);
  else terminal.line(`${storePlaceText(url)}: the schema was upgraded from version ${from} to ${to}`);
  return EXIT.ok;
}
