import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { HANDLED_IDS_GENERATION_MAX, ID_AHEAD_MS_MAX } from "../../src/limits.ts";
import { HandledIds } from "../../src/work/handled-ids.ts";

function setup({ newestReceiptMs = 0 }: { newestReceiptMs?: number } = {}) {
  const host = simulatedHost(1);
  let nowMs = host.now();
  const ids = new HandledIds({ now: () => nowMs, newestReceiptMs });
  return {
    ids,
    startMs: nowMs,
    pass: (ms: number) => {
      nowMs += ms;
    },
    /** A UUIDv7 of this time. */
    idAt: (timeMs: number) => {
      const time = timeMs.toString(16).padStart(12, "0");
      return `${time.slice(0, 8)}-${time.slice(8)}${host.id().slice(13)}`;
    },
  };
}

describe("ids that were handled", () => {
  test("[U80] a fresh id with a time is new, and in doubt once it is handled", () => {
    const { ids, startMs, idAt } = setup();
    const id = idAt(startMs);
    expect(ids.isNew(id)).toBe(true);
    ids.note(id);
    expect(ids.isNew(id)).toBe(false);
    expect(ids.isNew(idAt(startMs))).toBe(true);
  });

  test("[U80] ids without a time, from before the newest receipt, and from far ahead are in doubt", () => {
    const { ids, startMs, idAt } = setup({ newestReceiptMs: 1_767_225_500_000 });
    const inDoubt = [
      "order-17",
      "7f0c0f3e-5c39-4f0e-9d5e-0123456789ab",
      idAt(1_767_225_500_000),
      idAt(1_767_225_000_000),
    ];
    for (const id of [...inDoubt, idAt(startMs + ID_AHEAD_MS_MAX + 1)])
      expect([id, ids.isNew(id)]).toEqual([id, false]);
    expect(ids.isNew(idAt(1_767_225_500_001))).toBe(true);
    expect(ids.isNew(idAt(startMs + ID_AHEAD_MS_MAX))).toBe(true);
  });

  test("[U81] over three generations no handled id is taken for new, and few new ones are in doubt", () => {
    const { ids, startMs, idAt, pass } = setup();
    const handled: string[] = [];
    for (let n = 0; n < 3 * HANDLED_IDS_GENERATION_MAX; n++) {
      // Clients' clocks differ by seconds.
      const id = idAt(startMs + n - (n % 3) * 2_000);
      pass(1);
      ids.note(id);
      if (n % 16 === 0) handled.push(id);
    }
    expect(handled.filter((id) => ids.isNew(id))).toEqual([]);
    const nowMs = startMs + 3 * HANDLED_IDS_GENERATION_MAX;
    const fresh = Array.from({ length: 50_000 }, () => idAt(nowMs));
    expect(fresh.filter((id) => !ids.isNew(id)).length).toBeLessThan(50);
  });

  test("[U81] an id that was ahead of the clock when it was handled stays in doubt when its time comes", () => {
    const { ids, startMs, idAt, pass } = setup();
    const aheadMs = startMs + 3 * ID_AHEAD_MS_MAX;
    const ahead = idAt(aheadMs);
    ids.note(ahead);
    pass(3 * ID_AHEAD_MS_MAX);
    expect(ids.isNew(ahead)).toBe(false);
    // One forged id does not cost every later one a lookup.
    expect(ids.isNew(idAt(aheadMs + 1))).toBe(true);
    expect(ids.isNew(idAt(aheadMs - 1))).toBe(true);
  });

  test("[U81] after missed changes of other processes all ids up to then are in doubt", () => {
    const { ids, startMs, idAt } = setup();
    ids.raiseFloor(startMs);
    ids.raiseFloor(startMs - 5);
    expect([ids.isNew(idAt(startMs)), ids.isNew(idAt(startMs + 1))]).toEqual([false, true]);
  });
});
