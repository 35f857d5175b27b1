/**
 * Does a long history slow the journal down? The same waves go by turns into an empty store and into one that holds a
 * million settled rows; the ratio of their times is the number. The rows are copies, made by SQL inside the file, of
 * one event that our own store wrote and settled.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Sample, Scale, Scene, Workload } from "../harness/benchmark.ts";
import { elapsedMs } from "../harness/timing.ts";
import { makeEntries, pieces } from "./events.ts";
import { BULK, claimAndSettle, LEASE_MS, pendingToDone, publishInBulk } from "./journal-runs.ts";
import { openMillrace } from "./millrace.ts";

const EVENTS: Readonly<Record<Scale, number>> = { quick: 5000, full: 20_000, long: 50_000 };
const ROWS_PER_STATEMENT = 100_000;
const PUBLISH = "publish, of empty";
const CLAIM = "claim → done, of empty";

type Step = () => Promise<unknown>;

export const fullJournalWorkloads: readonly Workload[] = [
  slowdown(100_000),
  slowdown(1_000_000, "full"),
  slowdown(10_000_000, "long"),
];

function slowdown(rows: number, from: Scale = "quick"): Workload {
  const target = { of: "itself", atMost: 1.2 } as const;
  return {
    group: "a long journal, durability power (FULL)",
    name: `beside ${rows.toLocaleString("en-US")} settled rows`,
    from,
    metrics: [
      { name: PUBLISH, better: "lower", target },
      { name: CLAIM, better: "lower", target },
    ],
    runs: { millrace: (scene) => compare(scene, rows) },
  };
}

async function compare({ scale, directory, shared }: Scene, rows: number): Promise<Sample> {
  const filled = await shared(`journal-${rows}`, (into) => fillJournal(into, rows));
  await using empty = await openMillrace(directory, "power");
  await using full = await openMillrace(filled, "power");
  const waves = pieces(makeEntries(EVENTS[scale]), BULK);
  const { lease: ofEmpty } = await empty.openLease(LEASE_MS);
  const { lease: ofFull } = await full.openLease(LEASE_MS);
  return {
    [PUBLISH]: await byTurns(
      waves.map((wave) => () => publishInBulk(empty, wave)),
      waves.map((wave) => () => publishInBulk(full, wave)),
    ),
    [CLAIM]: await byTurns(
      waves.map(() => () => claimAndSettle(empty, ofEmpty)),
      waves.map(() => () => claimAndSettle(full, ofFull)),
    ),
  };
}

/** The time of all steps on the full store divided by that on the empty one; a step here, a step there. */
async function byTurns(onEmpty: readonly Step[], onFull: readonly Step[]): Promise<number> {
  let [emptyMs, fullMs] = [0, 0];
  for (const [index, step] of onEmpty.entries()) {
    emptyMs += await elapsedMs(step);
    fullMs += await elapsedMs(onFull[index]!);
  }
  return fullMs / emptyMs;
}

export async function fillJournal(directory: string, rows: number): Promise<void> {
  const store = await openMillrace(directory, "process");
  const { lease } = await store.openLease(LEASE_MS);
  await pendingToDone(store, makeEntries(1), lease);
  await store.close();
  using database = new DatabaseSync(join(directory, "millrace.db"));
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA temp_store = MEMORY");
  const columns = database.prepare("SELECT name FROM pragma_table_info('event_journal')").all();
  const changed: Readonly<Record<string, string>> = {
    id: "counter.n",
    message_id: "printf('01980000-0000-7000-8000-%012x', counter.n)",
    correlation_id: "printf('request-%d', counter.n / 8)",
  };
  const names = columns.map((column) => String(column["name"]));
  const copy = database.prepare(
    "WITH RECURSIVE counter(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM counter LIMIT ?) " +
      `INSERT INTO event_journal (${names.join(", ")}) ` +
      `SELECT ${names.map((name) => changed[name] ?? `one.${name}`).join(", ")} FROM counter, event_journal AS one WHERE one.id = 1`,
  );
  for (let at = 1; at < rows; at += ROWS_PER_STATEMENT) copy.run(at + 1, Math.min(ROWS_PER_STATEMENT, rows - at));
}
