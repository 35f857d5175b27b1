/**
 * `millrace tail`: follows the journal, read from the file, so that it works beside a kernel and survives its restart.
 * It notices a closed pipe (`| head`) only with the next row, because Node reports it only on a write.
 */
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { newestRows } from "../kernel/filtered-rows.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { existingStore } from "./database-file.ts";
import { FILTER_OPTION, readFilter } from "./filter-option.ts";
import { creationTime, type JournalLine, troubleOf } from "./journal-lines.ts";
import { END_SIGNALS, EXIT, type ExitCode, JSON_OPTION, readNumber, type Verb, type VerbCall } from "./verb.ts";

const LAST_DEFAULT = 10;
const LAST_MAX = 10_000;
/** Fast enough for a person. */
const LOOK_MS = 100;

export const tail: Verb = {
  name: "tail",
  usage: "[--last N] [--topic T] [--filter F] [--no-follow] [--json]",
  summary: "show the journal's last rows and then every new one, until Ctrl-C",
  example: "millrace tail --topic Email.Received",
  options: {
    last: { type: "string", value: "N", about: "begin with the last N rows" },
    topic: { type: "string", value: "T", about: "rows of this topic or type" },
    filter: FILTER_OPTION,
    "no-follow": { type: "boolean", about: "show the present rows, and end" },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

async function run({ options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const host = systemHost();
  const interrupted = interruption();
  const last = readNumber("last", options["last"], { min: 0, max: LAST_MAX }) ?? LAST_DEFAULT;
  const topic = typeof options["topic"] === "string" ? { named: options["topic"] } : {};
  const filter = readFilter(options["filter"], host);
  const say = (row: JournalLine) => terminal.line(options["json"] ? JSON.stringify(row) : lineOf(row));
  await using store = await openStoreForReading(host, existingStore(undefined, environment));
  const [newest] = await store.query({ ...topic, order: "descending", limit: 1 });
  let cursor = newest?.id ?? 0;
  const shown =
    last === 0 ? [] : await newestRows({ host, store }, filter, { ...topic, limit: last, cursor: cursor + 1 });
  for (const row of shown.reverse()) say(row);
  if (options["no-follow"]) return EXIT.ok;
  while (!interrupted.aborted) {
    const rows = await store.query({ ...topic, cursor, limit: JOURNAL_PAGE_ROWS });
    for (const row of rows) if (filter.matches(row)) say(row);
    cursor = rows.at(-1)?.id ?? cursor;
    if (rows.length < JOURNAL_PAGE_ROWS) await pause(host, interrupted);
  }
  return EXIT.ok;
}

function lineOf(row: JournalLine): string {
  const { message } = row;
  const trouble = troubleOf(row);
  const what = message ? `${message.kind} ${message.type} ${JSON.stringify(message.data)}` : row.topic;
  return `${row.id}  ${creationTime(row)}  ${row.source}  ${what}${trouble === "" ? "" : `  ${row.outcome ?? row.status}: ${trouble}`}`;
}

function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of END_SIGNALS) process.once(signal, () => controller.abort());
  return controller.signal;
}

function pause(host: Host, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = host.timer(LOOK_MS, resolve);
    const abort = () => {
      timer.cancel();
      resolve();
    };
    signal.addEventListener("abort", abort, { once: true });
  });
}
