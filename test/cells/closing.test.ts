/** Closing a space: runs that are under way have a grace period, and are given up when it is over. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { DRAIN_MS, LAST_ANSWERS_MS } from "../../src/limits.ts";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

const forever = new Promise<never>(() => undefined);

async function site() {
  const here = await setup();
  const errors: string[] = [];
  here.scheduler.onError((error, node) =>
    errors.push(`${node?.id ?? "-"}: ${error instanceof Error ? error.message : error}`),
  );
  return {
    ...here,
    errors,
    /** Closes it, and says whether it has closed by then. */
    closedWithin: async (ms: number, closing: Promise<void>) => {
      let closed = false;
      closing.then(() => {
        closed = true;
      });
      await here.host.advance(ms);
      return closed;
    },
  };
}

describe("closing a space", () => {
  test("[R48] an effect that never ends is given up by name when the grace is over", async () => {
    const { space, errors, closedWithin } = await site();
    space.effect(() => forever, { id: "stuck" });
    const closing = space.close({ graceMs: 500 });
    expect(await closedWithin(499, closing)).toBe(false);
    expect(errors).toEqual([]);
    expect(await closedWithin(1, closing)).toBe(true);
    expect(errors).toEqual([expect.stringMatching(/^stuck: .*had not ended/)]);
  });

  test("[R48] the grace is that of a kernel unless given", async () => {
    const { space, closedWithin } = await site();
    space.effect(() => forever);
    const closing = space.close();
    expect(await closedWithin(DRAIN_MS - 1, closing)).toBe(false);
    expect(await closedWithin(1, closing)).toBe(true);
  });

  test("[R48] close waits for runs that end within the grace period", async () => {
    const { space, host, errors, open } = await site();
    const gate = new Gate();
    const saved = space.cell<string>("saved");
    space.effect(async (run) => {
      await gate.opened;
      run.within(() => saved.set("all of it"));
    });
    const closing = space.close({ graceMs: 500 });
    await host.advance(100);
    gate.open();
    await host.run(() => closing);
    expect(errors).toEqual([]);
    const next = await open();
    expect(await host.run(() => next.space.cell("saved").pull())).toBe("all of it");
  });

  test("[R48] writes of a run that was given up have no effect", async () => {
    const { space, host, open, closedWithin } = await site();
    const gate = new Gate();
    const seen: unknown[] = [];
    space.effect(
      async (run) => {
        space.cell("first").set("before the await");
        await gate.opened;
        const late = (write: () => void) => {
          try {
            write();
          } catch (error) {
            seen.push(error);
          }
        };
        late(() => space.cell("plain").set("after it"));
        late(() => run.within(() => space.cell("second").set("after it")));
      },
      { id: "late" },
    );
    expect(await closedWithin(10, space.close({ graceMs: 10 }))).toBe(true);
    gate.open();
    await host.advance(0);
    expect(String(seen)).toMatch(/space "s" is closed.*late was removed/);
    const next = await open();
    const cells = ["first", "plain", "second"].map((id) => next.space.cell(id));
    const kept = await host.run(() => Promise.all(cells.map((cell) => cell.pull())));
    expect(kept).toEqual(["before the await", undefined, undefined]);
  });

  test("[R48] close ends pending idle, settled and pull calls", async () => {
    const { space, host, closedWithin } = await site();
    space.effect(() => forever);
    await host.advance(0);
    const waits = [space.idle(), space.settled()];
    const pulled = space
      .cell("a")
      .pull()
      .catch((error: unknown) => error);
    expect(await closedWithin(10, space.close({ graceMs: 10 }))).toBe(true);
    await host.run(() => Promise.all(waits));
    expect(await host.run(() => pulled)).toMatchObject({ code: "SCHEDULER_CLOSED" });
  });

  test("[R48] a handler that never ends is given up, and those behind it: dropped, and handled once after the next start", async () => {
    const { space, host, errors, open, closedWithin } = await site();
    const gate = new Gate();
    const stream = space.stream<number>("orders");
    stream.handle(async (value, { within }) => {
      within(() => space.cell<number[]>("handled").push(value));
      await gate.opened;
    });
    const sent = [1, 2].map((value) => stream.send(value, { id: `order ${value}`, session: "shop" }));
    expect(await closedWithin(10, space.close({ graceMs: 10 }))).toBe(true);
    for (const { outcome } of sent) {
      expect(await host.run(() => outcome)).toMatchObject({ kind: "dropped", reason: "closed" });
    }
    expect(errors).toEqual([expect.stringMatching(/2 sends .*stream orders.*had not ended/)]);
    // The writes of the handler are dropped, though it ends well now.
    gate.open();
    await host.advance(0);
    const next = await open();
    const orders = next.space.stream<number>("orders");
    orders.handle((value) => next.space.cell<number[]>("handled").push(value));
    const again = [1, 2, 1].map((value) => orders.send(value, { id: `order ${value}`, session: "shop" }).outcome);
    const kinds = (await host.run(() => Promise.all(again))).map(({ kind }) => kind);
    expect(kinds).toEqual(["handled", "handled", "already"]);
    expect(await host.run(() => next.space.cell("handled").pull())).toEqual([1, 2]);
  });

  test("[R48] close gives up a send that waits for a closed gate; a cycle does not delay close", async () => {
    const { space, host, errors, closedWithin } = await site();
    const next = (id: string) => () => (space.cell<number>(id).get() ?? 0) + 1;
    const left = space.computed("left", next("right"));
    space.computed("right", next("left"));
    left.sink(() => undefined);
    const source = space.cell<number>("source");
    const slow = space.computed("slow", () => source.get(), { throttleMs: 60_000 });
    slow.sink(() => undefined);
    await host.advance(0);
    const [orders, bills] = [space.stream<number>("orders"), space.stream<number>("bills")];
    orders.handle(() => space.cell("total").set(left.get()));
    bills.handle(() => space.cell("bill").set(slow.get()));
    source.set(1);
    const outcomes = [orders.send(1).outcome, bills.send(1).outcome];
    expect(await closedWithin(5_000, space.close({ graceMs: 5_000 }))).toBe(true);
    expect(await host.run(() => Promise.all(outcomes))).toMatchObject([
      { kind: "handled" },
      { kind: "dropped", reason: "closed" },
    ]);
    expect(errors.join("\n")).toMatch(/1 send .*stream bills.*waited for nodes \(gated: slow\)/);
  });

  test("[R48] close gives up a commit without an answer, and the sender's outcome is unknown", async () => {
    const { space, host, line, errors, open, closedWithin } = await site();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    const stream = space.stream<number>("orders");
    stream.handle((value) => space.cell("order").set(value));
    const { outcome } = stream.send(1, { id: "order", session: "shop" });
    // Its receipt is looked for first.
    await host.advance(0);
    const transacted = space.transact(() => space.cell("other").set(1)).catch((error: unknown) => error);
    expect(await closedWithin(10 + LAST_ANSWERS_MS, space.close({ graceMs: 10 }))).toBe(true);
    expect(await host.run(() => outcome)).toMatchObject({
      kind: "failed",
      reason: "gave-up",
      rejection: { class: "unknown" },
    });
    expect(await host.run(() => transacted)).toMatchObject({
      code: "TRANSACTION_REJECTED",
      rejection: { class: "unknown" },
    });
    expect(errors.join("\n")).toMatch(/not answered 2 commits/);
    gate.open();
    await host.advance(0);
    // It was made, and the receipt knows.
    const next = await open();
    const orders = next.space.stream<number>("orders");
    orders.handle(() => undefined);
    const again: SendOutcome = await host.run(() => orders.send(1, { id: "order", session: "shop" }).outcome);
    expect(again.kind).toBe("already");
  });

  test("[R48] a store that answers a little late is waited for, however short the grace", async () => {
    const { space, host, line, errors, open, closedWithin } = await site();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    space.cell("a").set(1);
    const closing = space.close({ graceMs: 0 });
    expect(await closedWithin(LAST_ANSWERS_MS - 1, closing)).toBe(false);
    gate.open();
    await host.run(() => closing);
    expect(errors).toEqual([]);
    expect(await host.run(async () => (await open()).space.cell("a").pull())).toBe(1);
  });

  test("[R48] closing twice is closing once", async () => {
    const { space, host, errors } = await site();
    space.effect(() => forever, { id: "stuck" });
    const closings = [space.close({ graceMs: 10 }), space.close({ graceMs: 1_000_000 }), space[Symbol.asyncDispose]()];
    await host.advance(10);
    await Promise.all(closings);
    expect(errors).toHaveLength(1);
    await space.close();
  });
});

