/**
 * `millrace trace <id>`: the consequences of a message as a tree (`story.ts`): messages with durations, the changes of
 * each transactional handling from the change feed, and the nodes that ran because of them from the running kernel. The
 * id is a message's, or a correlation. SPEC: K18, K71-K73.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { concerns } from "../kernel/run-log.ts";
import {
  type CommitEffects,
  changeText,
  commitEffectsOf,
  type EffectChange,
  type EffectRun,
} from "./commit-effects.ts";
import { CONVERSATION_ROWS_MAX } from "./conversation.ts";
import { existingStore } from "./database-file.ts";
import { type JournalLine, troubleOf } from "./journal-lines.ts";
import { Listeners } from "./listeners.ts";
import { isCut, type StoryItem, type StoryTree, storyOf } from "./story.ts";
import type { Terminal } from "./terminal.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const trace: Verb = {
  name: "trace",
  usage: "<id> [--json]",
  summary:
    "show the consequences of a message, by its id, its number in the journal or its correlation: messages, changes, runs",
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
  await using store = await openStoreForReading(systemHost(), existingStore(undefined, environment));
  const story = await storyOf(call, store, await messageIdOf(store, id));
  const { rows, trees } = story;
  const [first] = trees;
  if (!first) {
    terminal.complain(
      `there is no message ${id}, and none with it as cause or correlation; "millrace ls events" lists the journal`,
    );
    return EXIT.failed;
  }
  const listeners = await Listeners.of(call);
  const deeds = await commitEffectsOf(call, store, rows, (row) => listeners.subscribers(row));
  for (const tree of trees) {
    if (options["json"]) terminal.line(JSON.stringify(withDeeds(tree, deeds)));
    else print(lineOf(tree, { first, deeds, listeners, terminal }), terminal.line);
  }
  if (isCut(story)) terminal.complain(`it has more than ${CONVERSATION_ROWS_MAX} rows; these are the first`);
  return EXIT.ok;
}

/** A number is a journal row, as shown by `ls events`. */
async function messageIdOf(store: KernelStore, id: string): Promise<string> {
  const [row] = /^\d{1,15}$/.test(id) ? await store.query({ id: Number(id), limit: 1 }) : [];
  return row?.message?.metadata.id ?? id;
}

/** A message in JSON: its row, or its id if it left none; the handlings; the changes and runs. */
interface JsonBranch {
  readonly id: string;
  readonly row?: JournalLine;
  readonly handlings: StoryItem["handlings"];
  readonly deed?: CommitEffects;
  readonly children: readonly JsonBranch[];
}

function withDeeds({ row: item, children }: StoryTree, deeds: ReadonlyMap<number, CommitEffects>): JsonBranch {
  const { row, handlings, message } = item;
  const deed = row && deeds.get(row.id);
  return {
    id: message.metadata.id,
    ...(row ? { row } : {}),
    handlings,
    ...(deed ? { deed } : {}),
    children: children.map((child) => withDeeds(child, deeds)),
  };
}

// As a tree of lines -------------------------------------------------------------------------------------------------

interface Line {
  readonly text: string;
  readonly below: readonly Line[];
}

/** Context for the parts of a line. */
interface Telling {
  readonly first: StoryTree;
  readonly deeds: ReadonlyMap<number, CommitEffects>;
  readonly listeners: Listeners;
  readonly terminal: Terminal;
}

function lineOf(tree: StoryTree, telling: Telling): Line {
  const { row: item, children } = tree;
  const { row } = item;
  const below = children.map((child) => lineOf(child, telling));
  if (!row) return { text: ghostText(item, telling), below };
  const { deeds, terminal } = telling;
  const deed = deeds.get(row.id);
  return {
    text: rowText(item, row, telling),
    below: [
      ...row.deliveries.map(({ subscriber, status, attempts, error = "" }) => ({
        text: `${subscriber}   ${status}   ${attempts === 1 ? "" : `${attempts} attempts   `}${terminal.bad(error)}`.trimEnd(),
        below: [],
      })),
      ...(deed ? deedLines(deed, terminal) : []),
      ...below,
    ],
  };
}

function rowText(item: StoryItem, row: JournalLine, telling: Telling): string {
  const { listeners, terminal } = telling;
  const { kind = "?", type = row.topic } = row.message ?? {};
  const cells = [`${kind} ${type}`, row.status, row.source, whenText(item, telling)];
  if (kind === "event") {
    const heardBy = listeners.names(row).map((name) => `${name}${tookOf(item, name)}`);
    if (heardBy.length > 0) cells.push(`-> ${heardBy.join(", ")}`);
  } else cells.push(durationText(item, row));
  cells.push(terminal.bad(troubleOf(row)));
  return cells.filter((cell) => cell !== "").join("   ");
}

