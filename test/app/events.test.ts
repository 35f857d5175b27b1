/**
 * Handlers of events in an app: transactions, and `run`, `commit`, `failed`, in simulated time with processes that are
 * killed.
 */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { AppParts } from "../../src/app/parts.ts";
import type { RunContext, Steps } from "../../src/index.ts";
import { type AppTx, app, type Failure, on, type } from "../../src/index.ts";
import { Machine } from "./app-setup.ts";

interface Order {
  price: number;
}

/** An app with one handler of the event `Order.Placed`, and a list of its commits. */
function shopWith(steps: Omit<Steps<Order, unknown>, "commit" | "failed">, told: string[] = []) {
  return app("shop", ({ cell, event }: AppParts) => {
    const log = cell<string[]>("log", []);
    const placed = event("Order.Placed", type<Order>());
    const note = (tx: AppTx, text: string) => tx.update(log, (all) => [...all, text]);
    return {
      commands: {
        "Shop.Order": (order: Order, tx: AppTx) => tx.emit(placed, order),
      },
      queries: { "Shop.Log": () => log.get() },
      on: {
        payment: on(placed, {
          ...steps,
          commit: (result, tx: AppTx, { price }: Order) => note(tx, `paid ${price} ${result}`),
          failed: (failure: Failure, tx: AppTx, { price }: Order) => {
            told.push(failure.message);
            note(tx, `failed ${price}`);
          },
        }),
      },
    };
  });
}

describe("on with a function", () => {
  test("[A15] is a transaction for each event, under the subscriber of its key", async () => {
    const machine = new Machine();
    const counter = app("counter", ({ cell, event }) => {
      const sum = cell("sum", 0);
      const added = event("Sum.Added", type<{ n: number }>());
      return {
        commands: { "Sum.Add": (data: { n: number }, tx) => tx.emit(added, data) },
        queries: { "Sum.Get": () => sum.get() },
        on: { total: on(added, ({ n }, tx) => tx.update(sum, (all) => all + n)) },
      };
    });
    const kernel = await machine.start(counter);
    for (const n of [1, 2, 3]) await machine.run(() => kernel.command("Sum.Add", { n }));
    await machine.advance(1_000);
    expect(await machine.run(() => kernel.query("Sum.Get"))).toBe(6);
    expect(kernel.kernel.bus.subscriptions()).toMatchObject([
      { subscriberId: "counter.total", handling: "transactional" },
    ]);
  });

  test("[A7] gets the output of the schema, and data that does not fit is a dead letter", async () => {
    const machine = new Machine();
    const seen: unknown[] = [];
    const paid = app("paid", ({ event }) => {
      const done = event("Order.Paid", z.object({ price: z.number(), currency: z.string().default("EUR") }));
      return {
        commands: { "Paid.Tell": (data: { price: number }, tx) => tx.emit(done, data) },
        on: { note: on(done, (data) => void seen.push(data)) },
      };
    });
    const kernel = await machine.start(paid);
    await machine.run(() => kernel.command("Paid.Tell", { price: 3 }));
    await machine.run(() => kernel.command("Journal.Publish", { type: "Order.Paid", data: { price: "much" } }));
    await machine.advance(1_000);
    expect(seen).toEqual([{ price: 3, currency: "EUR" }]);
    const { rows } = await machine.run(() => kernel.kernel.bus.failures());
    expect(rows).toMatchObject([{ error: expect.stringContaining("Order.Paid does not take this data: price") }]);
  });

  test("[A43] takes failed as an option: it takes effect once, with the failed status of the event", async () => {
    const machine = new Machine();
    const told: Failure[] = [];
    let attempts = 0;
    const shop = app("shop", ({ cell, event }) => {
      const log = cell<string[]>("log", []);
      const placed = event("Order.Placed", type<Order>());
      const book = (_: Order, tx: AppTx) => {
        attempts++;
        tx.push(log, "written by an attempt that fails");
        throw new Error("the book is full");
      };
      const failed = (failure: Failure, tx: AppTx, { price }: Order) => {
        told.push(failure);
        tx.push(log, `failed ${price}`);
      };
      return {
        commands: { "Shop.Order": (order: Order, tx) => tx.emit(placed, order) },
        queries: { "Shop.Log": () => log.get() },
        on: { book: on(placed, book, { retry: 3, failed }) },
      };
    });
    const kernel = await machine.start(shop);
    await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
    await machine.advance(600_000);
    expect(attempts).toBe(3);
    expect(told).toMatchObject([{ code: 500, message: "the book is full" }]);
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual(["failed 5"]);
    const { rows } = await machine.run(() => kernel.kernel.bus.failures());
    expect(rows).toMatchObject([{ topic: "Order.Placed", error: expect.stringContaining("the book is full") }]);
  });

  test("[A6] a command that emits data which the schema refuses fails without an event", async () => {
    const machine = new Machine();
    const wrong = app("wrong", ({ cell, event }) => {
      const count = cell("count", 0);
      const told = event("Wrong.Told", z.object({ n: z.number() }));
      return {
        commands: {
          "Wrong.Tell": (_, tx) => {
            tx.update(count, (n) => n + 1);
            tx.emit(told, { n: "1" } as never);
          },
        },
        queries: { "Wrong.Count": () => count.get() },
      };
    });
    const kernel = await machine.start(wrong);
    const refused = machine.run(() => kernel.safeCommand("Wrong.Tell"));
    expect(await refused).toMatchObject({ ok: false, failure: { message: expect.stringContaining("Wrong.Told") } });
    expect(await machine.run(() => kernel.query("Wrong.Count"))).toBe(0);
  });
});

