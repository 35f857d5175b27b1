/** `millrace verify [file]`: reads a whole store file and says whether everything in it is as it was written. */
import { systemHost } from "../host/system-host.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, type Verb, type VerbCall } from "./verb.ts";

export const verify: Verb = {
  name: "verify",
  usage: "[file] [--json]",
  summary: "read a whole store file: hash chain of the journal, checksums, structure",
  example: "millrace verify .millrace/kernel.db",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const file = existingDatabaseFile(words[0], environment);
  await using store = await openStoreForReading(systemHost(), file);
  terminal.progress(`reading ${file}`);
  const report = await store.verify();
  if (options["json"]) {
    terminal.line(JSON.stringify({ file, ...report }));
  } else {
    const { ok, rows, unsigned, documents, problems } = report;
    const verdict = ok ? terminal.good("sound") : terminal.bad("damaged");
    terminal.line(`${file}: ${verdict} · ${rows} journal rows (${unsigned} without a hash) · ${documents} documents`);
    for (const problem of problems) terminal.line(`  ${problem}`);
  }
  return report.ok ? EXIT.ok : EXIT.failed;
}
