/** An app on a kernel: its state, its commands and queries, how it is called, and its mistakes. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { App } from "../../src/app/app.ts";
import type { BuiltInCommands, BuiltInQueries } from "../../src/app/built-in.ts";
import type { Definition } from "../../src/app/definition.ts";
import type { AppParts } from "../../src/app/parts.ts";
import type { Cell } from "../../src/cells/cell.ts";
import { type AppTx, app, command, cron, Failure, index, type Json, on, open, query, type } from "../../src/index.ts";
import { scratchFolder } from "../repo/program.ts";
import { openOn, STORES } from "./app-setup.ts";

const shopOf = ({ cell, computed, event }: AppParts) => {
  const prices = cell<number[]>("prices", []);
  const stock = cell("stock", 2);
  const sum = computed("sum", () => prices.get().reduce((a, b) => a + b, 0));
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { price: number }, tx: AppTx) => {
        tx.update(prices, (all) => [...all, order.price]);
        tx.emit(placed, order);
        if (tx.get(stock) === 0)
          return tx.refuse("SOLD_OUT", { data: { asked: order.price }, message: "nothing is left" });
        tx.update(stock, (left) => left - 1);
        return { orders: tx.get(prices).length };
      },
    },
    queries: {
      "Shop.Sum": () => sum.get(),
      "Shop.Prices": () => prices.get(),
      "Shop.Above": (data: { least: number }) => prices.get().filter((price) => price >= data.least),
    },
    events: { placed },
  };
};
const shop = app("shop", shopOf);

describe.each(STORES)("an app on %s", (store) => {
  test("[A1] [A8] a command's writes and its answer are one commit, in a space of the app's name", async () => {
    const kernel = await openOn(store, shop);
    expect(await kernel.command("Shop.Order", { price: 30 })).toEqual({ orders: 1 });
    expect(await kernel.command("Shop.Order", { price: 12 })).toEqual({ orders: 2 });
    expect(await kernel.query("Shop.Sum")).toBe(42);
    expect(await kernel.query("Shop.Above", { least: 20 })).toEqual([30]);
    expect(kernel.kernel.apps.spaces.map(({ name }) => name)).toEqual(["shop"]);
    expect([...kernel.kernel.loop.actors.keys()]).toContain("shop");
  });

  test("[A12] a refusal rolls back its writes and events, and tells its reason", async () => {
    const kernel = await openOn(store, shop);
    await kernel.command("Shop.Order", { price: 1 });
    await kernel.command("Shop.Order", { price: 2 });
    const refused = await kernel.safeCommand("Shop.Order", { price: 3 });
    expect(refused).toMatchObject({
      ok: false,
      failure: { code: 409, reason: "SOLD_OUT", data: { asked: 3 }, message: "nothing is left" },
    });
    expect(await kernel.query("Shop.Prices")).toEqual([1, 2]);
    const rows = await kernel.kernel.bus.query({ topic: "Order.Placed", limit: 9 });
    expect(rows.map(({ message }) => message?.data)).toEqual([{ price: 1 }, { price: 2 }]);
    await expect(kernel.command("Shop.Order", { price: 3 })).rejects.toBeInstanceOf(Failure);
  });

  test("[A26] a repeated id gets the first answer, and takes effect once", async () => {
    const kernel = await openOn(store, shop);
    const first = await kernel.command("Shop.Order", { price: 5 }, { id: "order-1" });
    expect(await kernel.command("Shop.Order", { price: 5 }, { id: "order-1" })).toEqual(first);
    expect(await kernel.query("Shop.Prices")).toEqual([5]);
    await expect(kernel.command("Shop.Order", { price: 6 }, { id: "order-1" })).rejects.toMatchObject({ code: 409 });
  });

  test("[A28] a live query tells its answer, and again when it differs", async () => {
    const kernel = await openOn(store, shop);
    const seen: number[] = [];
    const stop = kernel.live("Shop.Sum").subscribe((sum) => seen.push(sum));
    await kernel.idle();
    await kernel.command("Shop.Order", { price: 3 });
    await kernel.idle();
    await kernel.command("Shop.Order", { price: 0 });
    await kernel.idle();
    stop();
    await kernel.kernel.command("Memory.Set", { key: "/other", value: 1 });
    await kernel.idle();
    expect(seen).toEqual([0, 3]);
  });

  test("[A28] a live query is an async iterable that ends with its loop", async () => {
    const kernel = await openOn(store, shop);
    const seen: number[] = [];
    for await (const sum of kernel.live("Shop.Sum")) {
      seen.push(sum);
      if (seen.length === 2) break;
      await kernel.command("Shop.Order", { price: 4 });
    }
    expect(seen).toEqual([0, 4]);
    expect(kernel.health().liveNodes).toBe(0);
  });

  test("[A29] events come by name, from now on or after an id", async () => {
    const kernel = await openOn(store, shop);
    await kernel.command("Shop.Order", { price: 7 });
    await kernel.command("Shop.Order", { price: 8 });
    const seen: Json[] = [];
    for await (const { type: name, data, id } of kernel.events("Order.Placed", { from: "start" })) {
      expect(id).toBeGreaterThan(0);
      if (seen.push([name, data]) === 2) break;
    }
    expect(seen).toEqual([
      ["Order.Placed", { price: 7 }],
      ["Order.Placed", { price: 8 }],
    ]);
  });

  test("[A44] events after the call are yielded, however late the iteration begins, and none before it", async () => {
    const kernel = await openOn(store, shop);
    await kernel.command("Shop.Order", { price: 7 });
    const events = kernel.events("Order.Placed");
    await kernel.command("Shop.Order", { price: 8 });
    for await (const { data } of events) {
      expect(data).toEqual({ price: 8 });
      break;
    }
  });

  test("[A23] several apps share a kernel, each with its own state", async () => {
    const other = app("other", ({ cell }) => {
      const prices = cell("prices", 100);
      return { queries: { "Other.Prices": () => prices.get() } };
    });
    const kernel = await openOn(store, [shop, other]);
    await kernel.command("Shop.Order", { price: 3 });
    expect(await kernel.query("Other.Prices")).toBe(100);
    expect(await kernel.query("Shop.Prices")).toEqual([3]);
    expect(await kernel.query("Syscall.Ping", "hello")).toBe("hello");
  });
});

describe("declared state", () => {
  test("[A4] [A2] is loaded before effects, queries and plain reads, which never see the initial value in its place", async () => {
    const file = join(scratchFolder(), "app.db");
    const seen: number[] = [];
    const plain: number[] = [];
    const counter = app("counter", ({ cell, computed, effect }) => {
      const count = cell("count", 0);
      const double = computed("double", () => 2 * count.get());
      effect(() => void seen.push(double.get()));
      return {
        commands: {
          "Counter.Add": (_, tx) => {
            plain.push(count.get());
            tx.update(count, (n) => n + 1);
          },
        },
        queries: { "Counter.Get": () => count.get() },
      };
    });
    for (let round = 0; round < 3; round++) {
      await using kernel = await open(counter, { file });
      expect(await kernel.query("Counter.Get")).toBe(round);
      await kernel.command("Counter.Add");
      await kernel.idle();
    }
    expect(plain).toEqual([0, 1, 2]);
    expect(seen).toEqual([0, 2, 2, 4, 4, 6]);
  });

  test("[A4] stays in memory, however few documents a space may keep", async () => {
    const many = app("many", ({ cell }) => {
      const cells = Array.from({ length: 20 }, (_, n) => cell(`n${n}`, 0));
      return {
        commands: { "Many.Set": (_, tx) => cells.forEach((one, n) => void tx.set(one, n + 1)) },
        queries: { "Many.Loaded": () => cells.map((one) => one.isLoaded) },
      };
    });
    const kernel = await openOn("sqlite", many, { limits: { residentDocumentsMax: 1 } });
    await kernel.command("Many.Set");
    await kernel.idle();
    expect(new Set(await kernel.query("Many.Loaded"))).toEqual(new Set([true]));
  });
});

describe.each(STORES)("a collection of an app on %s", (store) => {
  test("[A35] is written in transactions, and queries wait for its elements after a restart", async () => {
    const file = store === "sqlite" ? { file: join(scratchFolder(), "app.db") } : {};
    const desk = app("desk", ({ collection, computed }) => {
      const tasks = collection("tasks", type<{ title: string; done: boolean }>(), {
        indexes: [index("by_done", (task) => [task.done], { totals: 1 })],
      });
      const open = computed("open", () => tasks.count({ index: "by_done", key: [false] }));
      return {
        commands: {
          "Desk.Add": ({ title }: { title: string }, tx) => {
            const id = tx.newId();
            tx.set(tasks.at(id), { title, done: false });
            return { id };
          },
          "Desk.Finish": ({ id }: { id: string }, tx) => {
            const task = tx.get(tasks.at(id));
            if (task === undefined) return tx.refuse("NO_SUCH_TASK");
            tx.set(tasks.at(id), { ...task, done: true });
            return null;
          },
        },
        queries: {
          "Desk.Open": () => open.get(),
          "Desk.Titles": () => tasks.page().elements.map(({ value }) => value.title),
          "Desk.Task": ({ id }: { id: string }) => tasks.at(id).get() ?? null,
        },
      };
    });
    let id: string;
    {
      await using kernel = await open(desk, file);
      ({ id } = await kernel.command("Desk.Add", { title: "write" }));
      await kernel.command("Desk.Add", { title: "test" });
      await kernel.command("Desk.Finish", { id });
      expect(await kernel.safeCommand("Desk.Finish", { id: "none" })).toMatchObject({
        failure: { reason: "NO_SUCH_TASK" },
      });
      expect(await kernel.query("Desk.Open")).toBe(1);
      expect((await kernel.query("Desk.Titles")).toSorted()).toEqual(["test", "write"]);
    }
    if (store === "memory") return;
    await using kernel = await open(desk, file);
    expect(await kernel.query("Desk.Task", { id })).toEqual({ title: "write", done: true });
    expect(await kernel.query("Desk.Open")).toBe(1);
    expect((await kernel.query("Desk.Titles")).toSorted()).toEqual(["test", "write"]);
  });
});

describe("plain code beside an app", () => {
  const desk = (found: { read?: () => unknown; prices?: Cell<readonly number[]> }) =>
    app("desk", ({ cell, collection }) => {
      const tasks = collection("tasks", type<{ title: string }>());
      const prices = cell<number[]>("prices", []);
      found.read = () => tasks.at("t1").get();
      found.prices = prices;
      return {
        commands: {
          "Desk.Add": (price: number, tx) => {
            tx.set(tasks.at("t1"), { title: "write" });
            tx.update(prices, (all) => [...all, price]);
            if (price < 0) throw new Failure(422, "negative");
          },
        },
      };
    });

  test("[R102] [A35] an element that is not loaded is NotReady, and a declared cell is loaded before anything runs", async () => {
    const file = join(scratchFolder(), "desk.db");
    const found: Parameters<typeof desk>[0] = {};
    await using first = await open(desk(found), { file });
    await first.command("Desk.Add", 1);
    await first.close();
    await using _ = await open(desk(found), { file });
    expect(found.prices?.get()).toEqual([1]);
    expect(() => found.read?.()).toThrow(expect.objectContaining({ code: "NOT_READY" }));
  });

  test("[R105] subscribe is called with confirmed state only", async () => {
    const found: Parameters<typeof desk>[0] = {};
    const kernel = await openOn("memory", desk(found));
    const seen: unknown[] = [];
    found.prices?.subscribe((prices) => seen.push(prices));
    await kernel.idle();
    await kernel.command("Desk.Add", 1);
    await kernel.command("Desk.Add", -1).catch(() => undefined);
    await kernel.idle();
    expect(seen).toEqual([[], [1]]);
  });
});

describe("schemas", () => {
  const sized = app("sized", ({ cell }) => {
    const last = cell<unknown>("last", null);
    return {
      commands: {
        "Sized.Put": command(z.object({ n: z.number(), unit: z.string().default("kg") }), (data, tx) => {
          tx.set(last, data as never);
          return data;
        }),
      },
      queries: { "Sized.Of": query(z.object({ unit: z.string() }), ({ unit }) => ({ unit, last: last.get() })) },
    };
  });

  test("[A10] a schema gives defaults to the handler, and refuses other data with all problems", async () => {
    const kernel = await openOn("memory", sized);
    expect(await kernel.command("Sized.Put", { n: 1 })).toEqual({ n: 1, unit: "kg" });
    expect(await kernel.query("Sized.Of", { unit: "g" })).toEqual({ unit: "g", last: { n: 1, unit: "kg" } });
    const refused = kernel.command("Sized.Put", { n: "1", unit: 3 } as never);
    await expect(refused).rejects.toMatchObject({ code: 422, message: expect.stringMatching(/data\.n.*data\.unit/) });
    await expect(kernel.query("Sized.Of", {} as never)).rejects.toMatchObject({ code: 422 });
  });
});

describe("calls", () => {
  const slow = app("slow", () => ({
    commands: {
      "Slow.Wait": () => new Promise<string>(() => undefined),
      "Slow.Forgot": (_, tx) => {
        tx.refuse("NO");
        return 1;
      },
    },
    queries: { "Slow.Promise": (() => Promise.resolve(1)) as never as () => number },
  }));

  test("[A13] a handler that forgets to return its refusal fails with a text that says so", async () => {
    const kernel = await openOn("memory", slow);
    await expect(kernel.command("Slow.Forgot")).rejects.toMatchObject({
      code: 500,
      message: expect.stringContaining("return tx.refuse"),
    });
  });

  test("[A11] a query that returns a promise fails with a text that says so", async () => {
    const kernel = await openOn("memory", slow);
    await expect(kernel.query("Slow.Promise")).rejects.toMatchObject({
      code: 500,
      message: expect.stringContaining("promise"),
    });
  });

  test("[A26] timeoutMs and signal end the waiting", async () => {
    const kernel = await openOn("memory", slow);
    await expect(kernel.command("Slow.Wait", null, { timeoutMs: 1 })).rejects.toMatchObject({ code: 504 });
    const controller = new AbortController();
    const waiting = kernel.command("Slow.Wait", null, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(kernel.command("Slow.Wait", null, { signal: controller.signal })).rejects.toThrow("enough");
  });

  test("[A25] the types name every request of a bare kernel", async () => {
    const kernel = await openOn(
      "memory",
      app("bare", () => ({})),
    );
    const { types } = await kernel.query("Syscall.List");
    const commands: Record<keyof BuiltInCommands, true> = {
      ...{ "Timer.Set": true, "Timer.Every": true, "Timer.Cancel": true, "Memory.Set": true, "Memory.Delete": true },
      ...{ "Journal.Publish": true, "Kernel.Requeue": true, "Kernel.Discard": true, "Kernel.Purge": true },
      ...{ "Kernel.RemoveConsumer": true, "Kernel.RestartExtension": true, "Kernel.Heal": true, "Kernel.Erase": true },
      ...{ "Kernel.CancelTimer": true, "Syscall.Shutdown": true, "Journal.Send": true },
      ...{ "Kernel.AddToken": true, "Kernel.RevokeToken": true, "Kernel.Replay": true },
    };
    const queries: Record<keyof BuiltInQueries, true> = {
      ...{ "Memory.Get": true, "Memory.List": true, "Syscall.Ping": true, "Syscall.List": true },
      ...{ "Syscall.Describe": true, "Kernel.Health": true, "Kernel.Graph": true, "Kernel.Why": true },
      ...{ "Kernel.Runs": true, "Kernel.Consumers": true, "Kernel.Handlings": true, "Kernel.Requests": true },
      ...{ "Kernel.Work": true, "Kernel.Request": true, "Kernel.Tokens": true },
      ...{ "Kernel.Journal": true, "Kernel.Failures": true, "Kernel.Actors": true, "Kernel.Timers": true },
      ...{ "Kernel.Metrics": true },
    };
    expect(types).toEqual([...Object.keys(commands), ...Object.keys(queries)].sort());
  });
});

describe("boot errors", () => {
  const broken = (define: (parts: AppParts) => unknown) => open(app("bad", define as (parts: AppParts) => Definition));

  test("[A5] all mistakes of an app are one error, each with a remedy", async () => {
    const wrong = broken(({ event }) => ({
      commands: { order: () => 1, "Bad.Handler": 3 },
      queries: { "Bad.Query": "text" },
      on: { "Not-a-key": on(event("Bad.Event", type<null>()), () => 1, { retry: 0 }), other: () => 1 },
      schedules: { daily: cron("61 * * * *", () => 1), nightly: "0 0 * * *" },
    }));
    await expect(wrong).rejects.toMatchObject({ code: "BOOT_FAILED" });
    const { problems } = await wrong.catch((error) => error);
    expect(problems).toEqual([
      expect.stringMatching(/^app bad: command "order": .*like Shop\.Order/),
      expect.stringMatching(/^app bad: command Bad\.Handler: must be a function/),
      expect.stringMatching(/^app bad: query Bad\.Query: must be a function/),
      expect.stringMatching(/^app bad: on\."Not-a-key": a name is a word/),
      expect.stringMatching(/^app bad: on\.Not-a-key: retry must be/),
      expect.stringMatching(/^app bad: on\.other: must come from on/),
      expect.stringMatching(/^app bad: schedules\.daily: cron/),
      expect.stringMatching(/^app bad: schedules\.nightly: must come from cron/),
    ]);
  });

  test.for([
    ["returns nothing", () => undefined, /returns undefined; return/],
    ["a misspelt key", () => ({ command: {} }), /"command".*did you mean commands/],
    [
      "an event's name",
      ({ event }: AppParts) => ({ events: { e: event("placed" as never, type()) } }),
      /two PascalCase/,
    ],
    [
      "an event without a schema",
      ({ event }: AppParts) => ({ events: { e: event("A.B", {} as never) } }),
      /type<T>\(\)/,
    ],
  ] as const)("[A5] %s is a boot error", async ([, define, text]) => {
    await expect(broken(define as never)).rejects.toThrow(text);
  });

  test("[A3] a name that is used twice is a boot error", async () => {
    await expect(
      broken(({ cell, computed }) => {
        cell("a", 1);
        computed("a", () => 1);
        return {};
      }),
    ).rejects.toThrow(/"a" is used twice, by a cell and a computed/);
    await expect(
      broken(({ event }) => {
        event("A.B", type());
        event("A.B", type());
        return {};
      }),
    ).rejects.toThrow(/"A.B" is declared twice/);
    await expect(open([shop, app("shop", () => ({})) as App<never>])).rejects.toThrow(/two apps are called shop/);
  });

  test("[A5] no app can have the name of a capability of the kernel", async () => {
    const names = Object.keys(
      (
        await openOn(
          "memory",
          app("shop", () => ({})),
        )
      ).health().actors,
    );
    expect(names.length).toBeGreaterThan(8);
    for (const name of names.filter((one) => one !== "shop"))
      expect(() => app(name, () => ({})), name).toThrow(/none of the kernel's own/);
  });

  test.for([
    ["tasks/totals", "cell"],
    ["tasks/index/by_due", "computed"],
    ["tasks/at", "collection"],
  ] as const)("[A39] %s beside a collection tasks is a boot error, in either order", async ([name, part]) => {
    const make = (parts: AppParts) => {
      if (part === "computed") parts.computed(name, () => 1);
      else if (part === "cell") parts.cell(name);
      else parts.collection(name);
    };
    for (const order of ["before", "after"]) {
      const wrong = broken((parts) => {
        if (order === "before") make(parts);
        parts.collection("tasks");
        if (order === "after") make(parts);
        return {};
      });
      await expect(wrong).rejects.toThrow(
        `the name "${name}" is one of the documents of the collection "tasks" (tasks/at, tasks/index, tasks/totals); rename one`,
      );
    }
    await broken(({ cell, collection }) => {
      cell("tasks/other", 1);
      cell("task/at", 1);
      collection("tasks");
      throw new Error("all names are taken");
    }).catch((error) => expect(String(error)).toContain("all names are taken"));
  });

  test("[A5] a name that no app can have, and a definition that is none, are refused at once", () => {
    for (const name of ["Shop", "", "my shop", "memory", "kernel", 3])
      expect(() => app(name as string, () => ({}))).toThrow(/a name is a word/);
    expect(() => app("shop", {} as never)).toThrow(/takes a function of the parts/);
    expect(() => on({} as never, () => 1)).toThrow(/the first argument comes from event/);
    expect(() => command({} as never, () => 1)).toThrow(/Standard Schema or type<T>/);
    expect(() => query(type<null>(), 3 as never)).toThrow(/takes a function second/);
  });
});
