/** `millrace import FILE`: reads an export into a new store. SPEC: K121. */
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { importLines } from "../kernel/store-lines.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const importVerb: Verb = {
  name: "import",
  usage: "FILE [--json]",
  summary: "read an export into a new store; no kernel may run, and the store must be empty",
  example: "millrace import kernel.jsonl",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const [source] = words;
  if (source === undefined) throw new UsageError("name the export: millrace import kernel.jsonl");
  const directory = dataDirectory(environment);
  const counts = await importLines(systemHost(), source, directory, (done) =>
    terminal.progress(`importing ${source}: ${done} lines`),
  );
  const { row, document, consumer, due } = counts;
  const file = directory.databaseFile;
  if (options["json"])
    terminal.line(JSON.stringify({ file, rows: row, documents: document, consumers: consumer, due }));
  else
    terminal.line(
      `${file}: ${row} journal rows, ${document} documents, ${consumer} consumers and ${due} timers, verified`,
    );
  return EXIT.ok;
}
