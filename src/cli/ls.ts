/** `millrace ls events`: the newest rows of the journal. Works on the file, whether or not something has it open. */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { EXIT, type ExitCode, UsageError, type Verb, type VerbCall } from "./verb.ts";

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
const STATUSES = ["pending", "processing", "done", "failed"] as const;

type Row = Awaited<ReturnType<KernelStore["query"]>>[number];

export const ls: Verb = {
  name: "ls",
  usage: "events [--status S] [--topic T] [--limit N] [--json]",
  summary: "list the newest events of the journal",
  options: {
    json: { type: "boolean" },
    status: { type: "string" },
    topic: { type: "string" },
    limit: { type: "string" },
  },
  wordsMax: 1,
  run,
};

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  if (words[0] !== "events") throw new UsageError('only events can be listed so far: "millrace ls events"');
  const { topic } = options;
  const status = readStatus(options["status"]);
  const query = {
    limit: readLimit(options["limit"]),
    order: "descending",
    ...(status === undefined ? {} : { status }),
    ...(typeof topic === "string" ? { topic } : {}),
  } as const;
  await using store = await openStoreForReading(systemHost(), existingDatabaseFile(undefined, environment));
  const rows = await store.query(query);
  if (options["json"]) {
    for (const row of rows) terminal.line(JSON.stringify(row));
    return EXIT.ok;
  }
  if (rows.length === 0) terminal.line("no events");
  for (const line of table(rows)) terminal.line(line);
  return EXIT.ok;
}

function readStatus(value: string | boolean | undefined): (typeof STATUSES)[number] | undefined {
  if (value === undefined) return undefined;
  const status = STATUSES.find((name) => name === value);
  if (!status) throw new UsageError(`--status is one of ${STATUSES.join(", ")}, not ${JSON.stringify(value)}`);
  return status;
}

function readLimit(value: string | boolean | undefined): number {
  if (value === undefined) return LIMIT_DEFAULT;
  const limit = Number(value);
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new UsageError(`--limit is a whole number from 1 to ${LIMIT_MAX}, not ${JSON.stringify(value)}`);
}

function table(rows: readonly Row[]): string[] {
  if (rows.length === 0) return [];
  const head = ["id", "status", "attempts", "created", "topic", "source", ""];
  const body = rows.map((row) => [
    String(row.id),
    row.status,
    String(row.attempts),
    new Date(row.createdAtMs).toISOString(),
    row.topic,
    row.source,
    row.error ?? row.unreadable ?? "",
  ]);
  const widths = head.map((_, i) => Math.max(...[head, ...body].map((cells) => cells[i]!.length)));
  return [head, ...body].map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join("  ")
      .trimEnd(),
  );
}
