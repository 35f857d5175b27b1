/**
 * `millrace erase --subject KEY`: removes the data of a subject from the store, for good, also while a kernel runs.
 * SPEC: K68, K123.
 */
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { type Erased, eraseOffline, findSubject } from "../kernel/erase-capability.ts";
import { ERASE_SUBJECT_LENGTH_MIN } from "../limits.ts";
import { connectIfRunning } from "./connection.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { operatorName } from "./operator.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** The kernel searches the whole store: a day, the longest wait at a terminal. */
const ANSWER_MS_MAX = 86_400_000;

export const erase: Verb = {
  name: "erase",
  usage: "--subject KEY [--yes] [--json]",
  summary: "erase the data of a subject from the store for good (counts it; --yes does it)",
  example: "millrace erase --subject customer-17\nmillrace erase --subject customer-17 --yes",
  options: {
    subject: { type: "string", value: "KEY", about: "a word in names of documents and in messages, like customer-17" },
    yes: { type: "boolean", about: "do it, and do not only count" },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, environment, terminal } = call;
  const subject = options["subject"];
  if (typeof subject !== "string" || subject.length < ERASE_SUBJECT_LENGTH_MIN)
    throw new UsageError(`name a subject of at least ${ERASE_SUBJECT_LENGTH_MIN} characters: --subject customer-17`);
  const file = existingDatabaseFile(undefined, environment);
  const isDone = options["yes"] === true;
  terminal.progress(`reading ${file}`);
  const erased = isDone ? await erasedBy(call, file, subject) : findSubject(systemHost(), file, subject);
  if (options["json"]) terminal.line(JSON.stringify({ erased: isDone, ...erased }));
  else for (const line of linesOf(erased, isDone)) terminal.line(line);
  return EXIT.ok;
}

/** By the running kernel, or here while none can start. */
async function erasedBy(call: VerbCall, file: string, subject: string): Promise<Erased> {
  const client = await connectIfRunning(call);
  if (client === undefined) return eraseOffline(systemHost(), file, dataDirectory(call.environment), subject);
  await using _ = client;
  const data = { subject, by: operatorName() };
  return (await client.command("Kernel.Erase", data, { timeoutMs: ANSWER_MS_MAX })) as never as Erased;
}

function linesOf({ documents, rows, receipts, left }: Erased, isDone: boolean): string[] {
  const what = `${documents} documents, ${rows} journal rows and ${receipts} receipts`;
  const lines = [isDone ? `${what} erased` : `${what} would be erased; add --yes to do it`];
  if (left.unsettled > 0) lines.push(`left: ${left.unsettled} journal rows that are not handled yet`);
  if (left.due > 0) lines.push(`left: ${left.due} timers that name it; cancel them`);
  for (const name of left.documents) lines.push(`left: ${name} mentions it; change that document`);
  return lines;
}
