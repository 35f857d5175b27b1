/**
 * The types of the public API. `npm run types` checks this file without running it: a line that follows
 * `@ts-expect-error` must not compile, and every other line must.
 */
import { expectTypeOf } from "vitest";
import { z } from "zod";
import type { Cell } from "../../src/cells/cell.ts";
import type { Computed } from "../../src/cells/computed.ts";
import { connect, type Status } from "../../src/client/index.ts";
import { defineExtension, tool } from "../../src/extensions/index.ts";
import { httpApp } from "../../src/http/index.ts";
import {
  type App,
  app,
  type Caller,
  command,
  cron,
  type Duration,
  type Failure,
  index,
  type Json,
  type JsonObject,
  type OnOptions,
  on,
  open,
  query,
  type,
  worker,
} from "../../src/index.ts";
import { createHooks } from "../../src/react/index.ts";
import { testKernel } from "../../src/testing.ts";
import type resize from "./resize.ts";

/** Names the rule that its body proves; never called. */
declare function rule(title: string, proof: () => unknown): void;

interface Item {
  name: string;
  tags?: string[];
}

interface Turn {
  role: "user" | "assistant";
  text: string;
}

const shop = app("shop", ({ cell, collection, computed, effect, event }) => {
  const prices = cell<number[]>("prices", []);
  const maybe = cell<Item>("maybe");
  const turns = cell<Turn[]>("turns", []);
  const byThread = cell<Record<string, Turn[]>>("byThread", {});
  const sum = computed("sum", () => prices.get().reduce((a, b) => a + b, 0));
  const placed = event("Order.Placed", type<{ price: number }>());
  const paid = event("Order.Paid", z.object({ price: z.number(), currency: z.string().default("EUR") }));
  const remind = command(type<{ id: string }>(), ({ id }) => ({ reminded: id }));

  rule("[A2] a cell with an initial value is never undefined", () => {
    expectTypeOf(cell("count", 0).get()).toEqualTypeOf<number>();
    expectTypeOf(cell("open", true).get()).toEqualTypeOf<boolean>();
    expectTypeOf(cell<"new" | "paid">("status", "new").get()).toEqualTypeOf<"new" | "paid">();
    expectTypeOf(prices.get()).toEqualTypeOf<readonly number[]>();
    expectTypeOf(maybe.get()).toEqualTypeOf<{ readonly name: string; readonly tags?: readonly string[] } | undefined>();
    expectTypeOf(cell<Item[]>("items", [])).toExtend<Cell<readonly { readonly name: string }[]>>();
    // @ts-expect-error The initial value has the type of the cell.
    cell<number>("wrong", "text");
  });

  rule("[A2] a value that is read is frozen", () => {
    // @ts-expect-error
    prices.get().push(1);
    const item = maybe.get();
    // @ts-expect-error
    item?.tags?.push("x");
  });

  rule("[A2] a cell keeps JSON: interfaces and optional fields are, a Date, Map, function or bigint is not", () => {
    cell<Item>("item", { name: "lamp" });
    // @ts-expect-error "a Date is not JSON; keep value.toISOString() or value.getTime()"
    cell("date", new Date());
    // @ts-expect-error
    cell("map", new Map<string, number>());
    // @ts-expect-error
    cell("function", () => 1);
    // @ts-expect-error
    cell("big", 1n);
  });

  rule("[A2] a computed value has the type that its function returns", () => {
    expectTypeOf(sum).toEqualTypeOf<Computed<number>>();
    expectTypeOf(sum.get()).toEqualTypeOf<number>();
    effect(() => console.log(sum.get()));
    effect(
      () => sum.get(),
      (value) => expectTypeOf(value).toEqualTypeOf<number>(),
    );
  });

  rule("[A35] an element of a collection is a cell that may be empty", () => {
    const items = collection<Item>("items");
    expectTypeOf(items.at("a").get()).toEqualTypeOf<
      { readonly name: string; readonly tags?: readonly string[] } | undefined
    >();
    expectTypeOf(items.at("a")).toExtend<Cell<{ readonly name: string } | undefined>>();
    // @ts-expect-error
    items.at("a").set({ name: 3 });
    // @ts-expect-error
    collection<{ at: Date }>("dates").at("a").set({ at: new Date() });
  });

  rule("[A41] names of indexes are known to the compiler with a schema, or when they are given", () => {
    const byName = index("by_name", (item: Item) => [item.name]);
    const described = collection("described", type<Item>(), {
      indexes: [index("by_tags", (item) => [item.tags?.length ?? 0], { totals: 1 }), byName],
    });
    expectTypeOf(described.at("a").get()?.name).toEqualTypeOf<string | undefined>();
    described.page({ index: "by_tags" });
    described.page({ index: "by_name" });
    described.count({ index: "by_tags", key: [1] });
    const summed = collection("summed", z.object({ hours: z.number() }), { sums: { hours: ({ hours }) => hours } });
    summed.sum("hours");
    // @ts-expect-error No sum has this name.
    summed.sum("days");
    // @ts-expect-error
    described.sum("hours");
    // @ts-expect-error No index has this name.
    described.page({ index: "by_status" });
    // @ts-expect-error
    described.count({ index: "by_status", key: [1] });
    // @ts-expect-error
    collection("bare", type<Item>()).page({ index: "by_name" });
    const named = collection<Item, "by_name">("named", { indexes: [byName] });
    named.page({ index: "by_name" });
    // @ts-expect-error
    named.page({ index: "by_tags" });
    // @ts-expect-error The index is not among the names.
    collection<Item, "by_tags">("other", { indexes: [byName] });
    // @ts-expect-error The names of indexes are not known beside a given type of the elements.
    collection<Item>("texts", { indexes: [byName] });
    collection<Item>("plain", { sums: { tags: ({ tags = [] }) => tags.length } }).sum("tags");
    const inferred = collection("inferred", { indexes: [byName] });
    // @ts-expect-error
    inferred.page({ index: "by_tags" });
  });

  rule("[R105] `subscribe` has the type of the value", () => {
    prices.subscribe((all) => expectTypeOf(all).toEqualTypeOf<readonly number[]>());
    sum.subscribe((all) => expectTypeOf(all).toEqualTypeOf<number>(), { debounceMs: 10 });
    // @ts-expect-error An app is told of confirmed state alone.
    sum.subscribe(() => undefined, { confirmed: false });
  });

  rule("[A10] [A33] [A40] a checked command takes a description, a timeout and a concurrency", () => {
    command(type<{ id: string }>(), ({ id }) => id, { description: "reminds", timeout: "5 s", concurrency: 4 });
    // @ts-expect-error
    command(type<null>(), () => 1, { concurrency: "4" });
    // @ts-expect-error The option is unknown.
    command(type<null>(), () => 1, { retry: 3 });
  });

  rule("[A6] [A7] `on` gives the output of the event's schema, with defaults", () => {
    on(placed, (data) => expectTypeOf(data).toEqualTypeOf<{ price: number }>());
    on(paid, (data) => expectTypeOf(data).toEqualTypeOf<{ price: number; currency: string }>());
    // @ts-expect-error An event is a value, not a name.
    on("Order.Placed", () => undefined);
  });

  rule("[A16] [A17] the result of `run` types `commit`", () => {
    on(paid, {
      run: async ({ currency }, { idempotencyKey, signal, attempt }) => {
        expectTypeOf(currency).toEqualTypeOf<string>();
        expectTypeOf(idempotencyKey).toEqualTypeOf<string>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(attempt).toEqualTypeOf<number>();
        return { receipt: 7 };
      },
      commit: (result, tx, data) => {
        expectTypeOf(result).toEqualTypeOf<{ receipt: number }>();
        expectTypeOf(data).toEqualTypeOf<{ price: number; currency: string }>();
        tx.update(prices, (all) => [...all, result.receipt]);
      },
      failed: (failure, tx, data) => {
        expectTypeOf(failure).toExtend<Failure>();
        tx.emit(placed, { price: data.price });
      },
      retry: 3,
      timeout: "5 s",
      concurrency: 4,
    });
    // @ts-expect-error The option is unknown.
    on(paid, { run: () => 1, retries: 3 });
  });

  rule("[A43] a function takes `failed` too, with the output of the event's schema", () => {
    on(paid, () => undefined, {
      failed: (failure, tx, data) => {
        expectTypeOf(failure).toExtend<Failure>();
        expectTypeOf(data).toEqualTypeOf<{ price: number; currency: string }>();
        tx.set(prices, []);
      },
    });
    const shared: OnOptions = { retry: 3, failed: (_failure, tx) => tx.set(prices, []) };
    on(paid, () => undefined, shared);
    on(placed, { ...shared, run: () => 1 });
    // @ts-expect-error The option is unknown.
    on(paid, () => undefined, { onFailed: () => undefined });
  });

  rule("[A20] a schedule's handler gets its slot and a transaction", () => {
    cron("0 9 * * *", ({ at }, tx) => {
      expectTypeOf(at).toEqualTypeOf<number>();
      tx.set(prices, []);
    });
    // @ts-expect-error
    cron("0 9 * * *", () => 1, { missed: "twice" });
  });

  return {
    commands: {
      "Shop.Order": (order: { price: number; note?: string }, tx) => {
        expectTypeOf(tx.get(prices)).toEqualTypeOf<readonly number[]>();
        expectTypeOf(tx.get(sum)).toEqualTypeOf<number>();
        tx.set(prices, [order.price]);
        tx.update(prices, (all) => [...all, order.price]);
        // @ts-expect-error A value of another type.
        tx.set(prices, ["1"]);
        // @ts-expect-error
        tx.update(prices, () => "1");
        // @ts-expect-error
        tx.update(prices, (all) => all.length);
        // [A45] A literal in the result has the type of the cell, not `string`.
        tx.update(turns, (all) => [...all, { role: "user", text: "hello" }]);
        tx.update(turns, (all) => all.map((turn) => ({ ...turn, role: "assistant" })));
        tx.update(byThread.key("a"), (all = []) => [...all, { role: "user", text: "hello" }]);
        // @ts-expect-error No role has this name.
        tx.update(turns, (all) => [...all, { role: "guest", text: "hello" }]);
        // @ts-expect-error [A45] A computed value is not written.
        tx.update(sum, (n) => n + 1);
        // @ts-expect-error
        tx.set(sum, 3);
        tx.push(prices, 3);
        tx.emit(placed, { price: order.price });
        // @ts-expect-error The data has the event's type.
        tx.emit(placed, { price: "1" });
        // Defaults of the schema may be left out.
        tx.emit(paid, { price: 1 });
        tx.emit(paid, { price: 1 }, { delay: "5 min" });
        tx.send(remind, { id: "x" }, { delay: "1 h", key: "reminder" });
        tx.send("Billing.Pay", { amount: 3 }, { at: tx.now + 1_000 });
        // @ts-expect-error [A14] The data has the command's type.
        tx.send(remind, { id: 1 });
        // @ts-expect-error
        tx.send(remind);
        // @ts-expect-error
        tx.send(remind, { id: "x" }, { delay: "soon" });
        if (order.price > 100) return tx.refuse("TOO_DEAR", { data: { most: 100 } });
        if (order.price < 0) return tx.refuse("NO_PRICE");
        return { orders: 1 };
      },
      "Shop.Later": async (data: { id: string }) => data.id,
      "Shop.Clear": (_, tx) => {
        tx.set(prices, []);
      },
      "Shop.Ping": () => "pong",
      "Shop.Remind": remind,
      "Shop.Checked": command(z.object({ n: z.number(), unit: z.string().default("kg") }), (data, tx) => {
        expectTypeOf(data).toEqualTypeOf<{ n: number; unit: string }>();
        tx.set(prices, [data.n]);
        return data.unit;
      }),
      // @ts-expect-error [A9] Data without annotation or schema is `never`.
      "Shop.Untyped": (data) => data.price,
    },
    queries: {
      "Shop.Sum": () => sum.get(),
      "Shop.All": (page: { limit: number }) => prices.get().slice(0, page.limit),
      "Shop.Named": query(z.object({ name: z.string() }), ({ name }) => ({ name, of: maybe.get()?.name ?? null })),
      "Shop.Nothing": () => undefined,
    },
    on: { mail: on(placed, () => undefined, { retry: 5, timeout: "1 min" }) },
    schedules: { report: cron("0 9 * * *", () => undefined, { timezone: "Europe/Berlin", missed: "once" }) },
    events: { paid },
  };
});

