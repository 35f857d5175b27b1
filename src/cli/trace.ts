/**
 * `millrace trace <id>`: what a message set off, as trees, from the journal. The id is a message's, or a correlation. Queries, and
 * commands to plain handlers, leave no row in the journal: what they caused begins a tree of its own. SPEC: K18.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { causationOf } from "../message/envelope.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { type Row, timeOf, troubleOf } from "./journal-lines.ts";
import { EXIT, type ExitCode, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** A conversation that is larger is cut, and says so. */
const ROWS_MAX = 1_000;

export const trace: Verb = {
  name: "trace",
  usage: "<id> [--json]",
  summary: "show what a message set off, by its id or its correlation",
  example: "millrace trace 019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b",
  options: { json: { type: "boolean" } },
  wordsMax: 1,
  run,
};

interface Branch {
  readonly row: Row;
  readonly children: Branch[];
}

async function run({ words, options, environment, terminal }: VerbCall): Promise<ExitCode> {
  const [id] = words;
  if (id === undefined)
    throw new UsageError('name a message id or a correlation; "millrace ls events --json" shows them');
  await using store = await openStoreForReading(systemHost(), existingDatabaseFile(undefined, environment));
  const rows = await conversation(store, id);
  const trees = treesOf(rows);
  const [first] = trees;
  if (!first) {
    terminal.complain(`nothing in the journal has the id ${id}, is caused by it, or correlates with it`);
    return EXIT.failed;
  }
  for (const tree of trees) {
    if (options["json"]) terminal.line(JSON.stringify(tree));
    else print(tree, first, terminal.line);
  }
  if (rows.length >= ROWS_MAX) terminal.complain(`it has more than ${ROWS_MAX} rows; these are the first`);
  return EXIT.ok;
}

/** All rows of the conversation that the id belongs to; without a correlation, what follows causation from its first cause on. */
async function conversation(store: KernelStore, id: string): Promise<readonly Row[]> {
  const [row] = await store.query({ messageId: id, limit: 1 });
  const correlated = await store.query({ correlation: row?.message?.metadata.correlation ?? id, limit: ROWS_MAX });
  if (correlated.length > 0) return correlated;
  const found = new Map<number, Row>();
  const starts = row ? [await firstCause(store, row)] : await store.query({ causation: id, limit: ROWS_MAX });
  for (const start of starts) await collect(store, start, found);
  return [...found.values()];
}

async function firstCause(store: KernelStore, row: Row): Promise<Row> {
  const seen = new Set<number>();
  for (let first = row; ; ) {
    seen.add(first.id);
    const causation = first.message && causationOf(first.message);
    const [cause] = causation === undefined ? [] : await store.query({ messageId: causation, limit: 1 });
    if (!cause || seen.has(cause.id)) return first;
    first = cause;
  }
}

async function collect(store: KernelStore, row: Row, found: Map<number, Row>): Promise<void> {
  if (found.has(row.id) || found.size >= ROWS_MAX) return;
  found.set(row.id, row);
  const causation = row.message?.metadata.id;
  if (causation === undefined) return;
  for (const caused of await store.query({ causation, limit: ROWS_MAX })) await collect(store, caused, found);
}

/** Rows under what caused them; what nothing here caused begins a tree. A command's row comes after what it has emitted. */
function treesOf(rows: readonly Row[]): Branch[] {
  const branches = new Map(
    rows.map((row) => [row.message?.metadata.id ?? `row ${row.id}`, { row, children: [] as Branch[] }]),
  );
  const roots: Branch[] = [];
  for (const branch of branches.values()) {
    const causation = branch.row.message && causationOf(branch.row.message);
    const parent = causation === undefined ? undefined : branches.get(causation);
    (parent?.children ?? roots).push(branch);
  }
  return roots.sort((a, b) => sentAt(a) - sentAt(b));
}

function sentAt({ row }: Branch): number {
  return row.message?.metadata.timestamp ?? row.createdAtMs;
}

function print(branch: Branch, first: Branch, line: (text: string) => void, margin = "", mark = ""): void {
  const { row, children } = branch;
  const { kind = "?", type = row.topic } = row.message ?? {};
  const when = branch === first ? timeOf(row) : `+${row.createdAtMs - first.row.createdAtMs} ms`;
  const trouble = troubleOf(row);
  const cells = [`${kind} ${type}`, row.status, row.source, when, ...(trouble === "" ? [] : [trouble])];
  line(margin + mark + cells.join("   "));
  const below = margin + (mark === "" ? "" : mark === "└─ " ? "   " : "│  ");
  for (const [i, child] of children.entries())
    print(child, first, line, below, i === children.length - 1 ? "└─ " : "├─ ");
}
