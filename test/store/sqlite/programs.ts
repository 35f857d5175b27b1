/** The programs of the second process. Each ends with its input, or when it is killed. */
import { createInterface } from "node:readline";
import type { Json } from "../../../src/message/json.ts";
import { openSqliteStore } from "../../../src/store/sqlite/index.ts";
import { type Store, StoreError } from "../../../src/store/store.ts";
import { append, entry, set, write } from "../conformance/requests.ts";
import { CHECKPOINT_PAGES, fill } from "./long-log.ts";
import { Repeater } from "./repeater.ts";

interface Settings {
  readonly path: string;
  readonly name: string;
  readonly rounds: number;
}

const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function say(line: Json | readonly number[]): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Says whether the file can be opened. */
async function open({ path }: Settings): Promise<void> {
  try {
    await (await openSqliteStore({ path })).close();
    say({ code: "none" });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    say({ code: error.code, message: error.message });
  }
}

/** Writes the given value, appends a row, and prints its id. */
async function writer({ path }: Settings): Promise<void> {
  const store = await openSqliteStore({ path });
  await write(store, set("note", [], {}));
  say("ready");
  for (let line = await orders.next(); !line.done; line = await orders.next()) {
    await write(store, set("note", ["text"], JSON.parse(line.value)));
    say(await append(store, entry({ id: crypto.randomUUID() })));
  }
}

/** Claims every row there is, says so, and then only waits to be killed. */
async function holder({ path }: Settings): Promise<void> {
  const store = await openSqliteStore({ path });
  const { lease } = await store.openLease(3_600_000);
  const claims = await store.claim({ lease, limit: 100, kinds: ["event"] });
  say(claims.map(({ row }) => row.id));
  await orders.next();
}

/**
 * Appends and claims, with several callers at once and as fast as it can, until another has come in between; says what
 * it got.
 */
async function worker(settings: Settings): Promise<void> {
  // The holder of the lock may be waiting for the machine.
  const store = await openSqliteStore({ path: settings.path, tuning: { lockWaitMs: 600_000 } });
  const { lease } = await store.openLease(3_600_000);
  say("ready");
  await orders.next();
  const appended: number[] = [];
  const claimed: number[] = [];
  const callers = Array.from({ length: 4 }, () => callerOf(store, lease, settings, appended, claimed));
  await Promise.all(callers);
  say({ appended, claimed });
  await store.close();
}

async function callerOf(
  store: Store,
  lease: number,
  settings: Settings,
  appended: number[],
  claimed: number[],
): Promise<void> {
  for (let round = 0; round < settings.rounds || isUnbroken(appended); round++) {
    appended.push(...(await append(store, entry({ id: `${settings.name} ${crypto.randomUUID()}` }))));
    const claims = await store.claim({ lease, limit: 3, kinds: ["event"] });
    for (const { row, attempt } of claims) {
      claimed.push(row.id);
      await store.settle([{ id: row.id, lease, attempt, outcome: { kind: "done" } }]);
    }
  }
}

/** Whether no other process has a row between these ids. */
function isUnbroken(ids: readonly number[]): boolean {
  return Math.max(...ids) - Math.min(...ids) < ids.length;
}

/**
 * Writes batch after batch on a store that copies its log early, without a rest; says when it is done, and stays until
 * it is killed.
 */
async function filler({ path, rounds }: Settings): Promise<void> {
  const store = await openSqliteStore({ path, tuning: { lockWaitMs: 600_000, checkpointPages: CHECKPOINT_PAGES } });
  say("ready");
  await orders.next();
  await fill(store, rounds);
  say("done");
  await orders.next();
}

/** Handles the events of another process too, and prints its results. */
async function repeater({ path, name, rounds }: Settings): Promise<void> {
  const repeater = await Repeater.open(path, name);
  say("ready");
  await orders.next();
  say((await repeater.run(rounds)) as never as Json);
}

const programs: { [name: string]: (settings: Settings) => Promise<void> } = {
  open,
  writer,
  holder,
  worker,
  filler,
  repeater,
};
const [, , name = "", settings = ""] = process.argv;
await programs[name]?.(JSON.parse(settings));
process.exit();