rule("[X72] [X75] the configuration and the tools of an extension have the outputs of their schemas", () => {
  const config = z.object({ greeting: z.string().default("Welcome"), guests: z.number().optional() });
  defineExtension({ id: "greeter", version: "1.0.0", dependsOn: ["clock"], config }, (parts) => {
    expectTypeOf(parts.config).toEqualTypeOf<{ greeting: string; guests?: number | undefined }>();
    expectTypeOf(parts.dataDir).toEqualTypeOf<string>();
    parts.log.info("hello");
    const count = parts.cell("count", 0);
    const arrived = parts.event("Guest.Arrived", type<{ name: string }>());
    return {
      queries: { "Greeter.Count": () => count.get() },
      on: { guest: on(arrived, ({ name }, tx) => tx.set(count, name.length)) },
      tools: {
        add: tool({
          description: "adds",
          input: z.object({ a: z.number(), b: z.number().default(1) }),
          run: (input, { signal }) => {
            expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>();
            expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
            return input.a + input.b;
          },
        }),
      },
      channel: { sendMessage: (text) => expectTypeOf(text).toEqualTypeOf<string>() },
      start: () => undefined,
      healthCheck: () => true,
    };
  });
  defineExtension({ id: "plain" }, (parts) => {
    expectTypeOf(parts.config).toEqualTypeOf<JsonObject>();
    return {};
  });
  // @ts-expect-error The field is unknown.
  defineExtension({ id: "plain", depends: [] }, () => ({}));
  // @ts-expect-error A health check says true or false.
  defineExtension({ id: "plain" }, () => ({ healthCheck: () => "well" }));
  // @ts-expect-error A tool comes from tool().
  defineExtension({ id: "plain" }, () => ({ tools: { add: () => 1 } }));
});

