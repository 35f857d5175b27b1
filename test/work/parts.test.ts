/** Parts of the unit of work alone: options, signals, schedules, timer rows, lineages. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Cancellation } from "../../src/work/cancellation.ts";
import { handlerOptionsProblem } from "../../src/work/handler-options.ts";
import { AttemptLineage } from "../../src/work/lineage.ts";
import { nextSlot } from "../../src/work/schedule.ts";
import { type ArmedTimer, armed, following, taken } from "../../src/work/timer-row.ts";
import { memoryWorlds, World } from "./world.ts";

describe("options of handlers", () => {
  const wrong: readonly (readonly [object, string])[] = [
    [{ timeoutMs: -1 }, "timeoutMs: must be 0"],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, "timeoutMs: must be 0"],
    [{ concurrency: 0 }, "concurrency must be a whole number of at least 1"],
    [{ concurrency: 1.5 }, "concurrency must be a whole number of at least 1"],
    [{ serialBy: "key" }, "serialBy must be a function"],
    [{ onFailed: true }, "onFailed must be a function"],
    [{ retry: 0 }, "retry.attempts is how often"],
    [{ retry: "often" }, "retry is a number of attempts"],
    [{ retry: { attempts: 2, when: true } }, "retry.when is a function"],
    [{ retry: { attempts: 2, backoff: { factor: 0.5 } } }, "a factor of at least 1"],
    [{ retry: { attempts: 2, backoff: { start: 1 } } }, "retry: "],
  ];
  for (const [options, problem] of wrong)
    test(`[U100] ${JSON.stringify(options)} is refused`, () => {
      expect(handlerOptionsProblem(options)).toContain(problem);
    });

  test("[U100] good options are accepted", () => {
    const options = { timeoutMs: 0, concurrency: 1, retry: { attempts: 2, backoff: { startMs: 0, factor: 1 } } };
    expect(handlerOptionsProblem({ ...options, serialBy: String, onFailed: () => undefined })).toBeUndefined();
  });
});

describe("the signal of a handler", () => {
  test("[U34] a signal that is asked for after the timeout is aborted, with the first reason", () => {
    const cancellation = new Cancellation();
    const reason = new Error("timed out");
    cancellation.cancel(reason);
    cancellation.cancel(new Error("later"));
    expect([cancellation.signal.aborted, cancellation.signal.reason, cancellation.reason]).toEqual([
      true,
      reason,
      reason,
    ]);
  });
});

describe("schedules", () => {
  test("[T7] slots that passed are one firing: the next slot is after now, for cron and for equal distances", () => {
    const slotMs = Date.UTC(2026, 0, 1);
    const nowMs = slotMs + 10 * 60_000 + 1;
    expect(nextSlot({ cron: "* * * * *" }, slotMs, nowMs)).toBe(slotMs + 11 * 60_000);
    expect(nextSlot({ everyMs: 60_000 }, slotMs, nowMs)).toBe(slotMs + 11 * 60_000);
  });

  test("[T15] a kernel that has read a slot takes it only if no other kernel has taken it since", async () => {
    const store = memoryStore({ host: simulatedHost(1), disk: new MemoryDisk() });
    const template = { kind: "command", type: "Case.Run", data: null } as const;
    const timer: ArmedTimer = {
      id: "timer",
      dueAtMs: 100,
      data: { lineage: {}, template, request: "set", schedule: { everyMs: 10 }, slotMs: 100 },
    };
    await store.changeDue([armed(timer)]);
    const next = following(timer, 100) as ArmedTimer;
    expect(await store.changeDue([taken(timer), armed(next)])).toEqual([true, true]);
    expect(await store.changeDue([taken(timer)])).toEqual([false]);
    expect(await store.changeDue([taken(next)])).toEqual([true]);
  });
});

describe("the lineage of an attempt", () => {
  test("[I10] a confirmed attempt cannot fail afterwards, and its launches are told once", async () => {
    const { space } = await new World(memoryWorlds).process();
    const lineage = new AttemptLineage(space.replica(space.name));
    const told: string[] = [];
    const launch = (name: string) =>
      lineage.launch({
        started: () => void told.push(`${name} started`),
        confirmed: () => void told.push(`${name} confirmed`),
        cancelled: () => void told.push(`${name} cancelled`),
      });
    launch("early");
    lineage.applied({ session: "s", localSequence: 1 });
    lineage.confirm();
    lineage.fail("too late");
    lineage.confirm();
    launch("late");
    expect(told).toEqual(["early started", "early confirmed", "late started", "late confirmed"]);
    expect(lineage.state).toBe("confirmed");
  });
});
