/**
 * Transactions that read computed values: the read set contains the inputs of the values, and the values are up to
 * date.
 */
import { describe, expect, test } from "#test";
import { transactional } from "../../src/loop/transactional.ts";
import { ComputedError } from "../../src/scheduler/computed-error.ts";
import { rejected } from "../../src/store/rejection.ts";
import { command, setup as loopSetup } from "../loop/loop-setup.ts";
import { setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

async function tenfold() {
  const site = await setup();
  const { space } = site;
  const a = space.cell<number>("a", 1);
  const out = space.cell<number>("out");
  const total = space.computed("total", () => (a.get() ?? 0) * 10);
  return { ...site, a, out, total };
}

describe("transact and computed values", () => {
  test("[R28] transact brings an unobserved computed value up to date, also if it has never run", async () => {
    const { space, host, a, out, total } = await tenfold();
    await host.run(() => total.pull());
    a.set(5);
    await host.run(() => space.settled());
    await host.run(() => space.transact(() => out.set(total.get() ?? -1)));
    expect(out.get()).toBe(50);
    const fresh = space.computed("fresh", () => (total.get() ?? 0) + 1);
    await host.run(() => space.transact(() => out.set(fresh.get() ?? -1)));
    expect(out.get()).toBe(51);
    await host.run(() => space.close());
  });

  test("[R28] an observed computed value includes the turn's earlier writes, and transact runs at once", async () => {
    const { space, host, a, out, total } = await tenfold();
    total.sink(() => undefined);
    await host.run(() => space.settled());
    a.set(8);
    const done = space.transact(() => out.set(total.get() ?? -1));
    expect(out.get()).toBe(80);
    await host.run(() => done);
    await host.run(() => space.close());
  });

  test("[R28] many of them take one more run of the code", async () => {
    const { space, host, a, out } = await tenfold();
    const many = Array.from({ length: 200 }, (_, index) => space.computed(`c${index}`, () => (a.get() ?? 0) + index));
    let runs = 0;
    await host.run(() =>
      space.transact(() => {
        runs++;
        out.set(many.reduce((sum, one) => sum + (one.get() ?? 0), 0));
      }),
    );
    expect(out.get()).toBe(200 + (199 * 200) / 2);
    expect(runs).toBe(2);
    await host.run(() => space.close());
  });

  test("[R28] transact needs no time window for values that it can compute at once", async () => {
    const { space, host, a, out, total } = await tenfold();
    await host.run(() => a.pull());
    await host.run(() => space.transact(() => out.set(total.get() ?? -1), { windowMs: 0 }));
    expect(out.get()).toBe(10);
    await host.run(() => space.close());
  });

  test("[R28] an asynchronous one is waited for", async () => {
    const { space, host, a, out } = await tenfold();
    const later = space.computed("later", async () => {
      const value = a.get() ?? 0;
      await host.yield();
      return value * 100;
    });
    await host.run(() => space.transact(() => out.set(later.get() ?? -1)));
    expect(out.get()).toBe(100);
    await host.run(() => space.close());
  });

  test("[R28] transact fails with the name of a computed value behind a closed gate", async () => {
    const { space, host, out, total, scheduler } = await tenfold();
    total.sink(() => undefined);
    await host.run(() => space.settled());
    scheduler.setBreakpoint(total.node, true);
    space.cell<number>("a").set(2);
    const refused = host.run(() => space.transact(() => out.set(total.get() ?? -1), { windowMs: 100 }));
    await expect(refused).rejects.toThrow("in 100 ms: total is not up to date");
    expect(out.get()).toBeUndefined();
    scheduler.setBreakpoint(total.node, false);
    await host.run(() => space.close());
  });

  test("[R28] an asynchronous effect may read values in transact that do not depend on it", async () => {
    const { space, host, out, total } = await tenfold();
    total.sink(() => undefined);
    const trigger = space.cell<number>("trigger", 0);
    space.effect(async () => {
      const round = trigger.get() ?? 0;
      await host.yield();
      await space.transact(() => out.set((total.get() ?? 0) + round));
    });
    await host.run(() => space.settled());
    expect(out.get()).toBe(10);
    await host.run(() => space.close());
  });
});

describe("begin and computed values", () => {
  test("[R29] begin brings an unobserved computed value up to date", async () => {
    const { space, host, a, total } = await tenfold();
    await host.run(() => total.pull());
    a.set(6);
    await host.run(() => space.settled());
    using tx = space.begin();
    expect(tx.get(total)).toBe(60);
    tx.abort();
    await host.run(() => space.close());
  });

  test("[R29] a begin transaction reads computed values without its own writes, and is stale if their inputs change", async () => {
    const { space, host, a, out, total } = await tenfold();
    await host.run(() => a.pull());
    using tx = space.begin();
    tx.set(a, 7);
    expect(tx.get(total)).toBe(10);
    tx.abort();
    using moved = space.begin();
    moved.set(out, moved.get(total) ?? -1);
    a.set(100);
    await host.run(() => space.settled());
    expect(await host.run(() => moved.commit())).toMatchObject({ kind: "rejected", reason: "read-moved" });
    expect(out.get()).toBeUndefined();
    await host.run(() => space.close());
  });

  test("[R29] an earlier plain write does not make a begin transaction stale", async () => {
    const { space, host, a, out, total } = await tenfold();
    const before = space.begin();
    a.set(9);
    before.set(out, (before.get(total) ?? 0) + (before.get(a) ?? 0));
    expect(await host.run(() => before.commit())).toMatchObject({ kind: "committed" });
    expect(out.get()).toBe(99);
    await host.run(() => space.close());
  });

  test("[R29] begin refuses an asynchronous computed value until it was pulled", async () => {
    const { space, host, a, out } = await tenfold();
    const later = space.computed("later", async () => {
      const value = a.get() ?? 0;
      await host.yield();
      return value * 100;
    });
    const early = space.begin();
    expect(() => early.get(later)).toThrow(ComputedError);
    expect(() => early.commit()).toThrow("is not up to date");
    early.abort();
    await host.run(() => later.pull());
    const tx = space.begin();
    tx.set(out, tx.get(later) ?? -1);
    expect(await host.run(() => tx.commit())).toMatchObject({ kind: "committed" });
    expect(out.get()).toBe(100);
    await host.run(() => space.close());
  });
});

describe("begin and links of computed values", () => {
  async function chosen() {
    const site = await setup();
    const { space, host } = site;
    const isFirst = space.cell<boolean>("isFirst", true);
    const [x, y] = [space.cell<{ n: number }>("x"), space.cell<{ n: number }>("y")];
    x.set({ n: 1 });
    y.set({ n: 2 });
    const either = space.ifElse("either", isFirst, x, y);
    await host.run(() => either.pull());
    isFirst.set(false);
    await host.run(() => space.settled());
    return { ...site, isFirst, x, y, either };
  }

  test("[R29] are followed where they lead now, by reads and by writes", async () => {
    const { space, host, x, y, either } = await chosen();
    const tx = space.begin();
    expect(tx.get(either)).toEqual({ n: 2 });
    tx.set(either.key("n"), 5);
    expect(await host.run(() => tx.commit())).toMatchObject({ kind: "committed" });
    expect([x.get(), y.get()]).toEqual([{ n: 1 }, { n: 5 }]);
    await host.run(() => space.close());
  });

  test("[R29] make it stale when they lead elsewhere meanwhile", async () => {
    const { space, host, isFirst, x, y, either } = await chosen();
    const tx = space.begin();
    tx.set(either.key("n"), 5);
    isFirst.set(true);
    await host.run(() => space.settled());
    expect(await host.run(() => tx.commit())).toMatchObject({ kind: "rejected", reason: "read-moved" });
    expect([x.get(), y.get()]).toEqual([{ n: 1 }, { n: 2 }]);
    await host.run(() => space.close());
  });
});

describe("computed values in the midst of other code", () => {
  test("[R29] a computed value that is read inside another transaction does not have its writes", async () => {
    const { space, host, a, total } = await tenfold();
    const other = space.computed("other", () => (a.get() ?? 0) + 1_000);
    await host.run(() => a.pull());
    const tx = space.begin();
    expect(tx.get(total)).toBe(10);
    const undone = host.run(() =>
      space.transact(() => {
        a.set(50);
        expect([tx.get(other), other.get(), a.get()]).toEqual([1_001, 1_001, 50]);
        throw new Error("taken back");
      }),
    );
    await expect(undone).rejects.toThrow("taken back");
    tx.abort();
    expect(await host.run(() => other.pull())).toBe(1_001);
    await host.run(() => space.close());
  });

  test("[R29] an effect inside a pass reads up-to-date values in a transaction", async () => {
    const { space, host, a, total } = await tenfold();
    const seen: unknown[] = [];
    total.sink(() => undefined);
    for (let n = 0; n < 5; n++) {
      space.effect(() => {
        a.get();
        if (total.get() === undefined) return;
        using tx = space.begin();
        seen.push(tx.get(total));
      });
    }
    space.flush();
    seen.length = 0;
    a.set(2);
    space.flush();
    expect(seen).toEqual([20, 20, 20, 20, 20]);
    await host.run(() => space.close());
  });

  test("[R28] [R29] any number of transactions in one turn find them up to date", async () => {
    const { space, host, a, out, total } = await tenfold();
    for (let n = 1; n <= 50; n++) {
      a.set(n);
      using tx = space.begin();
      expect(tx.get(total)).toBe(n * 10);
    }
    const done: Promise<void>[] = [];
    for (let n = 1; n <= 50; n++) {
      a.set(n);
      done.push(space.transact(() => out.set(total.get() ?? -1)));
      expect(out.get()).toBe(n * 10);
    }
    await host.run(() => Promise.all(done));
    await host.run(() => space.close());
  });

  test("[R28] code that makes a computed value reads it in the same run", async () => {
    const { space, host, a, out } = await tenfold();
    await host.run(() => a.pull());
    let made = 0;
    await host.run(() => space.transact(() => out.set(space.computed(`c${made++}`, () => a.get() ?? 0).get() ?? -1)));
    expect([out.get(), made]).toEqual([1, 1]);
    await host.run(() => space.close());
  });

  test("[R29] [R46] code that waits for another asynchronous value each time ends with its window", async () => {
    const { space, host, out } = await tenfold();
    let made = 0;
    const next = () => space.computed(`c${made++}`, async () => host.yield().then(() => 1));
    const endless = space.transact(() => out.set(next().get() ?? -1), { windowMs: 50 });
    await expect(host.run(() => endless)).rejects.toThrow("is not up to date");
    expect(out.get()).toBeUndefined();
    await host.run(() => space.close());
  });
});

describe("transactional handlers and computed values", () => {
  test("[L32] a transactional handler reads computed values up to date: observed, unobserved and asynchronous", async () => {
    const { space, host } = await setup();
    const spent = space.cell<number>("spent", 0);
    const left = space.computed("left", () => 100 - (spent.get() ?? 0));
    const rounded = space.computed("rounded", async () => {
      const value = left.get() ?? 0;
      await host.yield();
      return Math.floor(value / 10) * 10;
    });
    const budget = transactional({
      space,
      description: "spends",
      commands: {
        "Budget.Spend": {
          handle: (amount: number, tx) => {
            if ((tx.get(rounded) ?? 0) < amount) return false;
            tx.set(spent, (tx.get(spent) ?? 0) + amount);
            return true;
          },
        },
      },
    });
    const { loop, client } = await loopSetup({ budget }, { host });
    const one = client();
    for (let n = 0; n < 3; n++) {
      loop.receive(command("Budget.Spend", `spend-${n}`, 60), one);
      await host.advance(1_000);
    }
    expect(one.received.map(({ data }) => data)).toEqual([true, false, false]);
    expect(spent.get()).toBe(60);
  });
});

describe("nodes that a transaction has read", () => {
  test("[R29] [I6] may be looked at any number of times, also after each write of plain code", async () => {
    const { space, scheduler, a, total } = await tenfold();
    const lines: string[] = [];
    scheduler.onConsole((line) => lines.push(line));
    using tx = space.begin();
    const seen = Array.from({ length: 30 }, (_, i) => {
      a.set(i);
      return tx.get(total);
    });
    expect([seen.at(-1), lines, scheduler.runDiagnosis().nonSettling]).toEqual([290, [], []]);
    tx.abort();
  });

  test("[I2] [R8] nodes that a transaction read become dormant after it, as do nodes that it created", async () => {
    for (const how of ["begin", "transact"] as const) {
      const { space, scheduler, host } = await setup();
      const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
      a.set(1);
      b.set(1);
      let runs = 0;
      const child = () => {
        runs++;
        return b.get() ?? 0;
      };
      const whole = space.computed("whole", () => (a.get() ?? 0) + (space.computed("child", child).get() ?? 0));
      await host.run(() => space.settled());
      if (how === "begin") {
        using tx = space.begin();
        expect(tx.get(whole)).toBe(2);
        tx.abort();
      } else expect(await host.run(() => space.transact(() => whole.get()))).toBe(2);
      expect([how, scheduler.find("child")?.live]).toEqual([how, false]);
      b.set(2);
      await host.run(() => space.settled());
      expect([how, runs]).toEqual([how, 1]);
      scheduler.checkInvariants();
    }
  });

  test("[I2] does not run while the store has the commit, and is up to date if the code runs again", async () => {
    const { space, host, line, quiet } = await setup();
    const [a, out] = [space.cell<number>("a"), space.cell<number>("out")];
    a.set(1);
    out.set(0);
    await host.run(() => space.settled());
    let runs = 0;
    const total = space.computed("total", () => {
      runs++;
      return (a.get() ?? 0) * 10;
    });
    const gate = new Gate();
    let isFirst = true;
    line.plan = ({ method }) => {
      if (method !== "commit" || !isFirst) return {};
      isFirst = false;
      return { answered: gate.opened, instead: rejected("stale", "read-moved", "somebody was faster") };
    };
    const done = space.transact(() => out.set(total.get() ?? -1));
    await quiet();
    for (let value = 2; value < 6; value++) {
      a.set(value);
      await quiet();
    }
    expect(runs).toBe(1);
    gate.open();
    await host.run(() => done);
    expect([out.get(), runs]).toEqual([50, 2]);
  });
});