rule("[A11] a query that returns a promise does not compile", () => {
  // @ts-expect-error
  app("late", () => ({ queries: { "Late.Get": async () => 1 } }));
  // @ts-expect-error With a schema neither.
  query(z.object({ id: z.string() }), async ({ id }) => id);
});

rule("[A6] [A8] definitions are of a name, a schema or a function", () =>
  app("parts", ({ computed, event }) => {
    expectTypeOf(computed("later", async () => 1)).toEqualTypeOf<Computed<number>>();
    // @ts-expect-error An event needs a schema, or `type<T>()`.
    event("Order.Placed");
    // @ts-expect-error
    command(z.object({ id: z.string() }), ({ name }) => name);
    return {};
  }),
);

rule("[A5] a command is a function or a definition", () => {
  // @ts-expect-error
  app("parts", () => ({ commands: { "Parts.Count": 3 } }));
});

rule("[A14] [A6] [A45] the data of a command, an event and an update has the type of its value", () => shop);

const billing = app("billing", () => ({
  commands: { "Billing.Pay": (data: { amount: number }) => ({ paid: data.amount }) },
  queries: { "Billing.Due": () => 3 },
}));

rule("[A37] commands of a worker have the types of its file", async () => {
  const thread = worker<typeof resize>(new URL("./resize.ts", import.meta.url), { idempotent: true });
  const images = app("images", () => ({ commands: { "Image.Resize": thread, "Image.Count": thread } }));
  await using kernel = await open(images);
  const resized = await kernel.command("Image.Resize", { width: 3 });
  expectTypeOf(resized).toEqualTypeOf<{ width: number; inThread: boolean }>();
  expectTypeOf(await kernel.command("Image.Count")).toEqualTypeOf<number>();
  // @ts-expect-error
  await kernel.command("Image.Resize", { width: "3" });
  // @ts-expect-error The app does not name this command of the file.
  await kernel.command("Image.Crop", { at: 1 });
  // @ts-expect-error
  worker<typeof resize>("./resize.ts");
});

