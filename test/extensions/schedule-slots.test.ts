/**
 * One schedule's slot in the hands of two processes: real stores on one SQLite file, in an order that each test sets.
 */
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { NEVER_MS, SCHEDULE_KIND, type ScheduleDueTable, slotIn } from "../../src/extensions/schedule-row.ts";
import { ScheduleSlot, type SlotParts } from "../../src/extensions/schedule-slot.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { LEASE_MS } from "../../src/limits.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { scratchFolder } from "../repo/program.ts";

const MINUTE = 60_000;
const TICK = { extensionId: "clock", name: "tick", cron: "* * * * *", timezone: undefined, does: "task tick" };

/** A store of its own, and a clock of its own in simulated time. */
interface Party {
  readonly process: SimulatedProcess;
  readonly store: Store;
  readonly parts: SlotParts;
}

async function setup() {
  const world = simulatedHost(1);
  const path = join(scratchFolder(), "kernel.db");
  const party = async (holder: string): Promise<Party> => {
    const process = simulatedProcess(world);
    const store = await openSqliteStore({ path, host: systemHost(), durability: "process" });
    onTestFinished(() => store.close());
    // The files are real, and the time is not.
    store.now = () => process.now();
    return { process, store, parts: { host: process, due: store, holder, leaseMs: LEASE_MS, alone: false } };
  };
  const [a, b] = [await party("a"), await party("b")];
  // Just before a slot.
  await world.advance(MINUTE - (world.now() % MINUTE) - 1);
  return { world, a, b, nextSlotMs: world.now() + 1 };
}

async function rows({ store }: Party) {
  return (await store.dueRows(NEVER_MS, 9, SCHEDULE_KIND)).map((row) => slotIn(row));
}

/** A slot of a process that has read its absence, and writes only when it is released. */
async function stoppedBeforeItWrites({ parts, store }: Party) {
  const read = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const due: ScheduleDueTable = {
    dueRows: (...asked) => store.dueRows(...asked),
    now: () => store.now(),
    changeDue: async (changes) => {
      read.resolve();
      await go.promise;
      return store.changeDue(changes);
    },
  };
  const slot = ScheduleSlot.of({ ...parts, due }, TICK);
  await read.promise;
  return { slot, go: go.resolve };
}

/** A table whose next change is made, and its answer lost. */
function losingAnswers(store: Store): ScheduleDueTable & { lose(): void } {
  let losing = false;
  return {
    lose: () => {
      losing = true;
    },
    dueRows: (...asked) => store.dueRows(...asked),
    now: () => store.now(),
    changeDue: async (changes) => {
      const answers = await store.changeDue(changes);
      if (!losing) return answers;
      losing = false;
      throw new Error("the answer was lost");
    },
  };
}

describe("the first slot", () => {
  test("[X47] two processes that open at once, one before a slot and one after it, have one row and wait for the same slot", async () => {
    const { a, b, nextSlotMs } = await setup();
    b.process.stepClock(2);
    const late = await stoppedBeforeItWrites(b);
    const first = await ScheduleSlot.of(a.parts, TICK);
    late.go();
    expect(first.slotMs).toBe(nextSlotMs);
    expect((await late.slot).slotMs).toBe(nextSlotMs);
    expect(await rows(b)).toMatchObject([{ slotMs: nextSlotMs, attempt: 0, hold: undefined }]);
  });

  test("[X47] a process that stopped before a slot ran does not run the slot again", async () => {
    const { world, a, b, nextSlotMs } = await setup();
    b.process.stepClock(-1_000);
    const late = await stoppedBeforeItWrites(b);
    const first = await ScheduleSlot.of(a.parts, TICK);
    await world.advance(2);
    expect(await first.claim()).toBe(true);
    await first.arm();
    late.go();
    expect((await late.slot).slotMs).toBe(nextSlotMs + MINUTE);
    expect(await rows(a)).toMatchObject([{ slotMs: nextSlotMs + MINUTE, attempt: 0 }]);
  });

  test("[X47] a row under its name that cannot be read is not written over, and not waited for either", async () => {
    const { a } = await setup();
    await a.store.changeDue([
      { op: "put", kind: SCHEDULE_KIND, key: "clock/tick", dueAtMs: NEVER_MS, data: "of tomorrow" },
    ]);
    await expect(ScheduleSlot.of(a.parts, TICK)).rejects.toMatchObject({ code: "EXTENSION_SCHEDULE" });
  });
});

describe("a slot that has come", () => {
  async function waiting() {
    const { world, a, b, nextSlotMs } = await setup();
    const [mine, other] = [await ScheduleSlot.of(a.parts, TICK), await ScheduleSlot.of(b.parts, TICK)];
    await world.advance(1);
    return { world, a, b, mine, other, nextSlotMs };
  }

  test("[X47] one of several processes claims a slot, and its attempt counts once", async () => {
    const { a, mine, other } = await waiting();
    const won = await Promise.all([mine.claim(), other.claim()]);
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await rows(a)).toMatchObject([{ attempt: 1, hold: { by: won[0] ? "a" : "b" } }]);
  });

  test("[X47] [X60] is not taken from a holder that renews it, however far the other's clock is ahead", async () => {
    const { world, b, mine, other } = await waiting();
    await mine.claim();
    expect(await other.claim()).toBe(false);
    b.process.stepClock(60 * MINUTE);
    for (let beat = 0; beat < 6; beat++) {
      await world.advance(LEASE_MS / 2);
      expect(await mine.renew()).toBe(true);
      expect(await other.claim()).toBe(false);
    }
    await world.advance(LEASE_MS);
    expect(await other.claim()).toBe(true);
    expect(other.attempt).toBe(2);
    expect(await mine.renew()).toBe(false);
  });

  test("[X47] when it was taken over, is not the first one's to end any more", async () => {
    const { world, a, mine, other, nextSlotMs } = await waiting();
    await mine.claim();
    await other.claim();
    await world.advance(LEASE_MS);
    await other.claim();
    for (const end of [() => mine.arm(), () => mine.letGo(), () => mine.renew()]) await end();
    expect(await rows(a)).toMatchObject([{ slotMs: nextSlotMs, attempt: 2, hold: { by: "b", beat: 1 } }]);
    await other.arm();
    expect(await rows(a)).toMatchObject([{ slotMs: nextSlotMs + MINUTE, attempt: 0, hold: undefined }]);
  });

  test("[X47] answers that are lost after the store has written have no effect", async () => {
    const { world, a, nextSlotMs } = await waiting();
    const due = losingAnswers(a.store);
    const slot = await ScheduleSlot.of({ ...a.parts, due }, TICK);
    due.lose();
    await expect(slot.claim()).rejects.toThrow("lost");
    expect(await slot.claim()).toBe(true);
    expect(slot.attempt).toBe(1);
    await world.advance(LEASE_MS / 3);
    due.lose();
    await expect(slot.renew()).rejects.toThrow("lost");
    await slot.arm();
    expect(await rows(a)).toMatchObject([{ slotMs: nextSlotMs + MINUTE, attempt: 0, hold: undefined }]);
  });
});
