/** The test kit for whole kernels: simulated time, crashes and restarts, typed by the app. */
import { describe, expect, test } from "vitest";
import { app } from "../../src/app/app.ts";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";
import { cron } from "../../src/app/schedule.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { testKernel } from "../../src/test-kernel.ts";

const shop = app("shop", ({ cell, computed, event }) => {
  const prices = cell<number[]>("prices", []);
  const reports = cell<number[]>("reports", []);
  const mails = cell<number>("mails", 0);
  const sum = computed("sum", () => prices.get().reduce((a, b) => a + b, 0));
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { price: number }, tx) => {
        if (order.price < 0) return tx.refuse("TOO_CHEAP", { data: { least: 0 } });
        tx.update(prices, (all) => [...all, order.price]);
        tx.emit(placed, order);
        return { orders: tx.get(prices).length };
      },
    },
    queries: { "Shop.Sum": () => sum.get(), "Shop.Reports": () => reports.get(), "Shop.Mails": () => mails.get() },
    on: {
      mail: on(
        placed,
        ({ price }, tx) => {
          if (price === 13) throw new Error("no mail about 13");
          tx.update(mails, (n) => n + 1);
        },
        { retry: 2 },
      ),
    },
    schedules: { report: cron("0 9 * * *", ({ at }, tx) => tx.update(reports, (all) => [...all, at])) },
  };
});

/** Capabilities, as programs without an app declare them. */
function ledger({ space }: KernelParts) {
  const total = space.cell<number>("total", 0);
  return {
    ledger: transactional({
      space,
      description: "adds up",
      commands: {
        "Ledger.Add": {
          handle: (amount, tx) => {
            tx.set(total, Number(tx.get(total)) + Number(amount));
            return tx.get(total);
          },
        },
      },
      queries: { "Ledger.Total": { handle: async () => await total.pull() } },
    }),
  };
}

const DAY_MS = 86_400_000;

describe("a kernel in a test", () => {
  test("[T60] a value that is no app is refused with what it takes", async () => {
    for (const wrong of [undefined, null, 3, "shop"])
      await expect(testKernel(wrong as never)).rejects.toThrow("takes an app, a list of apps or capabilities");
  });

  test("[T60] calls have the types of the app, and are answered in simulated time", async () => {
    await using t = await testKernel(shop, { seed: 7 });
    const { orders } = await t.command("Shop.Order", { price: 30 });
    const sum: number = await t.query("Shop.Sum");
    expect([orders, sum]).toEqual([1, 30]);
    // @ts-expect-error a query is no command
    await expect(t.command("Shop.Sum")).rejects.toMatchObject({ code: 404 });
    const refused = await t.safeCommand("Shop.Order", { price: -1 });
    expect(refused.ok ? undefined : refused.failure).toMatchObject({ reason: "TOO_CHEAP", data: { least: 0 } });
  });

  test("[T60] capabilities are tested as well as apps", async () => {
    await using t = await testKernel(ledger);
    await t.command("Ledger.Add", 2);
    await t.crash();
    expect(await t.command("Ledger.Add", 3)).toBe(5);
  });

  test("[T60] several calls may wait at once", async () => {
    await using t = await testKernel(shop);
    await Promise.all([1, 2, 3].map((price) => t.command("Shop.Order", { price })));
    expect(await t.query("Shop.Sum")).toBe(6);
  });

  test("[T61] time passes only as the test says, and schedules fall due in it", async () => {
    await using t = await testKernel(shop);
    const began = t.host.now();
    await t.settle();
    expect(t.host.now()).toBe(began);
    await t.advance("2 d");
    expect(t.host.now()).toBe(began + 2 * DAY_MS);
    const reports = await t.query("Shop.Reports");
    expect(reports.map((at) => new Date(at).toISOString())).toEqual([
      ...["2026-01-01T09:00:00.000Z", "2026-01-02T09:00:00.000Z"],
    ]);
    await expect(async () => t.advance("soon" as "1 s")).rejects.toThrow('text like "5 min"');
  });

  test("[T62] settle runs all work that needs no time", async () => {
    await using t = await testKernel(shop);
    await t.command("Shop.Order", { price: 30 });
    await t.settle();
    expect(await t.query("Shop.Mails")).toBe(1);
  });

  test("[T63] an answered command survives a crash, and its event takes effect once", async () => {
    await using t = await testKernel(shop);
    await t.command("Shop.Order", { price: 30 }, { id: "order 1" });
    const before = t.kernel;
    await t.crash();
    expect(t.kernel).not.toBe(before);
    expect(await t.query("Shop.Sum")).toBe(30);
    expect(await t.command("Shop.Order", { price: 30 }, { id: "order 1" })).toEqual({ orders: 1 });
    await t.advance("5 min");
    expect(await t.query("Shop.Mails")).toBe(1);
  });

  test("[T63] a call that waits while the process is killed fails as not reachable", async () => {
    await using t = await testKernel(shop);
    const waiting = t.command("Shop.Order", { price: 30 }).catch((error: unknown) => error);
    const crashed = t.crash();
    expect(await waiting).toMatchObject({ name: "Failure", code: 503, reason: "NOT_REACHABLE" });
    await crashed;
    expect(await t.query("Shop.Sum")).toBe(0);
  });

  test("[T64] a restart keeps the state, and may run another version of the app", async () => {
    await using t = await testKernel(ledger);
    await t.command("Ledger.Add", 2);
    await t.restart();
    expect(await t.query("Ledger.Total")).toBe(2);
    await t.restart(({ space }) => {
      const total = space.cell<number>("total", 0);
      const queries = { "Ledger.Double": { handle: async () => 2 * (await total.pull()) } };
      return { ledger: transactional({ space, description: "doubles", queries }) };
    });
    expect(await t.query("Ledger.Double")).toBe(4);
  });

  test("[T65] dead letters and faults are there to look at", async () => {
    await using t = await testKernel(shop);
    await t.command("Shop.Order", { price: 13 });
    await t.advance("1 h");
    const [letter, ...others] = await t.deadLetters();
    expect(others).toEqual([]);
    expect(letter).toMatchObject({ status: "failed", error: expect.stringContaining("no mail about 13") });
    expect(t.takeFaults().length).toBeGreaterThan(0);
    expect(t.takeFaults()).toEqual([]);
  });

  test("[T66] the same seed gives the same run", async () => {
    const run = async (seed: number) => {
      await using t = await testKernel(shop, { seed });
      await Promise.all([1, 2, 3].map((price) => t.command("Shop.Order", { price })));
      await t.crash();
      await t.advance("10 min");
      return { trace: t.host.traceHash(), id: t.host.id() };
    };
    const first = await run(3);
    expect(await run(3)).toEqual(first);
    expect((await run(4)).id).not.toBe(first.id);
  });
});