rule("[A31] a client has the calls of the app", async () => {
  await using client = await connect<typeof shop>({ path: "kernel.sock" });
  calls(client);
  // @ts-expect-error A name of another app.
  await client.command("Billing.Pay", { amount: 3 });
});

rule("[W68] hooks have the names, data and answers of the app", async () => {
  const { useQuery, useCommand, useStatus } = createHooks(await connect<typeof shop>({ url: "https://shop.example" }));
  const sum = useQuery("Shop.Sum");
  expectTypeOf(sum.data).toEqualTypeOf<number | undefined>();
  expectTypeOf(sum.isLoading).toEqualTypeOf<boolean>();
  expectTypeOf(useQuery("Shop.All", { limit: 3 }).data).toEqualTypeOf<number[] | undefined>();
  expectTypeOf(useStatus()).toEqualTypeOf<Status>();
  // @ts-expect-error A command is no query.
  useQuery("Shop.Order");
  // @ts-expect-error The query takes data.
  useQuery("Shop.All");
  const order = useCommand("Shop.Order");
  const result = await order.send({ price: 3 });
  if (result.ok) expectTypeOf(result.value).toEqualTypeOf<{ orders: number }>();
  else if (result.failure.reason === "TOO_DEAR") expectTypeOf(result.failure.data).toEqualTypeOf<{ most: number }>();
  // @ts-expect-error
  await order.send({ price: "3" });
  // @ts-expect-error
  useCommand("Shop.Sum");
});

