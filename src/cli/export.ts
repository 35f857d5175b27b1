/**
 * `millrace export --jsonl [FILE]`: all data of the store as JSON lines, also while a kernel runs on it. SPEC: K120.
 */
import { once } from "node:events";
import { systemHost } from "../host/system-host.ts";
import { linesOfStore, writeLines } from "../kernel/store-lines.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, type Verb, type VerbCall } from "./verb.ts";
import { packageVersion } from "./version.ts";

export const exportVerb: Verb = {
  name: "export",
  usage: "--jsonl [FILE]",
  summary: "write documents, journal, consumers and timers as JSON lines, to a new file or to stdout",
  example: "millrace export --jsonl kernel.jsonl\nmillrace export --jsonl | gzip > kernel.jsonl.gz",
  options: { jsonl: { type: "boolean", about: "one JSON value a line; the only format, and the default" } },
  wordsMax: 1,
  run,
};

async function run({ words, environment, terminal }: VerbCall): Promise<ExitCode> {
  const [target] = words;
  const file = existingDatabaseFile(undefined, environment);
  terminal.progress(`verifying ${file}`);
  const lines = linesOfStore(systemHost(), file, packageVersion());
  if (target !== undefined) {
    const count = await writeLines(lines, target, (done) => terminal.progress(`exporting ${file}: ${done} lines`));
    terminal.line(`${target}: ${count} lines`);
    return EXIT.ok;
  }
  for await (const line of lines) {
    terminal.line(line);
    if (process.stdout.writableNeedDrain) await once(process.stdout, "drain");
  }
  return EXIT.ok;
}
