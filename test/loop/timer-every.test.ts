/** Repeating timers: slots, restarts, missed slots, failures. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { TIMER_FIRINGS_MAX } from "../../src/limits.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { command } from "./loop-setup.ts";
import { intercepted, stores, template, timers } from "./timer-setup.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Arrivals of the template, with time and id. */
function sent({ arrived }: Awaited<ReturnType<typeof timers>>) {
  return arrived.filter(({ message }) => message.type === "Build.Run").map(({ at, message }) => ({ at, message }));
}

for (const [where, store] of stores) {
  describe(`repeating timers ${where}`, () => {
    test("[T7] everyMs fires at equal distances, each time Timer.Fired and then the message under an id of its own", async () => {
      const made = await timers({ store });
      const timerId = await made.every({ everyMs: 100, message: template });
      const start = made.host.now();
      expect(made.one.received.at(-1)?.data).toEqual({ timerId, dueAt: start + 100 });
      await made.host.advance(99);
      expect(made.arrived).toEqual([]);
      await made.host.advance(201);
      expect(made.types()).toEqual([100, 200, 300].flatMap((at) => [`${at} Timer.Fired`, `${at} Build.Run`]));
      const [fired, message] = made.arrived.map((one) => one.message);
      expect(fired).toMatchObject({ data: { timerId, dueAt: start + 100 }, metadata: { causation: "every" } });
      expect(message).toMatchObject({ ...template, metadata: { causation: "every" } });
      expect(new Set(sent(made).map((one) => one.message.metadata.id)).size).toBe(3);
    });

    test("[T7] [T8] cron fires at the moments of its expression, in its time zone", async () => {
      const made = await timers({ store });
      await made.every({ cron: "30 9 * * *", timezone: "Asia/Kolkata", message: template });
      await made.host.advance(2 * 24 * HOUR);
      // 09:30 there is 04:00 UTC.
      expect(sent(made).map(({ message }) => message.metadata.timestamp % (24 * HOUR))).toEqual(
        [4, 4].map((hour) => hour * HOUR),
      );
    });

    test("[T7] a late firing shifts no later slot, and slots that passed meanwhile are one firing", async () => {
      const made = await timers({ store });
      await made.every({ everyMs: 100, message: template });
      // A machine that slept: the clock has gone on, no timer has fired.
      made.host.stepClock(1_050);
      await made.host.advance(100);
      expect(sent(made)).toHaveLength(1);
      await made.host.advance(50);
      expect(sent(made).map(({ at }) => at)).toEqual([100, 150]);
    });

    test("[T7] a timer that fires faster than it is handled has a bounded number in hand", async () => {
      const made = await timers({ store });
      await made.every({ everyMs: 10, message: template });
      await made.host.advance(60_000);
      expect([sent(made).length, made.loop.pending.size]).toEqual([TIMER_FIRINGS_MAX, TIMER_FIRINGS_MAX]);
      // Its message is answered with 500, which is an end too.
      made.actor.dispatch({ type: "error", message: "it crashes" });
      await made.host.advance(1_000);
      expect(sent(made).length).toBe(2 * TIMER_FIRINGS_MAX);
    });

    test("[T7] a clock that is set back fires no slot again", async () => {
      const made = await timers({ store });
      await made.every({ cron: "* * * * *", message: template });
      await made.host.advance(2 * MINUTE);
      const before = sent(made).length;
      made.host.stepClock(-MINUTE);
      await made.host.advance(MINUTE);
      expect(sent(made)).toHaveLength(before);
      await made.host.advance(MINUTE);
      expect(sent(made)).toHaveLength(before + 1);
    });

    test("[T7] a task that fails is not sent again before its next slot", async () => {
      const made = await timers({ store });
      await made.every({ everyMs: HOUR, message: { ...template, type: "Build.Nobody" } });
      await made.host.advance(HOUR + 30 * MINUTE);
      expect(made.types()).toEqual([`${HOUR} Timer.Fired`]);
      await made.host.advance(30 * MINUTE);
      expect(made.types()).toEqual([`${HOUR} Timer.Fired`, `${2 * HOUR} Timer.Fired`]);
    });

    test("[T5] [T7] a cancelled one never fires again", async () => {
      const made = await timers({ store });
      const timerId = await made.every({ everyMs: 100, message: template });
      await made.host.advance(250);
      // Its actor has two of them, and does not say whether it has begun.
      expect(await made.cancel(timerId)).toEqual({ cancelled: true, underway: 2 });
      expect(await made.cancel(timerId)).toEqual({ cancelled: false, underway: 2 });
      await made.host.advance(HOUR);
      expect(sent(made)).toHaveLength(2);
      expect(made.loop.liveness.timers).toBe(0);
    });

    const refused: readonly [string, Json, RegExp][] = [
      ["no schedule", { message: template }, /needs either cron or everyMs/],
      ["two schedules", { cron: "* * * * *", everyMs: 5, message: template }, /needs either cron or everyMs/],
      ["a bad expression", { cron: "61 * * * *", message: template }, /"61 \* \* \* \*" is not a schedule: .*minute/],
      ["no expression", { cron: 5, message: template }, /cron: must be an expression/],
      ["a bad zone", { cron: "* * * * *", timezone: "Mars/X", message: template }, /timezone: must be the name/],
      ["a zone without cron", { everyMs: 5, timezone: "UTC", message: template }, /timezone: belongs to cron/],
      ["a past year", { cron: "0 0 0 1 1 * 1999", message: template }, /has no moment after now/],
      ["no distance", { everyMs: 0, message: template }, /everyMs: must be a whole number of 1 to/],
      ["half a distance", { everyMs: 1.5, message: template }, /everyMs: must be a whole number/],
      ["no message", { everyMs: 5 }, /message: must be an object/],
      ["no object", [], /must be an object with message/],
    ];
    test("[T3] [T7] [T8] an invalid schedule is 422 with its problem, and no timer is armed", async () => {
      const made = await timers({ store });
      for (const [what, data, problem] of refused) {
        await made.every(data, what);
        const answer = made.one.received.at(-1);
        expect(answer).toMatchObject({ kind: "error", data: { code: 422 }, metadata: { causation: what } });
        expect((answer?.data as { message: string } | undefined)?.message).toMatch(problem);
      }
      expect(made.loop.liveness.timers).toBe(0);
    });
  });
}

