/** `millrace ls events`: the newest rows of the journal, from the file. `millrace ls types`: what the running kernel can be asked. */
import { systemHost } from "../host/system-host.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { connect } from "./connection.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { type Row, table, timeOf, troubleOf } from "./journal-lines.ts";
import { EXIT, type ExitCode, readNumber, UsageError, type Verb, type VerbCall } from "./verb.ts";

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
const STATUSES = ["pending", "processing", "done", "failed"] as const;

export const ls: Verb = {
  name: "ls",
  usage: "events|types [--status S] [--topic T] [--limit N] [--json]",
  summary: "list the newest events of the journal, or the types that the running kernel takes",
  example: "millrace ls events --status failed --limit 5\nmillrace ls types",
  options: {
    json: { type: "boolean" },
    status: { type: "string" },
    topic: { type: "string" },
    limit: { type: "string" },
  },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const [what] = call.words;
  if (what === "types") return listTypes(call);
  if (what === "events") return listEvents(call);
  throw new UsageError('only events and types can be listed so far: "millrace ls events"');
}

// Events ---------------------------------------------------------------------------------------------------------------------

async function listEvents({ options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const { topic } = options;
  const status = readStatus(options["status"]);
  const query = {
    limit: readNumber("limit", options["limit"], { min: 1, max: LIMIT_MAX }) ?? LIMIT_DEFAULT,
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
  else for (const line of table([HEAD, ...rows.map(cellsOf)])) terminal.line(line);
  return EXIT.ok;
}

function readStatus(value: string | boolean | undefined): (typeof STATUSES)[number] | undefined {
  if (value === undefined) return undefined;
  const status = STATUSES.find((name) => name === value);
  if (!status) throw new UsageError(`--status is one of ${STATUSES.join(", ")}, not ${JSON.stringify(value)}`);
  return status;
}

const HEAD = ["id", "status", "attempts", "created", "kind", "topic", "source", ""];

function cellsOf(row: Row): string[] {
  const kind = row.message?.kind ?? "?";
  return [String(row.id), row.status, String(row.attempts), timeOf(row), kind, row.topic, row.source, troubleOf(row)];
}

// Types ----------------------------------------------------------------------------------------------------------------------

/** What `Syscall.Describe` answers. */
interface Described {
  readonly types: readonly {
    readonly type: string;
    readonly kind: string;
    readonly capability: string;
    readonly description: string;
  }[];
}

async function listTypes(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  await using client = await connect(call);
  const { types } = (await client.query("Syscall.Describe", null)) as never as Described;
  const sorted = [...types].sort((a, b) => (a.type < b.type ? -1 : 1));
  if (options["json"]) for (const type of sorted) terminal.line(JSON.stringify(type));
  else {
    const cells = sorted.map(({ type, kind, capability, description }) => [type, kind, capability, description]);
    for (const line of table([["type", "kind", "capability", ""], ...cells])) terminal.line(line);
  }
  return EXIT.ok;
}
