/** Schedules of an app, in simulated time. */
import { describe, expect, test } from "vitest";
import type { CronOptions } from "../../src/index.ts";
import { app, cron } from "../../src/index.ts";
import { Machine } from "./app-setup.ts";

const HOUR_MS = 3_600_000;

function clock(pattern: string | undefined, options: CronOptions = {}) {
  return app("clock", ({ cell }) => {
    const slots = cell<number[]>("slots", []);
    return {
      queries: { "Clock.Slots": () => slots.get() },
      schedules:
        pattern === undefined
          ? {}
          : { hourly: cron(pattern, ({ at }, tx) => tx.update(slots, (all) => [...all, at]), options) },
    };
  });
}

/** The slots after `startMs` at whole hours. */
const hours = (startMs: number, count: number) =>
  Array.from({ length: count }, (_, n) => (Math.floor(startMs / HOUR_MS) + 1 + n) * HOUR_MS);

describe("schedules", () => {
  test("[A20] a slot is one transaction, told when it was due", async () => {
    const machine = new Machine();
    const startMs = machine.world.now();
    const kernel = await machine.start(clock("0 * * * *"));
    await machine.advance(3 * HOUR_MS);
    expect(await machine.run(() => kernel.query("Clock.Slots"))).toEqual(hours(startMs, 3));
  });

  test("[A20] two processes on one store run each slot once", async () => {
    const machine = new Machine();
    const startMs = machine.world.now();
    const first = await machine.start(clock("0 * * * *"));
    await machine.start(clock("0 * * * *"));
    await machine.advance(5 * HOUR_MS);
    expect(await machine.run(() => first.query("Clock.Slots"))).toEqual(hours(startMs, 5));
  });

  test.for([
    ["skip", 2],
    ["once", 3],
  ] as const)("[A21] after three hours without a kernel, missed: %s gives %i slots", async ([missed, count]) => {
    const machine = new Machine();
    const shown = clock("0 * * * *", { missed });
    await machine.start(shown);
    await machine.advance(HOUR_MS);
    machine.kill();
    await machine.advance(3 * HOUR_MS);
    const second = await machine.start(shown);
    await machine.advance(HOUR_MS);
    expect(await machine.run(() => second.query("Clock.Slots"))).toHaveLength(count);
  });

  test("[A22] a schedule that is gone from the app does not fire, and one that comes back does", async () => {
    const machine = new Machine();
    const first = await machine.start(clock("0 * * * *"));
    await machine.advance(HOUR_MS);
    await machine.run(() => first.close());
    const without = await machine.start(clock(undefined), { alone: true });
    await machine.advance(2 * HOUR_MS);
    expect(await machine.run(() => without.query("Clock.Slots"))).toHaveLength(1);
    await machine.run(() => without.close());
    const again = await machine.start(clock("0 * * * *"));
    await machine.advance(HOUR_MS);
    expect(await machine.run(() => again.query("Clock.Slots"))).toHaveLength(2);
  });
});