describe("closing one of several spaces of a scheduler", () => {
  test("[R48] a closed space removes its registrations, and other spaces go on", async () => {
    const { space, host, scheduler } = await setup();
    const disk = new MemoryDisk();
    const a = space.cell<number>("a");
    a.set(1);
    const seen = new Calls();
    a.sink(seen.note);
    await host.run(() => space.settled());
    const before = scheduler.getStats().nodes;
    const runs = new Calls();
    const heard = new Calls();
    for (let times = 1; times <= 3; times++) {
      const other = await Space.open({ store: memoryStore({ host, disk }), host, name: "t", scheduler });
      const b = other.cell<number>("b");
      const list = other.cell<number[]>("list");
      const sum = other.computed("sum", () => (a.get() ?? 0) + (b.get() ?? 0));
      sum.sink(heard.note);
      other.map("double", list, (element) => (element.get() ?? 0) * 2).sink(heard.note);
      other.effect(() => runs.note(a.get()));
      space.effect(() => runs.note(["here", sum.get()]))();
      b.set(times);
      list.set([1, times]);
      await host.run(() => other.settled());
      expect(heard.take().at(-1)).toEqual([2, times * 2]);
      await host.run(() => other.close());
      expect(scheduler.getStats().nodes).toBe(before);
    }
    runs.take();
    heard.take();
    a.set(2);
    await host.run(() => space.settled());
    expect([seen.take(), runs.take(), heard.take()]).toEqual([[1, 2], [], []]);
    scheduler.checkInvariants();
    expect(scheduler.runDiagnosis().contradiction).toBeUndefined();
    await host.run(() => space.close());
  });
});
