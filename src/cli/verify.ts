/**
 * `millrace verify [file]`: reads a whole store file and reports any damage.
 */
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { openStore, openStoreForReading, storePlaceText } from "../kernel/open-store.ts";
import { existingStore } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, type Verb, type VerbCall } from "./verb.ts";

export const verify: Verb = {
  name: "verify",
  usage: "[file] [--accept-removed] [--json]",
  summary: "read a whole store file: hash chain of the journal, checksums, structure",
  example: "millrace verify .millrace/kernel.db",
  options: {
    "accept-removed": {
      type: "boolean",
      about: "accept that journal rows were removed by hand (no kernel may run)",
    },
    json: JSON_OPTION,
  },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const file = existingStore(words[0], environment);
  if (options["accept-removed"]) await accept(file, environment, terminal);
  await using store = await openStoreForReading(systemHost(), file);
  const name = storePlaceText(file);
  terminal.progress(`reading ${name}`);
  const report = await store.verify();
  if (options["json"]) {
    terminal.line(JSON.stringify({ file: name, ...report }));
  } else {
    const { ok, rows, unsigned, documents, problems, isIncomplete } = report;
    const verdict = ok ? terminal.good("sound") : terminal.bad(isIncomplete ? "incomplete" : "damaged");
    terminal.line(`${name}: ${verdict} · ${rows} journal rows (${unsigned} without a hash) · ${documents} documents`);
    for (const problem of problems) terminal.line(`  ${problem}`);
  }
  return report.ok ? EXIT.ok : EXIT.failed;
}

/** A file outside of the data directory has no lock; the engine's own lock allows one writer at a time. */
async function accept(
  file: string,
  environment: VerbCall["environment"],
  terminal: VerbCall["terminal"],
): Promise<void> {
  const directory = dataDirectory(environment);
  using _lock = file === directory.databaseFile ? InstanceLock.take(directory) : undefined;
  await using store = await openStore(systemHost(), file);
  const removed = await store.acceptRemoved();
  for (const { first, last } of removed)
    terminal.complain(`journal rows ${first} to ${last} are noted as removed by hand`);
}
