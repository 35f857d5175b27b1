/**
 * Real processes on a real file, killed with signal 9 at moments that a seed chooses from their output. The oracle is
 * this process: it knows the acknowledged events, and checks the file at the end.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EventBus } from "../../src/bus/event-bus.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { EVENT_DEATHS_MAX } from "../../src/limits.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { counted, type LongPart, Rounds, roundsMax, timeoutMs } from "../portable/long-run.ts";
import { BusProcess, scratchDirectory } from "./bus-processes.ts";
import type { Role } from "./bus-program.ts";

const PART: LongPart = { name: "kill -9 of a bus", short: 20, long: 1_000, minutes: 3 };
const KILLS_PER_FILE = 10;
const SEED = 20_260_214;

function nameOf({ message }: JournalRow): string {
  return (message!.data as { name: string }).name;
}

async function allRows(store: Store): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (let cursor = 0; ; ) {
    const page = await store.query({ cursor, limit: 1_000 });
    rows.push(...page);
    if (page.length < 1_000) return rows;
    cursor = page.at(-1)!.id;
  }
}

/** The rules of a file when all its processes are at rest. */
async function check(path: string, acknowledged: ReadonlyMap<string, number>): Promise<void> {
  await using store = await openSqliteStore({ path, host: systemHost() });
  const rows = await allRows(store);
  expect(rows.filter((row) => row.status !== "done").map((row) => `${row.id} ${row.status} ${row.error}`)).toEqual([]);
  const jobs = rows.filter((row) => row.topic === "job");
  const ids = new Map(jobs.map((job) => [nameOf(job), job.id]));
  expect(ids.size).toBe(jobs.length);
  const lost = [...acknowledged].filter(([name, id]) => ids.get(name) !== id);
  expect(lost).toEqual([]);
  const emitted = rows.filter((row) => row.topic === "job.done").map(nameOf);
  expect(emitted.toSorted()).toEqual([...ids.keys()].toSorted());
  const refs = [...ids.keys()].map((name) => ({ scope: SHARED_SCOPE, id: `effect:${name}` }));
  const { documents } = await store.load("home", refs);
  expect(documents.filter(({ value }) => value !== 1).map(({ id, value }) => `${id}: ${value}`)).toEqual([]);
  expect((await store.verify()).problems).toEqual([]);
}