describe("repeating timers that outlive the process", () => {
  /** The same disk in a later process, with a clock that has moved on. */
  async function restarted(before: Awaited<ReturnType<typeof timers>>, disk: MemoryDisk, downMs: number) {
    await before.host.run(() => before.loop.stop());
    const host = simulatedHost(2);
    host.stepClock(before.host.now() + downMs - host.now());
    return timers({ host, store: (given) => memoryStore({ host: given, disk }), answers: () => true });
  }

  test("[T7] after a restart the schedule goes on, and no slot that was handled fires again", async () => {
    const disk = new MemoryDisk();
    const before = await timers({ store: (host) => memoryStore({ host, disk }), answers: () => true });
    await before.every({ everyMs: MINUTE, message: template });
    await before.host.advance(2 * MINUTE + 1);
    const after = await restarted(before, disk, 30_000);
    await after.host.advance(29_998);
    expect(after.arrived).toEqual([]);
    await after.host.advance(1);
    await after.host.advance(MINUTE);
    expect(sent(after).map(({ at }) => at)).toEqual([29_999, 89_999]);
    const ids = [...sent(before), ...sent(after)].map(({ message }) => message.metadata.id);
    expect(new Set(ids).size).toBe(4);
  });

  test("[T7] slots missed while it was down are one firing, for the first of them, and then the schedule goes on", async () => {
    const disk = new MemoryDisk();
    const before = await timers({ store: (host) => memoryStore({ host, disk }), answers: () => true });
    await before.every({ cron: "0 * * * *", message: template });
    await before.host.advance(HOUR);
    expect(sent(before)).toHaveLength(1);
    const after = await restarted(before, disk, 10 * HOUR + 5 * MINUTE);
    await after.host.advance(0);
    expect(sent(after)).toHaveLength(1);
    const [fired] = after.arrived.map(({ message }) => message);
    const [last] = before.arrived.filter(({ message }) => message.type === "Timer.Fired").map(({ message }) => message);
    const slotOf = (data: Json | undefined) => (data as { dueAt: number } | undefined)?.dueAt ?? 0;
    expect(slotOf(fired?.data) - slotOf(last?.data)).toBe(HOUR);
    await after.host.advance(HOUR);
    expect(sent(after)).toHaveLength(2);
  });

  test("[T6] [T7] a slot that fired and was not answered fires again under the same id, and the next one as well", async () => {
    const disk = new MemoryDisk();
    const before = await timers({ store: (host) => memoryStore({ host, disk }) });
    await before.every({ everyMs: HOUR, message: template });
    await before.host.advance(HOUR);
    const after = await restarted(before, disk, MINUTE);
    await after.host.advance(0);
    expect(sent(after).map(({ message }) => message.metadata.id)).toEqual(
      sent(before).map(({ message }) => message.metadata.id),
    );
    expect(after.arrived[0]?.message.data).toEqual(before.arrived[0]?.message.data);
    await after.host.advance(HOUR);
    expect(sent(after)).toHaveLength(2);
    const again = await restarted(after, disk, 0);
    await again.host.advance(0);
    expect(again.arrived).toEqual([]);
  });

  const schedules = [
    ["cron", { cron: "* * * * *", message: template }],
    ["everyMs", { everyMs: MINUTE, message: template }],
  ] as const;
  for (const [what, schedule] of schedules) {
    test(`[T7] a clock that is set back while a slot of ${what} fires does not bring it again`, async () => {
      const host = simulatedHost(1);
      let backMs = 0;
      const store = (given: typeof host) =>
        intercepted(given, async (name, call) => {
          const rows = await call();
          if (name === "dueRows") given.stepClock(-backMs);
          if (name === "dueRows") backMs = 0;
          return rows;
        });
      const made = await timers({ host, store, answers: () => true });
      await made.every(schedule);
      backMs = 10 * MINUTE + 1;
      await host.advance(MINUTE);
      // The time by which it was set back must pass again first.
      await host.advance(10 * MINUTE);
      expect(sent(made)).toHaveLength(1);
      await host.advance(MINUTE + 1);
      const slots = made.arrived.map(({ message }) => message).filter(({ type }) => type === "Timer.Fired");
      expect(slots).toHaveLength(2);
      const [first, second] = slots.map(({ data }) => (data as { dueAt: number }).dueAt);
      expect((second ?? 0) - (first ?? 0)).toBe(MINUTE);
    });
  }

  test("[T5] [T7] a cancellation that meets a firing on its way is not undone by it", async () => {
    const host = simulatedHost(1);
    let cancel: (() => void) | undefined;
    const made = await timers({
      host,
      store: (given) =>
        intercepted(given, async (name, call) => {
          const rows = await call();
          if (name === "dueRows" && cancel) {
            cancel();
            cancel = undefined;
            // Long enough for the cancellation to complete, if it is not delayed.
            await new Promise<void>((resolve) => given.timer(10, resolve));
          }
          return rows;
        }),
    });
    const timerId = await made.every({ everyMs: 100, message: template });
    cancel = () => made.loop.receive(command("Timer.Cancel", "cancel", { timerId }), made.one);
    await host.advance(HOUR);
    expect(made.one.answers.at(-1)).toBe('reply cancel {"cancelled":true}');
    expect(sent(made)).toHaveLength(0);
    expect(made.loop.liveness.timers).toBe(0);
  });
});
