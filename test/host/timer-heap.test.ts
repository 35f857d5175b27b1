import fc from "fast-check";
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { type TimerEntry, TimerHeap } from "../../src/host/timer-heap.ts";

const nothing = () => undefined;

type Action =
  | { kind: "add"; deadlineMs: number; keepAlive: boolean }
  | { kind: "remove"; pick: number }
  | { kind: "take" };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), deadlineMs: fc.nat(20), keepAlive: fc.boolean() }),
  fc.record({ kind: fc.constant("remove" as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant("take" as const) }),
);

/** The plainest thing that could be right: a list in the order set, searched from the start. */
function earliest(entries: TimerEntry[]): TimerEntry | undefined {
  let first: TimerEntry | undefined;
  for (const entry of entries) if (first === undefined || entry.deadlineMs < first.deadlineMs) first = entry;
  return first;
}

describe("timer heap", () => {
  test("[H5] any mix of set, cancel and fire takes entries by deadline, then by the order set", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
        const heap = new TimerHeap();
        const model: TimerEntry[] = [];
        for (const step of actions) {
          if (step.kind === "add") {
            model.push(heap.add(step.deadlineMs, step.keepAlive, nothing));
          } else if (model.length > 0) {
            const entry = step.kind === "take" ? heap.peek()! : model[step.pick % model.length]!;
            expect(heap.remove(entry)).toBe(true);
            expect(heap.remove(entry)).toBe(false);
            model.splice(model.indexOf(entry), 1);
          }
          expect(heap.peek()).toBe(earliest(model));
          expect(heap.size).toBe(model.length);
          expect(heap.keepAliveCount).toBe(model.filter((entry) => entry.keepAlive).length);
          heap.checkInvariants();
        }
      }),
    );
  });

  test("[H5] the entry that fills the place of a cancelled one may move up", () => {
    const heap = new TimerHeap();
    const [, , , deep] = [0, 10, 1, 11, 12, 2, 3].map((deadlineMs) => heap.add(deadlineMs, true, nothing));
    heap.remove(deep!);
    heap.checkInvariants();
  });

  test("[H6] a million timers set and cancelled leave no entry behind", () => {
    const heap = new TimerHeap();
    const kept = heap.add(5, true, nothing);
    for (let count = 0; count < 1_000_000; count++) heap.remove(heap.add(count % 977, false, nothing));
    expect(heap.size).toBe(1);
    expect(heap.peek()).toBe(kept);
  });

  test("[H6] cancelled timers leave both hosts, in any order of cancelling", () => {
    const simulated = simulatedHost(1);
    for (const host of [simulated, systemHost()]) {
      const timers = Array.from({ length: 1_000 }, (_, index) =>
        host.timer(1_000 + ((index * 7_919) % 1_000), nothing),
      );
      for (const timer of timers) expect(timer.cancel()).toBe(true);
      for (const timer of timers) expect(timer.cancel()).toBe(false);
    }
    expect(simulated.pendingTimers).toBe(0);
    simulated.checkInvariants();
  });

  test("[H17] the invariant check detects a corrupted heap", () => {
    const heap = new TimerHeap();
    const entry = heap.add(1, true, nothing);
    heap.checkInvariants();
    entry.position = 3;
    expect(() => heap.checkInvariants()).toThrow("believes it is at 3");
  });
});