rule("[T60] a kernel under test has the calls of the app", async () => {
  await using tested = await testKernel(shop, { seed: 3 });
  calls(tested);
  await tested.advance("5 min");
  await tested.settle();
  await tested.crash();
  await tested.restart();
  expectTypeOf((await tested.deadLetters())[0]?.id).toEqualTypeOf<number | undefined>();
  // @ts-expect-error A seed is a number.
  await testKernel(shop, { seed: "3" });
  // @ts-expect-error A duration has a unit.
  await tested.advance("5");
});

rule("[A2] [A35] options of state: schema, migrate, label; pages, indexes and totals of a collection", () =>
  app("state", ({ cell, collection }) => {
    const sized = cell(
      "sized",
      { width: 1 },
      { schema: z.object({ width: z.number() }), migrate: () => ({ width: 1 }) },
    );
    expectTypeOf(sized.get()).toEqualTypeOf<{ readonly width: number }>();
    // @ts-expect-error The option is unknown.
    cell("count", 0, { migrated: true });
    expectTypeOf(cell("secret", "", { label: ["private"] }).get()).toEqualTypeOf<string>();
    // @ts-expect-error A label is a list of names.
    cell("secret", "", { label: "private" });
    // @ts-expect-error The schema describes another type.
    cell("count", 0, { schema: z.object({ width: z.number() }) });
    const tasks = collection("tasks", type<{ status: string; due: number }>(), {
      indexes: [index("by_status", (task) => [task.status, task.due], { totals: 1 })],
      sums: { due: (task) => task.due },
    });
    expectTypeOf(tasks.ids()).toEqualTypeOf<readonly string[]>();
    expectTypeOf(tasks.all()).toExtend<readonly { readonly id: string }[]>();
    tasks.page({ index: "by_status", from: ["open"], limit: 10 });
    // @ts-expect-error A sum is of a number.
    collection<{ name: string }>("names", { sums: { name: (one) => one.name } });
    return {};
  }),
);

