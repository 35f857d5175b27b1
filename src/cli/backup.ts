/** `millrace backup FILE`: a verified copy of the store, also while a kernel runs on it. SPEC: K65. */
import { systemHost } from "../host/system-host.ts";
import { backUp } from "../kernel/store-copy.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const backup: Verb = {
  name: "backup",
  usage: "FILE [--json]",
  summary: "write a verified copy of the store to a new file, also while a kernel runs",
  example: "millrace backup kernel-backup.db",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const [target] = words;
  if (target === undefined) throw new UsageError("name the file to write: millrace backup kernel-backup.db");
  const file = existingDatabaseFile(undefined, environment);
  terminal.progress(`copying ${file}`);
  const { rows, documents } = await backUp(systemHost(), file, target);
  if (options["json"]) terminal.line(JSON.stringify({ file: target, rows, documents }));
  else terminal.line(`${target}: ${rows} journal rows and ${documents} documents, verified`);
  return EXIT.ok;
}