describe("kill -9", () => {
  test(`[J81] up to ${roundsMax(PART)} killed publishers and dispatchers lose no acknowledged event; every effect happens once`, {
    timeout: timeoutMs(PART),
  }, async () => {
    const random = new SeededRandom(SEED);
    let total = 0;
    let repeated = 0;
    const budget = new Rounds(PART);
    let kills = 0;
    // And until a handler was interrupted: kills that interrupt none prove little, and when they do is chance.
    while (budget.goesOn(kills) || repeated === 0) {
      using directory = scratchDirectory();
      const path = join(directory.path, "bus.db");
      const acknowledged = new Map<string, number>();
      const calls: string[] = [];
      const end = async (one: BusProcess) => {
        await one.kill();
        for (const [name, id] of one.told("ack")) acknowledged.set(name!, Number(id));
        calls.push(...one.told("plain").map(([id]) => id!));
      };
      const start = (n: number, role: Role) => new BusProcess(path, `p${n}`, role);
      // One of the two always publishes, so that there is always work to count and to interrupt.
      let [publisher, other] = [start(kills, "publish"), start(kills + 1, "handle")];
      for (let here = 0; here < KILLS_PER_FILE; here++, kills++) {
        await Promise.all([publisher.hasTold("ready"), other.hasTold("ready")]);
        await publisher.hasTold("ack", 1 + random.below(80));
        if (random.below(3) === 0) {
          await end(other);
          other = start(kills + 2, random.below(2) === 0 ? "handle" : "publish");
        } else {
          await end(publisher);
          publisher = start(kills + 2, "publish");
        }
      }
      const living = [publisher, other];
      for (const one of living) await end(one);
      do {
        const last = new BusProcess(path, "last", "drain");
        await last.hasTold("idle");
        await last.ended;
        expect(last.exitCode).toBe(0);
        calls.push(...last.told("plain").map(([id]) => id!));
      } while ((await requeueSuspects(path)) > 0);
      repeated += calls.length - new Set(calls).size;
      total += acknowledged.size;
      await check(path, acknowledged);
    }
    counted(kills, "kills of a bus");
    expect(total).toBeGreaterThan(kills);
  });

  test("[J82] two processes share the work of one file without handling an event twice", async () => {
    using directory = scratchDirectory();
    const path = join(directory.path, "bus.db");
    const handlers = [new BusProcess(path, "one", "handle"), new BusProcess(path, "two", "handle")];
    for (const handler of handlers) await handler.hasTold("ready");
    /** So many at least, and so many at a time. */
    const EVENTS = 600;
    const names: string[] = [];
    {
      await using store = await openSqliteStore({ path, host: systemHost(), durability: "process" });
      const publisher = new EventBus({ store, host: systemHost() });
      const shares = () => handlers.map((handler) => handler.told("plain").length);
      // One that the machine gives no time to has no share yet.
      while (names.length < EVENTS || shares().includes(0)) {
        const more = Array.from({ length: 20 }, (_, i) => `t-${names.length + i}`);
        names.push(...more);
        await publisher.publishMany(more.map((name) => ({ topic: "job", source: "t", payload: { name } })));
        while (shares().reduce((sum, share) => sum + share) + EVENTS < names.length) await systemHost().yield();
      }
    }
    const last = new BusProcess(path, "last", "drain");
    await last.hasTold("idle");
    await last.ended;
    for (const handler of handlers) await handler.end();
    const calls = [...handlers, last].flatMap((one) => one.told("plain").map(([id]) => id!));
    expect(calls).toHaveLength(names.length);
    expect(new Set(calls).size).toBe(names.length);
    expect(handlers.map((handler) => handler.exitCode)).toEqual([0, 0]);
    await check(path, new Map(await idsByName(path, names)));
  });

  test("[J88] an event that kills its process is failed after five deaths, and the events around it are handled", async () => {
    using directory = scratchDirectory();
    const path = join(directory.path, "bus.db");
    const names = Array.from({ length: 20 }, (_, n) => `around-${n}`);
    const poison = await publishAround(path, names);
    let starts = 0;
    for (let last: BusProcess | undefined; last?.exitCode !== 0; starts++) {
      expect(starts).toBeLessThanOrEqual(EVENT_DEATHS_MAX);
      last = new BusProcess(path, `p${starts}`, "drain");
      await last.ended;
    }
    expect(starts).toBe(EVENT_DEATHS_MAX + 1);
    await using store = await openSqliteStore({ path, host: systemHost() });
    const { rows } = await new EventBus({ store, host: systemHost() }).failures();
    const error = `its process died ${EVENT_DEATHS_MAX} times while handling it`;
    expect(rows.map((row) => [row.id, row.error])).toEqual([[poison, error]]);
    const jobs = (await allRows(store)).filter(({ topic }) => topic === "job");
    expect(jobs.map((job) => [nameOf(job), job.status])).toEqual(names.map((name) => [name, "done"]));
  });
});

/** Jobs with a deadly event in their midst, with the same id each time. */
async function publishAround(path: string, names: readonly string[]): Promise<number> {
  await using store = await openSqliteStore({ path, host: systemHost() });
  const half = names.length / 2;
  const jobs = names.map((name) => ({ topic: "job", source: "test", payload: { name } }));
  const poison = { topic: "poison", source: "test", payload: {} };
  const bus = new EventBus({ store, host: systemHost() });
  const ids = await bus.publishMany([...jobs.slice(0, half), poison, ...jobs.slice(half)]);
  return ids[half]!;
}

/** The part of an operator for suspects: events that were held at each kill. Returns their number. */
async function requeueSuspects(path: string): Promise<number> {
  await using store = await openSqliteStore({ path, host: systemHost() });
  const bus = new EventBus({ store, host: systemHost() });
  const { rows } = await bus.failures();
  for (const { error } of rows) expect(error).toBe(`its process died ${EVENT_DEATHS_MAX} times while handling it`);
  if (rows.length > 0) await bus.requeue(rows.map(({ id }) => id));
  return rows.length;
}

async function idsByName(path: string, names: readonly string[]): Promise<[string, number][]> {
  await using store = await openSqliteStore({ path, host: systemHost() });
  const ids = new Map((await allRows(store)).filter((row) => row.topic === "job").map((row) => [nameOf(row), row.id]));
  return names.map((name) => [name, ids.get(name)!]);
}
