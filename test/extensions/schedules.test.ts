/**
 * Schedules: slots, the outcomes of tasks, and the state after a restart. In simulated time, on a disk that outlives
 * kernels.
 */
import { describe, expect, test } from "vitest";
import type { ScheduledRun, TaskResult } from "../../src/extensions/providers.ts";
import { freeRow, NEVER_MS, put, SCHEDULE_KIND, slotIn, take } from "../../src/extensions/schedule-row.ts";
import { HANDLER_TIMEOUT_MS, SLOT_ATTEMPTS_MAX } from "../../src/limits.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { channel, inCode, type Opened, SimulatedWorld } from "./extension-setup.ts";

const MINUTE = 60_000;

/** An extension with one schedule, every minute, that keeps its slots. */
function everyMinute(
  world: SimulatedWorld,
  run: (slot: ScheduledRun) => TaskResult | Promise<TaskResult> = () => null,
  schedule: Readonly<Record<string, unknown>> = {},
) {
  const slots: { at: number; slotMs: number; attempt: number }[] = [];
  const made = inCode(
    { id: "clock", schedules: [{ name: "tick", cron: "* * * * *", ...schedule }] },
    {
      executeTask: (_task: string, slot: ScheduledRun) => {
        slots.push({ at: world.host.now(), slotMs: slot.slotMs, attempt: slot.attempt });
        return run(slot);
      },
    },
  );
  return Object.assign(made, { slots });
}

/** Whole minutes from here. */
const minutesOf = (slots: readonly { slotMs: number }[]) => slots.map(({ slotMs }) => slotMs / MINUTE);

/** Ends a kernel as a crash does: its work stops, the disk stays. */
async function restart(world: SimulatedWorld): Promise<SimulatedWorld> {
  const next = new SimulatedWorld();
  await next.host.advance(world.host.now() - next.host.now());
  return Object.assign(next, { disk: world.disk });
}

async function close(world: SimulatedWorld, { kernel }: Opened): Promise<void> {
  await world.host.run(() => kernel.close());
}

async function dueRows(world: SimulatedWorld): Promise<string[]> {
  const rows = await world.host.run(() =>
    memoryStore({ host: world.host, disk: world.disk }).dueRows(Number.MAX_SAFE_INTEGER, 100),
  );
  return rows.map(({ kind, key }) => `${kind} ${key}`);
}