/** The same proofs for a kernel in process and for a client. */
function calls(kernel: Caller<typeof shop>): void {
  rule("[A8] input and answer follow from the function", async () => {
    expectTypeOf(await kernel.command("Shop.Order", { price: 3 })).toEqualTypeOf<{ orders: number }>();
    expectTypeOf(await kernel.command("Shop.Later", { id: "a" })).toEqualTypeOf<string>();
    // @ts-expect-error
    await kernel.command("Shop.Order", { price: "3" });
    // @ts-expect-error
    await kernel.command("Shop.Order", {});
    // @ts-expect-error
    await kernel.command("Shop.Order");
  });

  rule("[A10] callers give the input of a schema, with defaults left out", async () => {
    expectTypeOf(await kernel.command("Shop.Checked", { n: 1 })).toEqualTypeOf<string>();
    expectTypeOf(await kernel.query("Shop.Named", { name: "x" })).toEqualTypeOf<{ name: string; of: string | null }>();
    expectTypeOf(await kernel.command("Shop.Remind", { id: "x" })).toEqualTypeOf<{ reminded: string }>();
    // @ts-expect-error
    await kernel.command("Shop.Checked", { n: 1, unit: 3 });
  });

  rule("[A24] data is optional where the handler takes none, and no value is null", async () => {
    expectTypeOf(await kernel.command("Shop.Clear")).toEqualTypeOf<null>();
    expectTypeOf(await kernel.command("Shop.Clear", null, { id: "1" })).toEqualTypeOf<null>();
    expectTypeOf(await kernel.command("Shop.Ping")).toEqualTypeOf<string>();
    expectTypeOf(await kernel.query("Shop.Nothing")).toEqualTypeOf<null>();
    // @ts-expect-error
    await kernel.command("Shop.Clear", { price: 1 });
  });

  rule("[A24] names are known, a query is no command, and a command no query", async () => {
    // @ts-expect-error
    await kernel.command("Shop.Oder", { price: 3 });
    // @ts-expect-error
    await kernel.command("Shop.Sum");
    // @ts-expect-error
    await kernel.query("Shop.Order", { price: 3 });
  });

  rule("[A25] built-in requests are typed too", async () => {
    const timer = await kernel.command("Timer.Set", {
      delayMs: 10,
      message: { kind: "command", type: "Shop.Ping", data: null },
    });
    expectTypeOf(timer).toEqualTypeOf<{ readonly timerId: string }>();
    await kernel.command("Memory.Set", { key: "/a", value: [1, { b: null }] });
    expectTypeOf(await kernel.query("Memory.Get", { key: "/a" })).toEqualTypeOf<{ readonly value: Json }>();
    expectTypeOf(await kernel.query("Syscall.List")).toEqualTypeOf<{ readonly types: readonly string[] }>();
    await kernel.query("Kernel.Health");
    // @ts-expect-error
    await kernel.command("Memory.Set", { key: "/a" });
    // @ts-expect-error
    await kernel.command("Memory.Get", { key: "/a" });
  });

  rule("[A26] options of a call: id, signal, timeoutMs", async () => {
    await kernel.command("Shop.Order", { price: 1 }, { id: "k", signal: new AbortController().signal, timeoutMs: 9 });
    await kernel.query("Shop.Sum", null, { timeoutMs: 9 });
    // @ts-expect-error
    await kernel.command("Shop.Order", { price: 1 }, { timeout: 9 });
    // @ts-expect-error A query has no idempotency key.
    await kernel.query("Shop.Sum", null, { id: "k" });
  });

  rule("[A12] [A27] refusals are typed at the caller", async () => {
    const result = await kernel.safeCommand("Shop.Order", { price: 1 });
    if (result.ok) {
      expectTypeOf(result.value).toEqualTypeOf<{ orders: number }>();
      return;
    }
    const { failure } = result;
    if (failure.reason === "TOO_DEAR") expectTypeOf(failure.data).toEqualTypeOf<{ most: number }>();
    if (failure.reason === "NO_PRICE") expectTypeOf(failure.data).toEqualTypeOf<undefined>();
    if (failure.reason === "TIMED_OUT") expectTypeOf(failure.code).toEqualTypeOf<number>();
    // @ts-expect-error The reason is unknown.
    if (failure.reason === "TOO_CHEAP") return;
    const other = await kernel.safeCommand("Shop.Ping");
    // @ts-expect-error A reason of another command.
    if (!other.ok && other.failure.reason === "TOO_DEAR") return;
  });

  rule("[A28] a live query has the type of the query", () => {
    kernel.live("Shop.Sum").subscribe((sum) => expectTypeOf(sum).toEqualTypeOf<number>());
    kernel.live("Shop.All", { limit: 3 }).subscribe((all) => expectTypeOf(all).toEqualTypeOf<number[]>());
    // @ts-expect-error
    kernel.live("Shop.All");
    // @ts-expect-error A command is not live.
    kernel.live("Shop.Order");
  });

  rule("[A29] events have their names and data", async () => {
    for await (const event of kernel.events("Order.Placed"))
      expectTypeOf(event.data).toEqualTypeOf<{ price: number }>();
    for await (const event of kernel.events(["Order.Placed", "Order.Paid"])) {
      expectTypeOf(event.type).toEqualTypeOf<"Order.Placed" | "Order.Paid">();
      if (event.type === "Order.Placed") expectTypeOf(event.data).toEqualTypeOf<{ price: number }>();
    }
    // @ts-expect-error
    kernel.events("Order.Sent");
  });
}

rule("[A23] `open` gives the calls of its apps, of several together", async () => {
  await using kernel = await open(shop, { file: "shop.db" });
  calls(kernel);
  await using both = await open([shop, billing]);
  expectTypeOf(await both.command("Billing.Pay", { amount: 3 })).toEqualTypeOf<{ paid: number }>();
  expectTypeOf(await both.command("Shop.Ping")).toEqualTypeOf<string>();
  expectTypeOf(await both.query("Billing.Due")).toEqualTypeOf<number>();
  // @ts-expect-error
  await both.command("Billing.Due");
  // @ts-expect-error Options are checked.
  await open(shop, { files: "shop.db" });
  expectTypeOf(shop).toExtend<App>();
});

rule("[W20] `httpApp` takes a kernel", async () => {
  await using kernel = await open(shop);
  httpApp(kernel);
  // @ts-expect-error An app is not a kernel.
  httpApp(shop);
});

rule("[A30] a duration is milliseconds or a number with a unit", () => {
  const durations: Duration[] = [5, "5 ms", "1.5 s", "5 min", "2 h", "1 d"];
  // @ts-expect-error
  durations.push("5 minutes");
  // @ts-expect-error
  durations.push("5min");
});