describe("on with run, commit and failed", () => {
  test("[A16] [A17] run is retried under one idempotency key, and commit gets its result once", async () => {
    const machine = new Machine();
    const calls: Pick<RunContext, "idempotencyKey" | "attempt">[] = [];
    const run = async (_: Order, { idempotencyKey, attempt, signal }: RunContext) => {
      calls.push({ idempotencyKey, attempt });
      expect(signal.aborted).toBe(false);
      if (attempt < 3) throw new Error("the service is away");
      return `in attempt ${attempt}`;
    };
    const kernel = await machine.start(shopWith({ run, retry: 3 }));
    await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
    await machine.advance(600_000);
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual(["paid 5 in attempt 3"]);
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  });

  test("[A18] failed takes effect after the last attempt, and the event is a dead letter", async () => {
    const machine = new Machine();
    let calls = 0;
    const run = () => {
      calls++;
      throw new Error("the card is blocked");
    };
    const told: string[] = [];
    const kernel = await machine.start(shopWith({ run, retry: 3 }, told));
    await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
    await machine.advance(600_000);
    expect(calls).toBe(3);
    expect(told).toEqual(["the card is blocked"]);
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual(["failed 5"]);
    const { rows } = await machine.run(() => kernel.kernel.bus.failures());
    expect(rows).toMatchObject([{ topic: "Order.Placed", error: expect.stringContaining("the card is blocked") }]);
  });

  test("[A42] failed takes effect if processes died with the event until it is not tried again", async () => {
    const machine = new Machine();
    let runs = 0;
    const run = () => {
      runs++;
      return new Promise(() => machine.world.timer(5, () => machine.kill()));
    };
    const told: string[] = [];
    const shop = shopWith({ run, retry: 100 }, told);
    let kernel = await machine.start(shop);
    await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
    await machine.advance(60_000);
    while (told.length === 0 && runs < 20) {
      kernel = await machine.start(shop);
      await machine.advance(60_000);
    }
    expect(told).toEqual([expect.stringContaining("its process died")]);
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual(["failed 5"]);
    const { rows } = await machine.run(() => kernel.kernel.bus.failures());
    expect(rows).toMatchObject([{ topic: "Order.Placed", error: expect.stringContaining("its process died") }]);
  });

  test.each(["throws", "dies"])(
    "[A46] of commit and failed one takes effect, also if run %s when it is repeated",
    async (end) => {
      const logs = new Set<string>();
      for (let steps = 0; steps < 12; steps++) {
        const machine = new Machine();
        let runs = 0;
        const run = (): unknown => {
          runs++;
          if (runs === 1) return new Promise((resolve) => machine.world.timer(10, () => resolve(9)));
          if (end === "throws") throw new Error("already charged");
          return new Promise(() => machine.world.timer(5, () => machine.kill()));
        };
        const shop = shopWith({ run, retry: end === "throws" ? 1 : 100 }, []);
        const first = await machine.start(shop);
        await machine.run(() => first.command("Shop.Order", { price: 5 }));
        await machine.advance(9);
        for (let step = 0; step < steps; step++) await machine.world.step();
        machine.kill();
        let kernel = await machine.start(shop);
        await machine.advance(60_000);
        for (let start = 0; end === "dies" && start < 7; start++) {
          kernel = await machine.start(shop);
          await machine.advance(60_000);
        }
        const log = await machine.run(() => kernel.query("Shop.Log"));
        expect(log).toHaveLength(1);
        logs.add(String(log[0]));
      }
      // Kills before the commit, and kills after it.
      expect([...logs].sort()).toEqual(["failed 5", "paid 5 9"]);
    },
  );

  test("[A46] failed does not take effect if the last process that may handle the event dies after commit", async () => {
    const logs = new Set<string>();
    for (let steps = 0; steps < 12; steps++) {
      const machine = new Machine();
      let runs = 0;
      let isDead = false;
      const die = () => {
        isDead = true;
        machine.kill();
      };
      const run = () => {
        runs++;
        if (runs === 5) return new Promise((resolve) => machine.world.timer(10, () => resolve(9)));
        return new Promise(() => machine.world.timer(5, die));
      };
      const shop = shopWith({ run, retry: 100 });
      let kernel = await machine.start(shop);
      await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
      while (runs < 5) {
        await machine.advance(1);
        if (isDead) kernel = await machine.start(shop);
        isDead = false;
      }
      await machine.advance(9);
      for (let step = 0; step < steps; step++) await machine.world.step();
      machine.kill();
      kernel = await machine.start(shop);
      await machine.advance(60_000);
      const log = await machine.run(() => kernel.query("Shop.Log"));
      expect(log).toHaveLength(1);
      logs.add(String(log[0]));
    }
    expect([...logs].sort()).toEqual(["failed 5", "paid 5 9"]);
  });

  test("[A18] data that the event's schema refuses does not reach failed", async () => {
    const machine = new Machine();
    const told: unknown[] = [];
    const failed = (_failure: Failure, _tx: AppTx, data: unknown) => void told.push(data);
    const paid = app("paid", ({ event }) => {
      const done = event("Order.Paid", z.object({ price: z.number() }));
      return { on: { slow: on(done, { run: () => 1, failed }), note: on(done, () => undefined, { failed }) } };
    });
    const kernel = await machine.start(paid);
    await machine.run(() => kernel.command("Journal.Publish", { type: "Order.Paid", data: { price: "much" } }));
    await machine.advance(1_000);
    const { rows } = await machine.run(() => kernel.kernel.bus.failures());
    expect(rows).toHaveLength(1);
    expect(rows[0]?.error).not.toContain("onFailed");
    expect(told).toEqual([]);
  });

  test("[A19] [A18] a run that takes too long has failed, and its signal is aborted", async () => {
    const machine = new Machine();
    const reasons: unknown[] = [];
    const run = (_: Order, { signal }: RunContext) =>
      new Promise(() => signal.addEventListener("abort", () => reasons.push(signal.reason)));
    const told: string[] = [];
    const kernel = await machine.start(shopWith({ run, timeout: "5 s", retry: 2 }, told));
    await machine.run(() => kernel.command("Shop.Order", { price: 5 }));
    await machine.advance(600_000);
    expect(reasons).toHaveLength(2);
    expect(told).toEqual(["shop.payment: run took longer than 5000 ms"]);
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual(["failed 5"]);
  });

  test("[A17] a process that is killed at any moment commits each event once", async () => {
    // By the clock, and step by step around the end of the run: between its commit and the end of its delivery too.
    const moments = [...Array(20).keys()].map((n) => ({ ms: 3 * n, steps: 0 }));
    for (let steps = 0; steps < 40; steps++) moments.push({ ms: 9, steps });
    for (const { ms, steps } of moments) {
      const machine = new Machine();
      let runs = 0;
      // Each run has another result: the first that is committed stands.
      const run = async () => {
        const number = ++runs;
        await new Promise<void>((resolve) => machine.world.timer(10, resolve));
        return number;
      };
      const shop = shopWith({ run, retry: 2 });
      const first = await machine.start(shop);
      await machine.run(() => first.command("Shop.Order", { price: 5 }));
      await machine.advance(ms);
      for (let step = 0; step < steps; step++) await machine.world.step();
      machine.kill();
      const second = await machine.start(shop);
      await machine.advance(60_000);
      const log = await machine.run(() => second.query("Shop.Log"));
      expect(log).toHaveLength(1);
      expect(log[0]).toMatch(/^paid 5 \d$/);
    }
  });

  test("[A17] the commands behind commit and failed cannot be sent by others", async () => {
    const machine = new Machine();
    const kernel = await machine.start(shopWith({ run: () => 1 }));
    const sent = machine.run(() => kernel.kernel.command("ShopOn.PaymentCommit", { id: "x" }));
    await expect(sent).rejects.toMatchObject({ code: 409 });
    expect(await machine.run(() => kernel.query("Shop.Log"))).toEqual([]);
  });
});