describe("slots", () => {
  test("[X40] come at their time, never early, each once", async () => {
    const world = new SimulatedWorld();
    await world.host.advance(10_000);
    const clock = everyMinute(world);
    const { status } = await world.open(clock);
    const first = Math.ceil(world.host.now() / MINUTE) * MINUTE;
    expect(status("clock").schedules).toEqual([{ name: "tick", cron: "* * * * *", nextMs: first }]);
    await world.host.advance(5 * MINUTE);
    expect(minutesOf(clock.slots)).toEqual([0, 1, 2, 3, 4].map((n) => first / MINUTE + n));
    for (const { at, slotMs, attempt } of clock.slots)
      expect([at >= slotMs, at - slotMs < 1_000, attempt]).toEqual([true, true, 1]);
  });

  test("[X40] are not early either when they are looked for shortly before", async () => {
    const world = new SimulatedWorld();
    // It looks every minute from here, so last 200 ms before the hour.
    await world.host.advance(59_800 - (world.host.now() % MINUTE));
    const clock = everyMinute(world, () => null, { cron: "0 * * * *" });
    await world.open(clock);
    await world.host.advance(60 * MINUTE);
    const [{ at, slotMs } = { at: 0, slotMs: 1 }] = clock.slots;
    expect(at).toBe(slotMs);
  });

  test("[X40] follow their time zone", async () => {
    const world = new SimulatedWorld();
    const clock = everyMinute(world, () => null, { cron: "0 9 * * *", timezone: "Europe/Berlin" });
    const { status } = await world.open(clock);
    const [{ nextMs } = {}] = status("clock").schedules;
    const berlin = new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin", hour: "2-digit", hourCycle: "h23" });
    expect(berlin.format(nextMs)).toBe("09");
  });

  test("[X40] a task that outlasts its period is not run twice at once; missed slots come once", async () => {
    const world = new SimulatedWorld();
    let running = 0;
    let most = 0;
    const clock = everyMinute(world, async () => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => world.host.timer(2.5 * MINUTE, resolve));
      running--;
    });
    await world.open(clock);
    await world.host.advance(7 * MINUTE);
    expect(most).toBe(1);
    const minutes = minutesOf(clock.slots);
    expect(minutes.map((minute) => minute - minutes[0]!)).toEqual([0, 3, 6]);
  });

  test("[X41] a text is told to the user; other results are not", async () => {
    const world = new SimulatedWorld();
    const results = [{ text: "drink water" }, null, undefined, { text: 7 }, "text", { text: "and stretch" }];
    const sink = channel("sink");
    const clock = everyMinute(world, () => results.shift() as TaskResult);
    await world.open(sink, clock);
    await world.host.advance(6 * MINUTE);
    expect(clock.slots).toHaveLength(6);
    expect(sink.said).toEqual(["drink water", "and stretch"]);
    expect(world.log.map(({ message }) => message)).toEqual([
      "clock/tick failed, and comes again at its next slot: tick of clock gave an object; a task gives {text} or nothing",
      'clock/tick failed, and comes again at its next slot: tick of clock gave "text"; a task gives {text} or nothing',
    ]);
  });

  test("[X41] [X20] getSchedule and execute, without a word in the manifest", async () => {
    const world = new SimulatedWorld();
    const sink = channel("sink");
    const coded = inCode({ id: "coded" }, { getSchedule: () => "*/2 * * * *", execute: () => ({ text: "even" }) });
    const wrong = inCode({ id: "wrong" }, { getSchedule: () => "now and then", execute: () => null });
    const half = inCode({ id: "half" }, { getSchedule: () => "* * * * *" });
    const nobody = inCode({ id: "nobody", schedules: [{ name: "tick", cron: "* * * * *" }] });
    const { states, status } = await world.open(sink, coded, wrong, half, nobody);
    expect(states()).toEqual({ sink: "ACTIVE", coded: "ACTIVE", wrong: "ERROR", half: "ERROR", nobody: "ERROR" });
    expect(status("wrong").reason).toMatch(/^start: getSchedule: cron: "now and then" is not a schedule/);
    expect(status("nobody").reason).toMatch(/the schedule tick has nobody to run it/);
    await world.host.advance(4 * MINUTE);
    expect(sink.said).toEqual(["even", "even"]);
  });

  test("[X42] a schedule that throws or times out runs again at its next slot and not before", async () => {
    const world = new SimulatedWorld();
    const clock = everyMinute(world, (slot) => {
      if (clock.slots.length === 1) throw new Error("no luck");
      if (clock.slots.length === 2) return Promise.reject(new Error("again"));
      return clock.slots.length === 3 ? new Promise<never>(() => slot.signal) : null;
    });
    await world.open(clock);
    await world.host.advance(2 * MINUTE + 30_000);
    expect(clock.slots.length).toBe(2);
    await world.host.advance(MINUTE + HANDLER_TIMEOUT_MS + MINUTE);
    const minutes = minutesOf(clock.slots);
    expect(minutes.map((minute) => minute - minutes[0]!).slice(0, 4)).toEqual([
      0,
      1,
      2,
      2 + HANDLER_TIMEOUT_MS / MINUTE + 1,
    ]);
    expect(world.log.map(({ message }) => message.split(": ")[1])).toEqual([
      "no luck",
      "again",
      `tick of clock took longer than ${HANDLER_TIMEOUT_MS} ms`,
    ]);
  });

  test("[X42] the time limit of a task is that of the kernel's handlers", async () => {
    const world = new SimulatedWorld({ limits: { handlerTimeoutMs: 1_500 } });
    await world.open(everyMinute(world, () => new Promise<never>(() => undefined)));
    await world.host.advance(MINUTE + 1_499);
    expect(world.log).toEqual([]);
    await world.host.advance(1);
    expect(world.log.map(({ message }) => message.split(": ")[1])).toEqual(["tick of clock took longer than 1500 ms"]);
  });
});

