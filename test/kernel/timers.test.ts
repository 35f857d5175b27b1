/** Timers of a whole kernel: with its journal, its space and a real file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { TIMERS_FIRED_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";

const job = (data: Json) => ({ kind: "command", type: "Job.Run", data });

function request(type: string, id: string, data: Json): Message {
  return { kind: "command", type, data, metadata: { id, timestamp: 1 } };
}

describe("timers of a kernel", () => {
  test("[T18] a capability gets Timer.Fired before the timer's message", async () => {
    const host = simulatedHost(1);
    const heard: string[] = [];
    const kernel = await host.run(() =>
      Kernel.open({
        ...{ host, store: memoryStore({ host }), observe: () => undefined },
        capabilities: {
          job: capability({
            description: "runs jobs",
            commands: { "Job.Run": { handle: (_, __, { metadata }) => void heard.push(`${metadata.causation} ran`) } },
            on: { "Timer.Fired": (_, __, { metadata }) => void heard.push(`${metadata.causation} fired`) },
          }),
        },
      }),
    );
    const dueAt = host.now() + 1_000;
    for (let n = 0; n < 50; n++)
      await host.run(() => kernel.request(request("Timer.Set", `t${n}`, { dueAt, message: job(n) })));
    await host.advance(10_000);
    expect(heard).toHaveLength(100);
    for (let n = 0; n < 50; n++) expect(heard.indexOf(`t${n} fired`)).toBeLessThan(heard.indexOf(`t${n} ran`));
    await host.run(() => kernel.close());
  });

  for (const count of [2, 3, 50, 600])
    test(`[T12] the first of ${count} timers of one deadline cancels the last, which does not run`, async () => {
      const host = simulatedHost(1);
      const ran: Json[] = [];
      const timerIds: string[] = [];
      let answer: Json | undefined;
      const store = memoryStore({ host });
      const kernel = await host.run(() =>
        Kernel.open({
          ...{ host, store, observe: () => undefined },
          capabilities: {
            job: capability({
              description: "runs jobs",
              sends: { "Timer.Cancel": "command" },
              commands: {
                "Job.Run": {
                  handle: async (n: number, context) => {
                    ran.push(n);
                    if (n === 0) answer = await context.command("Timer.Cancel", { timerId: timerIds.at(-1) as string });
                    return null;
                  },
                },
              },
            }),
          },
        }),
      );
      const dueAt = host.now() + 60_000;
      for (let n = 0; n < count; n++) {
        const set = await host.run(() => kernel.command("Timer.Set", { dueAt, message: job(n) }));
        timerIds.push((set as { timerId: string }).timerId);
      }
      await host.advance(120_000);
      expect(answer).toEqual({ cancelled: true });
      expect(ran).toEqual(Array.from({ length: count - 1 }, (_, n) => n));
      const unsettled = await host.run(() => store.query({ status: "processing", limit: 10 }));
      expect(unsettled).toEqual([]);
      expect(await host.run(() => store.earliestDue())).toBeUndefined();
      await host.run(() => kernel.close());
    });

  test("[T12] waiting messages of a cancelled timer are not delivered; one in progress is reported", async () => {
    const host = simulatedHost(1);
    let calls = 0;
    const gate = Promise.withResolvers<null>();
    const handle = () => {
      calls++;
      return gate.promise;
    };
    const store = memoryStore({ host });
    const kernel = await host.run(() =>
      Kernel.open({
        ...{ host, store, observe: () => undefined, limits: { mailboxMax: 3 } },
        capabilities: { job: capability({ description: "runs jobs", commands: { "Job.Run": { handle } } }) },
      }),
    );
    const every = host.run(() => kernel.command("Timer.Every", { everyMs: 1_000, message: job(1) }));
    const { timerId } = (await every) as { timerId: string };
    await host.advance(8_500);
    const cancelled = await host.run(() => kernel.command("Timer.Cancel", { timerId }));
    expect(cancelled).toEqual({ cancelled: true, underway: 1 });
    gate.resolve(null);
    await host.advance(600_000);
    expect(calls).toBe(1);
    const rows = await host.run(() => store.query({ kind: "command", limit: 100 }));
    const cancellations = rows.filter(({ outcome }) => outcome === "cancelled");
    expect(cancellations).toHaveLength(7);
    for (const { reason } of cancellations) expect(reason).toBe("its timer was cancelled");
    expect(rows.every(({ status }) => status === "done")).toBe(true);
    await host.run(() => kernel.close());
  });

  test("[T13] an id used by another command is 409 for a timer, and the reverse", async () => {
    const host = simulatedHost(1);
    const kernel = await host.run(() => Kernel.open({ host, store: memoryStore({ host }), observe: () => undefined }));
    const ask = (type: string, id: string, data: Json) => host.run(() => kernel.request(request(type, id, data)));
    const timer = { delayMs: 60_000, message: job(1) };
    await ask("Memory.Set", "one", { key: "/x", value: 1 });
    expect(await ask("Timer.Set", "one", timer)).toMatchObject({ kind: "error", data: { code: 409 } });
    expect(await ask("Timer.Set", "two", timer)).toMatchObject({ kind: "reply" });
    const other = await ask("Memory.Set", "two", { key: "/x", value: 2 });
    expect(other).toMatchObject({ kind: "error", data: { code: 409 } });
    await host.run(() => kernel.close());
  });

  test("[T17] timers of one deadline take a few commits of the file, not one each", async () => {
    const directory = mkdtempSync(join(tmpdir(), "millrace-timers-"));
    const count = 2 * TIMERS_FIRED_MAX;
    // On a busy machine some may be set after their deadline; then they are set anew, with more time.
    let batches: number | undefined;
    for (let leadMs = 2_000; batches === undefined; leadMs *= 4)
      batches = await batchesOfTimers(join(directory, `${leadMs}.db`), count, leadMs);
    // A batch of timers is taken, announced, journaled, settled and forgotten: a handful of commits, however many
    // timers it has.
    expect(batches).toBeLessThan(count / 4);
    rmSync(directory, { recursive: true });
  });
});

/** Batches of the file that timers of one deadline take; undefined if not all of them were set before it. */
async function batchesOfTimers(path: string, count: number, leadMs: number): Promise<number | undefined> {
  // A batch ends with its queue, not because the machine is busy.
  const store = await openSqliteStore({ path, tuning: { batchMs: 600_000 } });
  const ran = Promise.withResolvers<void>();
  let runs = 0;
  const handle = () => {
    if (++runs === count) ran.resolve();
    return null;
  };
  await using kernel = await Kernel.open({
    ...{ store, observe: () => undefined },
    capabilities: { job: capability({ description: "runs jobs", commands: { "Job.Run": { handle } } }) },
  });
  const dueAt = Date.now() + leadMs;
  await Promise.all(Array.from({ length: count }, (_, n) => kernel.command("Timer.Set", { dueAt, message: job(n) })));
  const before = store.stats().batches;
  if (runs > 0 || Date.now() >= dueAt) return undefined;
  await ran.promise;
  await kernel.idle();
  return store.stats().batches - before;
}
