import { existsSync, statSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { systemHost } from "../../../src/host/system-host.ts";
import type { Json } from "../../../src/message/json.ts";
import type { CommitOutcome } from "../../../src/store/commit.ts";
import {
  append,
  commitBy,
  currentValue,
  entries,
  entry,
  read,
  ref,
  SPACE,
  set,
  write,
} from "../conformance/requests.ts";
import { ControlledHost } from "../controlled-host.ts";
import { HeldTimers } from "../held-timers.ts";
import { StoreFile } from "./store-file.ts";

/** Time that passes only when it is said so. */
class SteppedTime extends ControlledHost {
  ms = 0;

  override monotonic(): number {
    return this.ms;
  }
}

/** A batch ends with its queue, regardless of other load on the machine. */
const WHOLE_BATCHES = { tuning: { batchMs: 600_000 } };

describe("group commit", () => {
  test("[S89] 64 callers at once share a few commits and statements", async () => {
    await using file = new StoreFile();
    const store = await file.open(WHOLE_BATCHES);
    await append(store, entry());
    const before = store.stats();
    const rounds = 10;
    const caller = async () => {
      for (let round = 0; round < rounds; round++) await append(store, entry());
    };
    await Promise.all(Array.from({ length: 64 }, caller));
    const after = store.stats();
    expect(after.jobs - before.jobs).toBe(64 * rounds);
    // One each round.
    expect(after.batches - before.batches).toBeLessThanOrEqual(rounds + 1);
    expect(after.statements - before.statements).toBeLessThan(64 * rounds * 1.5);
  });

  test("[S190] a caller that was answered alone and asks again in that turn is served in it, for a limited time", async () => {
    await using file = new StoreFile();
    const host = new SteppedTime();
    const store = await file.open({ host });
    const tasksDuring = async (work: () => Promise<unknown>) => {
      let tasks = 0;
      host.task(() => tasks++);
      await work();
      return tasks;
    };
    const ask = () => append(store, entry());
    await ask();
    expect(await tasksDuring(ask)).toBe(0);
    expect(await tasksDuring(ask)).toBe(0);
    host.ms += 5;
    expect(await tasksDuring(ask)).toBeGreaterThan(0);
    expect(await tasksDuring(ask)).toBe(0);
    // Two callers: others may be on their way.
    await Promise.all([ask(), ask()]);
    expect(await tasksDuring(ask)).toBeGreaterThan(0);
    await host.yield();
    expect(await tasksDuring(ask)).toBeGreaterThan(0);
  });

  test("[S190] upkeep goes with the next job of a single caller", async () => {
    await using file = new StoreFile();
    const store = await file.open({ host: new SteppedTime() });
    await write(store, set("growing", [], {}));
    const before = store.stats().batches;
    for (let n = 0; n < 40; n++) {
      await write(store, set("growing", [`key ${n}`], "x".repeat(1_000)));
      // Eight promise jobs, as a distant caller makes them.
      for (let job = 0; job < 8; job++) await undefined;
    }
    expect(file.database().prepare("SELECT count(*) AS n FROM snapshot").get()).toEqual({ n: 1 });
    expect(store.stats().batches - before).toBe(40);
  });

  test("[S89] a thousand rows in one call are one commit and one statement each", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const before = store.stats();
    expect((await append(store, ...entries(1_000))).length).toBe(1_000);
    const after = store.stats();
    expect(after.batches - before.batches).toBe(1);
    expect(after.statements - before.statements).toBeLessThan(1_020);
  });

  test("[S89] a batch is limited in jobs and in bytes", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { batchJobsMax: 10, batchBytesMax: 1_000 } });
    await Promise.all(Array.from({ length: 100 }, () => append(store, entry())));
    expect(store.stats().batches).toBeGreaterThanOrEqual(10);
    const before = store.stats().batches;
    await Promise.all(Array.from({ length: 20 }, () => append(store, entry({ data: "x".repeat(600) }))));
    expect(store.stats().batches - before).toBeGreaterThanOrEqual(10);
  });

  test("[S191] a settlement that can wait goes with the next write, or soon alone, and before the store closes", async () => {
    await using file = new StoreFile();
    const host = new HeldTimers();
    const store = await file.open({ host });
    const { lease } = await store.openLease(60_000);
    const as = { status: "claimed", lease } as const;
    const [first, second, third] = await append(store, entry({}, as), entry({}, as), entry({}, as));
    const settled: number[] = [];
    const settleSoon = (id = 0) => {
      const settlement = { id, lease, attempt: 1, outcome: { kind: "done" } } as const;
      void store.settle([settlement], "soon").then(() => settled.push(id));
    };
    const { batches } = store.stats();
    settleSoon(first);
    await host.tasks();
    expect([store.stats().batches - batches, settled]).toEqual([0, []]);
    await append(store, entry());
    expect([store.stats().batches - batches, settled]).toEqual([1, [first]]);
    settleSoon(second);
    host.fire();
    await host.tasks();
    expect([store.stats().batches - batches, settled]).toEqual([2, [first, second]]);
    settleSoon(third);
    await store.close();
    expect(settled).toEqual([first, second, third]);
  });

  test("[S90] a write that throws fails alone", async () => {
    await using file = new StoreFile();
    const store = await file.open(WHOLE_BATCHES);
    await write(store, set("damaged", [], 1));
    await write(store, set("damaged", [], 2));
    file.database().exec("UPDATE change SET commits = replace(commits, '2', '3') WHERE first = 2");
    const commit = (n: number, parts = {}): Promise<CommitOutcome> =>
      store.commit(
        commitBy(`session ${n}`, 1, { patches: [set(`document ${n}`, [], n)], entries: [entry()], ...parts }),
      );
    const before = store.stats().batches;
    const results = await Promise.allSettled([
      commit(1),
      // Whether its read has moved cannot be told from the damaged patch.
      commit(2, { reads: [read("damaged", [], 1)] }),
      commit(3),
      append(store, entry()),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(results[1]).toMatchObject({ reason: { code: "STORE_CORRUPT" } });
    // The batch up to the guilty one, and the rest.
    expect(store.stats().batches - before).toBe(2);
    expect(await currentValue(store, "document 1")).toBe(1);
    expect(await currentValue(store, "document 2")).toBeUndefined();
    expect(await currentValue(store, "document 3")).toBe(3);
    expect((await store.query({ limit: 10 })).map(({ id }) => id)).toEqual([1, 2, 3]);
    await append(store, entry());
    expect((await store.verify()).rows).toBe(4);
  });

  test("[S90] a write that throws half-way leaves no trace", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await write(store, set("victim", [], {}));
    // A timer's row cannot be replaced: the second commit of the batch throws when it has written all but that.
    file.database().exec("CREATE TRIGGER stubborn BEFORE INSERT ON due BEGIN SELECT RAISE(ABORT, 'not this one'); END");
    const commit = (n: number, parts = {}): Promise<CommitOutcome> => {
      const preconditions = [{ kind: "absent", ...ref(`document ${n}`) } as const];
      const patches = [set(`document ${n}`, [], n), set("victim", [`commit ${n}`], n)];
      const entries = [entry({ id: `message ${n}` })];
      return store.commit(commitBy(`session ${n}`, 1, { preconditions, patches, entries, ...parts }));
    };
    const due = [{ op: "put", kind: "timer", key: "k", dueAtMs: 1, data: null }];
    const results = await Promise.allSettled([commit(1), commit(2, { due }), commit(3)]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const rows = await store.query({ limit: 10 });
    expect(rows.map(({ id, message }) => [id, message?.metadata.id])).toEqual([
      [1, "message 1"],
      [2, "message 3"],
    ]);
    expect((await store.load(SPACE, [ref("document 3")])).documents[0]).toMatchObject({ value: 3, sequence: 3 });
    expect(await currentValue(store, "document 2")).toBeUndefined();
    expect(await currentValue(store, "victim")).toEqual({ "commit 1": 1, "commit 3": 3 });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  test("[S91] changing one key of ten thousand costs only that key", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { checkpointPages: 1_000_000 } });
    const big = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`key ${n}`, `value ${n}`]));
    await write(store, set("big", [], big));
    const logBytes = () => statSync(`${file.path}-wal`).size;
    const before = { written: store.stats().bytesWritten, log: logBytes() };
    const changes = 20;
    for (let n = 0; n < changes; n++) await write(store, set("big", [`key ${n}`], "changed"));
    expect((store.stats().bytesWritten - before.written) / changes).toBeLessThan(100);
    // A handful of pages of 4 KiB each, where the document has some 300 KiB.
    expect((logBytes() - before.log) / changes).toBeLessThan(50_000);
    expect(await currentValue(store, "big")).toMatchObject({
      "key 0": "changed",
      "key 19": "changed",
      "key 20": "value 20",
    });
  });

  test("[S93] while another process holds the lock, reads continue and writes wait", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { lockWaitMs: 600_000 } });
    await write(store, set("a", [], 1));
    const other = file.database();
    other.exec("BEGIN IMMEDIATE");
    let isWritten = false;
    const waiting = write(store, set("a", [], 2)).then(() => {
      isWritten = true;
    });
    // The note that asks for a turn shows that the lock was refused, more than once.
    while (!existsSync(`${file.path}-turn`)) await systemHost().yield();
    expect(await currentValue(store, "a")).toBe(1);
    expect(isWritten).toBe(false);
    other.exec("COMMIT");
    await waiting;
    expect(await currentValue(store, "a")).toBe(2);
    expect(existsSync(`${file.path}-turn`)).toBe(false);
  });

  test("[S93] a lock that is not free in time fails only the writes that waited", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { lockWaitMs: 20 } });
    const other = file.database();
    other.exec("BEGIN IMMEDIATE");
    const commit = store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] }));
    const lease = store.openLease(1_000);
    expect(await commit).toMatchObject({ kind: "rejected", class: "failed", reason: "store-busy" });
    await expect(lease).rejects.toMatchObject({ code: "STORE_BUSY" });
    other.exec("COMMIT");
    // The same commit again: the first one left no row.
    const again = await store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] }));
    expect(again).toMatchObject({ kind: "committed", replayed: false });
  });

  test("[S94] a full queue refuses, and accepts again when it is empty", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { queueJobsMax: 5 } });
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.append([entry()])));
    expect(outcomes.map((outcome) => (outcome.kind === "rejected" ? outcome.reason : outcome.kind))).toEqual([
      ...Array<string>(5).fill("appended"),
      ...Array<string>(3).fill("store-busy"),
    ]);
    expect((await append(store, entry())).length).toBe(1);
  });

  test("[S94] the queue also counts bytes, but accepts one larger write alone", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { queueBytesMax: 1_000 } });
    const large: Json = "x".repeat(5_000);
    const outcomes = await Promise.all([
      store.append([entry({ data: large })]),
      store.append([entry({ data: large })]),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["appended", "rejected"]);
  });

  test("[S94] [S167] a listener of a refused commit is called after the call, and one that throws does not affect others", async () => {
    await using file = new StoreFile();
    const host = new ControlledHost();
    const store = await file.open({ host, tuning: { queueJobsMax: 2 } });
    const heard: string[] = [];
    const trouble = new Error("of the listener");
    const answers = Array.from({ length: 3 }, (_, n) =>
      store.commit(commitBy("s", n + 1), (answer) => {
        heard.push(answer instanceof Error ? answer.message : answer.kind);
        if (n === 0) throw trouble;
      }),
    );
    expect(answers).toEqual([undefined, undefined, undefined]);
    expect(heard).toEqual([]);
    await Promise.resolve();
    expect(heard).toEqual(["rejected"]);
    await store.close();
    expect(heard).toEqual(["rejected", "committed", "committed"]);
    expect(host.reported).toEqual([trouble]);
  });

  test("[S25] close writes the queued jobs", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    const queued = Array.from({ length: 200 }, (_, n) => write(store, set(`d${n}`, [], n)));
    await store.close();
    await Promise.all(queued);
    const { sequence } = await (await file.open()).load(SPACE, []);
    expect(sequence).toBe(200);
  });
});
