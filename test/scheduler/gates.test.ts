import { describe, expect, test } from "#test";
import { AUTO_DEBOUNCE_MS } from "../../src/limits.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("time gates", () => {
  test("[R1] a debounced effect runs once for five quick changes, when the last is old enough", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const seen = new Calls();
    a.sink((value) => seen.note([value, host.monotonic()]), { debounceMs: 100 });
    await space.idle();
    for (let i = 1; i <= 5; i++) {
      a.set(i);
      await host.advance(20);
      scheduler.checkInvariants();
    }
    await host.advance(1_000);
    expect(seen.take()).toEqual([
      [0, 0],
      [5, 180],
    ]);
  });

  test("[R1] a debounced computation runs at once the first time, then once after the changes", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => a.get(), { debounceMs: 50 });
    const seen = new Calls();
    c.sink(seen.note);
    space.flush();
    expect(seen.take()).toEqual([1]);
    a.set(2);
    a.set(3);
    await host.advance(49);
    expect(c.node.runs).toBe(1);
    await host.advance(1);
    expect(seen.take()).toEqual([3]);
    expect(c.node.runs).toBe(2);
  });

  test("[R1] a change between queue and turn closes the gate again", async () => {
    const { space, scheduler, host } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(0);
    b.set(0);
    const order = new Calls<string>();
    space.effect(() => {
      a.get();
      order.note("first");
      b.set((b.get() ?? 0) + 1);
    });
    const debounced = scheduler.register({
      kind: "effect",
      id: "debounced",
      run: () => {
        a.get();
        b.get();
        order.note("debounced");
      },
    });
    space.flush();
    order.take();
    scheduler.setDebounce(debounced, 10);
    a.set(1);
    space.flush();
    scheduler.checkInvariants();
    expect(order.take()).toEqual(["first"]);
    await host.advance(10);
    expect(order.take()).toEqual(["debounced"]);
  });

  test("[R2] a throttled effect runs at once, then not before its window has passed", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const seen = new Calls();
    a.sink((value) => seen.note([value, host.monotonic()]), { throttleMs: 500 });
    await space.idle();
    await host.advance(100);
    a.set(1);
    await host.advance(100);
    a.set(2);
    await host.advance(1_000);
    a.set(3);
    await host.advance(1_000);
    expect(seen.take()).toEqual([
      [0, 0],
      [2, 500],
      [3, 1_200],
    ]);
  });

  test("[R2] [R1] clearing a gate lets the node run at once", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const [throttled, debounced] = ["throttled", "debounced"].map((id) =>
      scheduler.register({ kind: "effect", id, run: () => void a.get() }),
    );
    if (!throttled || !debounced) throw new Error("not registered");
    scheduler.setThrottle(throttled, 60_000);
    scheduler.setDebounce(debounced, 60_000);
    space.flush();
    a.set(1);
    space.flush();
    expect([throttled.runs, debounced.runs]).toEqual([1, 1]);
    scheduler.clearThrottle(throttled);
    scheduler.clearDebounce(debounced);
    await space.idle();
    expect([throttled.runs, debounced.runs]).toEqual([2, 2]);
    expect(host.monotonic()).toBe(0);
    expect(host.pendingTimers).toBe(0);
    expect(() => scheduler.setDebounce(debounced, -1)).toThrow("0 or more milliseconds");
  });

  for (const gate of ["debounceMs", "throttleMs"] as const) {
    test(`[R1] [R2] another ${gate} holds at once, counted from the change or run that the node waits after`, async () => {
      const { space, scheduler, host } = await setup();
      const a = space.cell<number>("a");
      a.set(0);
      await host.advance(5_000);
      const ran: number[] = [];
      const run = () => {
        a.get();
        ran.push(host.monotonic() - 5_000);
      };
      const [lowered, raised, passed] = ["lowered", "raised", "passed"].map((id) =>
        scheduler.register({ kind: "effect", id, run, [gate]: 1_000 }),
      );
      if (!lowered || !raised || !passed) throw new Error("not registered");
      const set = (node: typeof lowered, ms: number) =>
        gate === "debounceMs" ? scheduler.setDebounce(node, ms) : scheduler.setThrottle(node, ms);
      await space.idle();
      a.set(1);
      await host.advance(100);
      ran.length = 0;
      set(lowered, 300);
      set(raised, 2_000);
      set(passed, 50);
      await host.advance(0);
      expect(ran).toEqual([100]);
      await host.advance(199);
      expect(ran).toEqual([100]);
      await host.advance(10_000);
      scheduler.checkInvariants();
      expect(ran).toEqual([100, 300, 2_000]);
    });
  }

  describe("a gate that is set on a node without one", () => {
    /** A node that has run at 1,000 ms, with the times of its runs. */
    async function observed(gates: { readonly throttleMs?: number } = {}) {
      const { space, scheduler, host } = await setup();
      const a = space.cell<number>("a");
      a.set(0);
      await host.advance(1_000);
      const ran: number[] = [];
      const run = () => {
        a.get();
        ran.push(host.monotonic());
      };
      const node = scheduler.register({ kind: "effect", id: "node", run, ...gates });
      await space.idle();
      return { space, scheduler, host, a, node, ran };
    }

    test("[R2] a first throttle counts from when it is set", async () => {
      const { scheduler, host, a, node, ran } = await observed();
      scheduler.setThrottle(node, 500);
      await host.advance(10);
      a.set(1);
      await host.advance(2_000);
      a.set(2);
      await host.advance(2_000);
      expect(ran).toEqual([1_000, 1_500, 3_010]);
    });

    test("[R2] a throttle that is taken away and set again counts from the last run, with or without it", async () => {
      const { scheduler, host, a, node, ran } = await observed({ throttleMs: 500 });
      scheduler.clearThrottle(node);
      await host.advance(10);
      scheduler.setThrottle(node, 500);
      a.set(1);
      await host.advance(490);
      expect(ran).toEqual([1_000, 1_500]);
      scheduler.clearThrottle(node);
      a.set(2);
      await host.advance(100);
      scheduler.setThrottle(node, 500);
      a.set(3);
      await host.advance(2_000);
      expect(ran).toEqual([1_000, 1_500, 1_500, 2_000]);
    });

    test("[R1] a debounce of a node that waits for its throttle counts from the change", async () => {
      const { scheduler, host, a, node, ran } = await observed({ throttleMs: 100 });
      await host.advance(10);
      a.set(1);
      await host.advance(10);
      scheduler.setDebounce(node, 500);
      await host.advance(2_000);
      expect(ran).toEqual([1_000, 1_510]);
      scheduler.checkInvariants();
    });

    test("[R1] a first debounce of a node that has to run counts from when it is set", async () => {
      const { scheduler, host, a, node, ran } = await observed();
      scheduler.setBreakpoint(node, true);
      a.set(1);
      await host.advance(10);
      scheduler.setDebounce(node, 500);
      scheduler.setBreakpoint(node, false);
      await host.advance(2_000);
      expect(ran).toEqual([1_000, 1_510]);
    });
  });

  test("[R1] a debounce that is changed before the first run delays no run", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    const node = scheduler.register({ kind: "effect", id: "node", run: () => void a.get(), debounceMs: 10 });
    scheduler.setDebounce(node, 60_000);
    scheduler.setThrottle(node, 10);
    scheduler.setThrottle(node, 60_000);
    await host.advance(0);
    expect(node.runs).toBe(1);
  });

  test("[R3] an effect is debounced by itself after its third slow run, and not before", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const effect = scheduler.register({
      kind: "effect",
      id: "effect",
      run: () => host.elapse((a.get() ?? 0) < 0 ? 49 : 50),
    });
    const debounce = () => scheduler.getActionStats().find(({ id }) => id === "effect")?.debounceMs;
    const seen: unknown[] = [];
    // Those that are not slow do not count, and do not begin the count again.
    for (const value of [1, -1, 2, -2, 3, 4]) {
      await host.advance(1_000);
      seen.push([effect.runs, debounce()]);
      a.set(value);
    }
    await host.advance(1_000);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6].map((runs) => [runs, runs < 4 ? 0 : AUTO_DEBOUNCE_MS]));
  });

  test("[R3] an effect that is slow three times is debounced by itself", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const slow = (id: string, noAutoDebounce = false) =>
      scheduler.register({
        kind: "effect",
        id,
        noAutoDebounce,
        run: () => {
          a.get();
          host.elapse(60);
        },
      });
    const [effect, optedOut] = [slow("effect"), slow("opted out", true)];
    const computation = space.computed("computation", () => {
      host.elapse(60);
      return a.get();
    });
    computation.sink(() => undefined);
    for (let i = 0; i < 5; i++) {
      await host.advance(1_000);
      a.set(i + 1);
    }
    await host.advance(1_000);
    const debounce = (id: string) => scheduler.getActionStats().find((stats) => stats.id === id)?.debounceMs;
    expect(debounce("effect")).toBe(AUTO_DEBOUNCE_MS);
    expect(debounce("opted out")).toBe(0);
    expect(debounce("computation")).toBe(0);
    scheduler.setNoAutoDebounce(effect, true);
    expect(debounce("effect")).toBe(0);
    expect(optedOut.runs).toBe(6);
  });

  test("[R3] a debounce set by the application stays, however slow the effect is, until the policy is restored", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const effect = scheduler.register({
      kind: "effect",
      id: "effect",
      run: () => {
        a.get();
        host.elapse(60);
      },
    });
    const debounce = () => scheduler.getActionStats().find(({ id }) => id === "effect")?.debounceMs;
    const change = async (times: number) => {
      for (let i = 0; i < times; i++) {
        a.update((value = 0) => value + 1);
        await host.advance(1_000);
      }
    };
    await change(4);
    expect(debounce()).toBe(AUTO_DEBOUNCE_MS);
    scheduler.clearDebounce(effect);
    await change(4);
    expect(debounce()).toBe(0);
    scheduler.setNoAutoDebounce(effect, false);
    // Looked at again once in a while.
    await change(32);
    expect(debounce()).toBe(AUTO_DEBOUNCE_MS);
  });

  test("[R3] a pull is not debounced, however slow", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => {
      host.elapse(100);
      return a.get();
    });
    for (let i = 0; i < 5; i++) {
      a.set(i);
      expect(await slow.pull()).toBe(i);
    }
  });

  test("[R4] one timer serves all gates, and there is none while no node waits", async () => {
    const { space, host, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const cancels = [10, 20, 30].map((debounceMs) => a.sink(() => undefined, { debounceMs }));
    await space.idle();
    expect(host.pendingTimers).toBe(0);
    a.set(1);
    await space.idle();
    expect(host.pendingTimers).toBe(1);
    for (const cancel of cancels) cancel();
    expect(host.pendingTimers).toBe(0);
    expect(scheduler.getStats().gated).toBe(0);
  });

  test("[R4] idle does not wait for a node with a far gate that is removed, and no node runs after dispose", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const seen = new Calls();
    const cancel = a.sink(seen.note, { throttleMs: 3_600_000 });
    a.sink(seen.note, { debounceMs: 1_000 });
    await space.idle();
    a.set(1);
    await space.idle();
    cancel();
    await space.idle();
    scheduler.dispose();
    await host.advance(10_000);
    expect(seen.take()).toEqual([0, 0]);
    expect(host.pendingTimers).toBe(0);
  });

  test("[R5] a node at a breakpoint waits until it is taken away", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const node = scheduler.register({ kind: "effect", id: "watched", run: () => void a.get() });
    space.flush();
    scheduler.setBreakpoint(node, true);
    a.set(1);
    await host.advance(100_000);
    expect(node.runs).toBe(1);
    expect(scheduler.whyNot("watched")).toMatchObject({ kind: "gated", message: "is stopped by a breakpoint." });
    scheduler.setBreakpoint(node, false);
    await space.idle();
    expect(node.runs).toBe(2);
  });

  test("[R5] a breakpoint that is set while the node is queued stops it at its turn", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    space.effect(() => {
      const later = scheduler.find("later");
      if (a.get() === 1 && later) scheduler.setBreakpoint(later, true);
    });
    const later = scheduler.register({ kind: "effect", id: "later", run: () => void a.get() });
    space.flush();
    a.set(1);
    space.flush();
    expect(later.runs).toBe(1);
    scheduler.checkInvariants();
  });
});
