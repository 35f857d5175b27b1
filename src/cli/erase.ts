/** `millrace erase --subject KEY`: removes the data of a subject from the store, for good. SPEC: K68. */
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { type Erased, eraseSubject, findSubject } from "../kernel/erase-subject.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** A shorter one would be found in too many texts. */
const SUBJECT_LENGTH_MIN = 3;

export const erase: Verb = {
  name: "erase",
  usage: "--subject KEY [--yes] [--json]",
  summary: "erase the data of a subject from the store for good (counted first; --yes does it)",
  example: "millrace erase --subject customer-17\nmillrace erase --subject customer-17 --yes",
  options: {
    subject: { type: "string", value: "KEY", about: "a word in names of documents and in messages, like customer-17" },
    yes: { type: "boolean", about: "do it, and do not only count; no kernel may run" },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

async function run({ options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const subject = options["subject"];
  if (typeof subject !== "string" || subject.length < SUBJECT_LENGTH_MIN)
    throw new UsageError(`name a subject of at least ${SUBJECT_LENGTH_MIN} characters: --subject customer-17`);
  const host = systemHost();
  const file = existingDatabaseFile(undefined, environment);
  const isDone = options["yes"] === true;
  terminal.progress(`reading ${file}`);
  const erased = isDone
    ? eraseSubject(host, file, dataDirectory(environment), subject)
    : findSubject(host, file, subject);
  if (options["json"]) terminal.line(JSON.stringify({ erased: isDone, ...erased }));
  else for (const line of linesOf(erased, isDone)) terminal.line(line);
  return EXIT.ok;
}

function linesOf({ documents, rows, receipts, left }: Erased, isDone: boolean): string[] {
  const what = `${documents} documents, ${rows} journal rows and ${receipts} receipts`;
  const lines = [isDone ? `${what} erased` : `${what} would be erased; add --yes to do it`];
  if (left.unsettled > 0) lines.push(`left: ${left.unsettled} journal rows that are not handled yet`);
  if (left.due > 0) lines.push(`left: ${left.due} timers that name it; cancel them`);
  for (const name of left.documents) lines.push(`left: ${name} mentions it; change that document`);
  return lines;
}