describe("restart", () => {
  test("[X43] slots survive, and those that were missed fire once", async () => {
    const world = new SimulatedWorld();
    const before = everyMinute(world);
    const opened = await world.open(before);
    await world.host.advance(2 * MINUTE);
    await close(world, opened);
    await world.host.advance(10 * MINUTE);
    expect(before.slots).toHaveLength(2);
    const after = everyMinute(world);
    await world.open(after);
    await world.host.advance(0);
    expect(minutesOf(after.slots)).toEqual([minutesOf(before.slots)[1]! + 1]);
    await world.host.advance(MINUTE);
    expect(after.slots).toHaveLength(2);
    expect(after.slots[1]!.slotMs).toBeGreaterThan(after.slots[0]!.slotMs + 9 * MINUTE);
  });

  test("[X43] a slot that was done is not done again", async () => {
    const world = new SimulatedWorld();
    let slots = 0;
    for (let start = 0; start < 4; start++) {
      const clock = everyMinute(world, () => null, { cron: "0 * * * *" });
      const opened = await world.open(clock);
      await world.host.advance(start === 0 ? 60 * MINUTE : 1_000);
      slots += clock.slots.length;
      await close(world, opened);
    }
    expect(slots).toBe(1);
  });

  test("[X44] a slot in which the process died is tried again, three times in all", async () => {
    let world = new SimulatedWorld();
    const attempts: number[][] = [];
    const slotsMs = new Set<number>();
    for (let start = 0; start < SLOT_ATTEMPTS_MAX + 1; start++) {
      // It never ends, and neither does the kernel: the world stands still, and the next one finds its disk.
      const clock = everyMinute(world, () => new Promise<never>(() => undefined));
      await world.open(clock);
      await world.host.advance(start === 0 ? MINUTE : 0);
      attempts.push(clock.slots.map(({ attempt }) => attempt));
      for (const { slotMs } of clock.slots) slotsMs.add(slotMs);
      if (start === SLOT_ATTEMPTS_MAX) {
        expect(world.log.map(({ message }) => message)).toContain(
          `clock/tick: its slot was begun ${SLOT_ATTEMPTS_MAX} times and the process never outlived it; left out`,
        );
        await world.host.advance(MINUTE);
        expect(clock.slots).toHaveLength(1);
        expect(clock.slots[0]).toMatchObject({ attempt: 1 });
        break;
      }
      world = await restart(world);
    }
    expect(attempts).toEqual([[1], [2], [3], []]);
    expect(slotsMs.size).toBe(1);
  });

  test("[X44] a task that the end of the kernel broke off is run again by the next", async () => {
    const world = new SimulatedWorld();
    const told: boolean[] = [];
    const before = everyMinute(world, ({ signal }) => {
      return new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => {
          told.push(signal.aborted);
          reject(signal.reason);
        });
      });
    });
    const opened = await world.open(before);
    await world.host.advance(MINUTE);
    await close(world, opened);
    expect(told).toEqual([true]);
    const after = everyMinute(world);
    await world.open(after);
    await world.host.advance(0);
    expect(after.slots).toMatchObject([{ slotMs: before.slots[0]!.slotMs, attempt: 2 }]);
  });

  test("[X44] a task that finishes while the kernel ends is done", async () => {
    const world = new SimulatedWorld();
    const wait = () => new Promise<null>((resolve) => world.host.timer(3_000, () => resolve(null)));
    const opened = await world.open(everyMinute(world, wait));
    await world.host.advance(MINUTE);
    await close(world, opened);
    expect(await dueRows(world)).toEqual(["schedule clock/tick"]);
  });

  test("[X45] a changed schedule starts anew, a removed one leaves no row, a failed one waits", async () => {
    const world = new SimulatedWorld();
    await close(world, await world.open(everyMinute(world)));
    await world.host.advance(10 * MINUTE);
    const changed = everyMinute(world, () => null, { cron: "0 0 * * *" });
    const opened = await world.open(changed);
    await world.host.advance(MINUTE);
    expect(changed.slots).toEqual([]);
    await close(world, opened);
    const failing = inCode(
      { id: "clock", schedules: [{ name: "tick", cron: "0 0 * * *" }] },
      { start: () => Promise.reject(new Error("not today")), executeTask: () => null },
    );
    await close(world, await world.open(failing));
    await world.host.advance(24 * 60 * MINUTE);
    expect(await dueRows(world)).toEqual(["schedule clock/tick"]);
    const orphan = { id: "clock", depends_on: ["ghost"], schedules: [{ name: "tick", cron: "0 0 * * *" }] };
    await close(world, await world.open(inCode(orphan, { executeTask: () => null })));
    expect(await dueRows(world)).toEqual(["schedule clock/tick"]);
    const again = everyMinute(world, () => null, { cron: "0 0 * * *" });
    const reopened = await world.open(again);
    await world.host.advance(0);
    expect(again.slots).toMatchObject([{ attempt: 1 }]);
    await close(world, reopened);
    await close(world, await world.open(inCode({ id: "other" })));
    expect(await dueRows(world)).toEqual([]);
  });

  test("[X46] a schedule with emit publishes its topic, once for each slot", async () => {
    const world = new SimulatedWorld();
    const ticking = () =>
      inCode({
        id: "ticking",
        events: { publishes: [{ topic: "tick" }] },
        schedules: [{ name: "ticks", cron: "* * * * *", emit: "tick" }],
      });
    const opened = await world.open(ticking());
    await world.host.advance(3 * MINUTE);
    const rows = await opened.kernel.bus.query({ topic: "tick", limit: 9 });
    expect(rows.map(({ source }) => source)).toEqual(Array(3).fill("ticking"));
    const slots = rows.map(({ message }) => message?.data as { schedule: string; slotMs: number });
    expect(slots[0]?.schedule).toBe("ticks");
    expect(slots.map(({ slotMs }) => slotMs - slots[0]!.slotMs)).toEqual([0, MINUTE, 2 * MINUTE]);
    await close(world, opened);
    // As if the process had died after it published, and before it said so.
    const store = memoryStore({ host: world.host, disk: world.disk });
    const [stored] = await world.host.run(() => store.dueRows(NEVER_MS, 9, SCHEDULE_KIND));
    const armed = slotIn(stored!)!;
    const died = freeRow(armed.schedule, slots[2]!.slotMs, 1);
    await world.host.run(() => store.changeDue([take(armed), put(died)]));
    const again = await world.open(ticking());
    await world.host.advance(1_000);
    expect(await again.kernel.bus.query({ topic: "tick", limit: 9 })).toHaveLength(3);
    expect(again.status("ticking").schedules[0]?.nextMs).toBe(slots[2]!.slotMs + MINUTE);
    expect(world.log).toEqual([]);
  });
});
