/**
 * The changes made by the handlings of a conversation, and the nodes that ran because of them. Changes come from the
 * store file; earlier values and runs from the running kernel, if it still has the commits.
 */
import { commitsOf, isReceiptName, type StoryCommit } from "../kernel/commit-story.ts";
import type { KernelStore } from "../kernel/open-store.ts";
import { cut, type TracedChange, type TracedCommit, type TracedRun } from "../kernel/run-log.ts";
import { RUNS_ASKED_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { placeText } from "../message/path.ts";
import { connectIfRunning } from "./connection.ts";
import type { JournalLine } from "./journal-lines.ts";
import { spacesOf } from "./spaces.ts";
import type { VerbCall } from "./verb.ts";

export type EffectRun = TracedRun;

export interface EffectChange {
  /** `tasks/list /a/title` */
  readonly address: string;
  /** Whole values, up to 4 kB each. Absent if there was no value or `isBeforeKnown` is false. */
  readonly before?: Json;
  /** Absent if the value was removed. */
  readonly after?: Json;
  /** False if only the file has the change. */
  readonly isBeforeKnown: boolean;
  /** For a list with replaced elements: the index, the number removed, and the new ones. */
  readonly splice?: { readonly index: number; readonly remove: number; readonly insert: readonly Json[] };
}

export interface CommitEffects {
  readonly changes: readonly EffectChange[];
  readonly runs: readonly EffectRun[];
  /** The change feed no longer reaches back to it. */
  readonly compacted: boolean;
}

/** By the id of the handled row. Rows whose handling left no receipt are missing. */
export async function commitEffectsOf(
  call: VerbCall,
  store: KernelStore,
  rows: readonly JournalLine[],
  subscribersOf: (row: JournalLine) => readonly string[],
): Promise<ReadonlyMap<number, CommitEffects>> {
  const stories = new Map<number, readonly StoryCommit[]>();
  const spaces = await spacesOf(call);
  for (const row of rows) {
    const { id, message } = row;
    if (!message) continue;
    const commits = await commitsOf(store, message, subscribersOf(row), spaces);
    if (commits.length > 0) stories.set(id, commits);
  }
  const traced = await tracedCommits(call, [...stories.values()].flat());
  return new Map(
    [...stories].map(([id, commits]) => {
      const known = commits.flatMap((commit) => traced.get(identity(commit)) ?? []);
      const changes = known.length === commits.length ? known.flatMap(knownChanges) : commits.flatMap(patchedChanges);
      const compacted = changes.length === 0 && commits.some((commit) => commit.compacted);
      return [id, { changes, runs: known.flatMap(({ runs }) => runs), compacted }];
    }),
  );
}

async function tracedCommits(call: VerbCall, commits: readonly StoryCommit[]): Promise<Map<string, TracedCommit>> {
  const client = commits.length === 0 ? undefined : await connectIfRunning(call);
  const traced = new Map<string, TracedCommit>();
  if (!client) return traced;
  await using _ = client;
  for (let from = 0; from < commits.length; from += RUNS_ASKED_MAX) {
    const asked = commits
      .slice(from, from + RUNS_ASKED_MAX)
      .map(({ session, localSequence }) => ({ session, localSequence }));
    const answer = (await client.query("Kernel.Runs", { commits: asked })) as never as { commits: TracedCommit[] };
    for (const commit of answer.commits) traced.set(identity(commit), commit);
  }
  return traced;
}

function identity({ session, localSequence }: { session: string; localSequence: number }): string {
  return `${session} ${localSequence}`;
}

function knownChanges({ changes }: TracedCommit): EffectChange[] {
  return changes
    .filter(({ document }) => !isReceiptName(document))
    .map(({ document, path, before, after }: TracedChange) => ({
      ...{ address: placeText(document, path), isBeforeKnown: true },
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    }));
}

function patchedChanges({ patches }: StoryCommit): EffectChange[] {
  return patches.flatMap(({ scope, id, operations }) => {
    const document = scope === "space" ? id : `${scope}:${id}`;
    return operations.map((operation): EffectChange => {
      const place = { address: placeText(document, operation.path), isBeforeKnown: false };
      if (operation.op === "delete") return place;
      if (operation.op === "set") return { ...place, after: cut(operation.value) };
      const { index, remove, insert } = operation;
      return { ...place, splice: { index, remove, insert: insert.map(cut) } };
    });
  });
}

/** A change for people; long values are cut. */
export function changeText({ before, after, isBeforeKnown, splice }: EffectChange): string {
  if (splice) return `${splice.remove} removed and ${splice.insert.length} put in at ${splice.index}`;
  const to = after === undefined ? "gone" : valueText(after);
  return isBeforeKnown ? `${before === undefined ? "nothing" : valueText(before)} -> ${to}` : to;
}

/** Characters of a value on a line. */
const VALUE_CHARACTERS_MAX = 60;

function valueText(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX)}…`;
}