/** A message without a row: in the kernel's memory, or known only as a cause. */
function ghostText(item: StoryItem, telling: Telling): string {
  const [handling] = item.handlings;
  if (!handling) return `message (left no row)   ${item.message.metadata.id}`;
  const { kind, type, handler, outcome = "is being handled", tookMs } = handling;
  const cells = [`${kind} ${type}`, outcome, handler, whenText(item, telling), tookText(tookMs)];
  return cells.filter((cell) => cell !== "").join("   ");
}

function whenText(item: StoryItem, { first }: Telling): string {
  if (item === first.row) return new Date(item.row?.createdAtMs ?? item.atMs).toISOString();
  const start = first.row.row?.createdAtMs ?? first.row.atMs;
  return `+${Math.max(0, (item.row?.createdAtMs ?? item.atMs) - start)} ms`;
}

/** From the kernel's memory; else from the coarse times of the row. */
function durationText({ handlings }: StoryItem, { status, createdAtMs, processedAtMs }: JournalLine): string {
  const took = handlings.at(-1)?.tookMs;
  if (took !== undefined) return tookText(took);
  if (status !== "done" || processedAtMs === undefined || processedAtMs <= createdAtMs) return "";
  return `took about ${processedAtMs - createdAtMs} ms`;
}

function tookOf({ handlings }: StoryItem, name: string): string {
  const took = handlings.findLast(({ handler }) => handler === name)?.tookMs;
  return took === undefined ? "" : ` (${took.toFixed(1)} ms)`;
}

function tookText(tookMs: number | undefined): string {
  return tookMs === undefined ? "" : `took ${tookMs.toFixed(1)} ms`;
}

/** Each change with the runs it caused below it; a run caused by another run is below that one. */
function deedLines({ changes, runs, compacted }: CommitEffects, terminal: Terminal): Line[] {
  const shown = new Set<EffectRun>();
  const runsOf = (address: string): Line[] =>
    runs.flatMap((run) => {
      if (shown.has(run) || !run.because.some((cause) => concerns(cause, address))) return [];
      shown.add(run);
      const what = run.kind === "ran" ? "ran" : `${run.kind} ${run.detail ?? ""}`.trimEnd();
      const text = `${run.node}   ${what}   ${terminal.faint(`because ${run.because.join(", ")}`)}`;
      return [{ text, below: runsOf(run.node) }];
    });
  const kept = collectionsKept(changes);
  const lines = changes.flatMap((change): Line[] => {
    const inner = kept.get(change);
    if (inner === undefined)
      return [{ text: `${change.address}   ${changeText(change)}`, below: runsOf(change.address) }];
    if (inner.at(-1) !== change) return [];
    const { address } = change;
    const places = inner.length === 1 ? "1 place" : `${inner.length} places`;
    const below = inner.flatMap((one) => runsOf(one.address));
    return [{ text: `${collectionOf(address)}   ${places} of its indexes and totals`, below }];
  });
  if (compacted) return [{ text: "its changes are no longer in the change feed", below: [] }];
  return lines;
}

/** `tasks/index/by_status/root /…`, `tasks/totals/…`: documents that a collection keeps beside its elements. */
const KEPT = /^(.+?)\/(?:index\/(?:[\w-]+\/)?(?:root|leaf-|inner-)|totals(?:[/ ]|$))/;

function collectionOf(address: string): string | undefined {
  return KEPT.exec(address)?.[1];
}

/**
 * Changes of indexes and totals, each with all of its collection. Only beside a change of an element: other cells may
 * have such names.
 */
function collectionsKept(changes: readonly EffectChange[]): ReadonlyMap<EffectChange, readonly EffectChange[]> {
  const byCollection = Map.groupBy(changes, ({ address }) => collectionOf(address));
  const kept = new Map<EffectChange, readonly EffectChange[]>();
  for (const [collection, inner] of byCollection) {
    if (collection === undefined || !changes.some(({ address }) => address.startsWith(`${collection}/at/`))) continue;
    for (const change of inner) kept.set(change, inner);
  }
  return kept;
}

function print({ text, below }: Line, line: (text: string) => void, margin = "", mark = ""): void {
  line(margin + mark + text);
  const inner = margin + (mark === "" ? "" : mark === "└─ " ? "   " : "│  ");
  for (const [i, child] of below.entries()) print(child, line, inner, i === below.length - 1 ? "└─ " : "├─ ");
}
