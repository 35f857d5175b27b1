/**
 * `millrace trace <id>`: what a message set off, as trees: messages from the journal, what each transactional handling changed from the
 * change feed, and the nodes that ran because of it from the running kernel, as far back as it remembers. The id is a message's, or a
 * correlation. Queries, and commands to plain handlers, leave no row in the journal: what they caused begins a tree of its own. SPEC: K18.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { concerns } from "../kernel/run-log.ts";
import { type Branch, CONVERSATION_ROWS_MAX, conversation, treesOf } from "./conversation.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { type Deed, type DeedRun, deedsOf } from "./deeds.ts";
import { timeOf, troubleOf } from "./journal-lines.ts";
import { Listeners } from "./listeners.ts";
import type { Terminal } from "./terminal.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const trace: Verb = {
  name: "trace",
  usage: "<id> [--json]",
  summary:
    "show what a message set off, by its id, its number in the journal or its correlation: messages, changes, runs",
  example: "millrace trace 019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b\nmillrace trace 12",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, environment, terminal } = call;
  const [id] = words;
  if (id === undefined)
    throw new UsageError('name a message id or a correlation; a number that "millrace ls events" shows will do');
  await using store = await openStoreForReading(systemHost(), existingDatabaseFile(undefined, environment));
  const rows = await conversation(store, await messageIdOf(store, id));
  const trees = treesOf(rows);
  const [first] = trees;
  if (!first) {
    terminal.complain(`nothing in the journal has the id ${id}, is caused by it, or correlates with it`);
    return EXIT.failed;
  }
  const listeners = await Listeners.of(call);
  const deeds = await deedsOf(call, store, rows, (row) => listeners.subscribers(row));
  for (const tree of trees) {
    if (options["json"]) terminal.line(JSON.stringify(withDeeds(tree, deeds)));
    else print(lineOf(tree, { first, deeds, listeners, terminal }), terminal.line);
  }
  if (rows.length >= CONVERSATION_ROWS_MAX)
    terminal.complain(`it has more than ${CONVERSATION_ROWS_MAX} rows; these are the first`);
  return EXIT.ok;
}

/** A number is a row of the journal, as `ls events` shows it. */
async function messageIdOf(store: KernelStore, id: string): Promise<string> {
  const [row] = /^\d{1,15}$/.test(id) ? await store.query({ id: Number(id), limit: 1 }) : [];
  return row?.message?.metadata.id ?? id;
}

interface JsonBranch extends Branch {
  readonly deed?: Deed;
  readonly children: JsonBranch[];
}

function withDeeds({ row, children }: Branch, deeds: ReadonlyMap<number, Deed>): JsonBranch {
  const deed = deeds.get(row.id);
  return { row, ...(deed ? { deed } : {}), children: children.map((child) => withDeeds(child, deeds)) };
}

// As a tree of lines ---------------------------------------------------------------------------------------------------------

interface Line {
  readonly text: string;
  readonly below: readonly Line[];
}

/** What a line is made from, besides its row. */
interface Telling {
  readonly first: Branch;
  readonly deeds: ReadonlyMap<number, Deed>;
  readonly listeners: Listeners;
  readonly terminal: Terminal;
}

function lineOf(branch: Branch, telling: Telling): Line {
  const { first, deeds, listeners, terminal } = telling;
  const { row, children } = branch;
  const { kind = "?", type = row.topic } = row.message ?? {};
  const when = branch === first ? timeOf(row) : `+${row.createdAtMs - first.row.createdAtMs} ms`;
  const trouble = troubleOf(row);
  const heardBy = kind === "event" ? listeners.names(row) : [];
  const cells = [`${kind} ${type}`, row.status, row.source, when];
  if (heardBy.length > 0) cells.push(`-> ${heardBy.join(", ")}`);
  if (trouble !== "") cells.push(terminal.bad(trouble));
  const deed = deeds.get(row.id);
  return {
    text: cells.join("   "),
    below: [
      ...row.deliveries.map(({ subscriber, status, attempts, error = "" }) => ({
        text: `${subscriber}   ${status}   ${attempts === 1 ? "" : `${attempts} attempts   `}${terminal.bad(error)}`.trimEnd(),
        below: [],
      })),
      ...(deed ? deedLines(deed, terminal) : []),
      ...children.map((child) => lineOf(child, telling)),
    ],
  };
}

/** Each change with the runs that it caused beneath it; a run that another run caused beneath that one. */
function deedLines({ changes, runs, compacted }: Deed, terminal: Terminal): Line[] {
  const shown = new Set<DeedRun>();
  const runsOf = (address: string): Line[] =>
    runs.flatMap((run) => {
      if (shown.has(run) || !run.because.some((cause) => concerns(cause, address))) return [];
      shown.add(run);
      const what = run.kind === "ran" ? "ran" : `${run.kind} ${run.detail ?? ""}`.trimEnd();
      const text = `${run.node}   ${what}   ${terminal.faint(`because ${run.because.join(", ")}`)}`;
      return [{ text, below: runsOf(run.node) }];
    });
  const lines = changes.map(({ address, from, to }) => {
    const value = from === undefined ? to : `${from} -> ${to}`;
    return { text: `${address}   ${value}`, below: runsOf(address) };
  });
  if (compacted) return [{ text: "what it changed is no longer in the change feed", below: [] }];
  return lines;
}

function print({ text, below }: Line, line: (text: string) => void, margin = "", mark = ""): void {
  line(margin + mark + text);
  const inner = margin + (mark === "" ? "" : mark === "└─ " ? "   " : "│  ");
  for (const [i, child] of below.entries()) print(child, line, inner, i === below.length - 1 ? "└─ " : "├─ ");
}
