/** Calls of a kernel space's sinks over restarts. */
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchFolder } from "../repo/program.ts";
import { Calls } from "../scheduler/scheduler-setup.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";

describe("sinks over restarts of a kernel", () => {
  for (const version of [undefined, "1"]) {
    test(`[R55] each start calls sinks first with the stored value; version ${version}`, async () => {
      const path = join(scratchFolder(), "kernel.db");
      for (let start = 1; start <= 3; start++) {
        const seen: string[] = [];
        await using kernel = await Kernel.open({
          ...(version === undefined ? {} : { version }),
          store: await openSqliteStore({ path, durability: "process" }),
          capabilities: ({ space }) => {
            const stock = space.cell<number>("stock", 10);
            stock.sink((value) => seen.push(`cell ${value}`));
            space.computed("left", () => stock.get() ?? 0).sink((value) => seen.push(`computed ${value}`));
            const handle = (n: number, tx: { set(cell: typeof stock, n: number): void }) => {
              tx.set(stock, n);
              return null;
            };
            return { shop: transactional({ space, description: "stock", commands: { "Shop.Set": { handle } } }) };
          },
        });
        if (start === 1) await kernel.command("Shop.Set", 42);
        await kernel.space.settled();
        // In the first life the command may come before the sinks have been called with the default.
        const shown = start === 1 ? seen.slice(-2) : seen;
        expect(shown.toSorted()).toEqual(["cell 42", "computed 42"]);
      }
    });
  }
});

/** Stock in a kernel with a store that answers commits when the test decides, and rejects the one for 8. */
async function shop() {
  const host = systemHost();
  const line = new FaultyLine(memoryStore({ host }));
  const kernel = await Kernel.open({ host, store: line.store });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  const stock = kernel.space.cell<number>("stock");
  stock.set(10);
  await kernel.space.settled();
  const gate = new Gate();
  line.plan = ({ method, request }) => {
    if (method !== "commit") return {};
    const puts = (value: number) =>
      request?.patches.some(({ operations }) => operations.some((one) => one.op === "set" && one.value === value));
    return puts(8) ? { instead: rejected("refused", "protocol", "no"), answered: gate.opened } : {};
  };
  return { kernel, stock, gate };
}

describe("state that is rolled back", () => {
  test("[R58] a sink of a kernel's space is not called with rolled-back state", async () => {
    const { kernel, stock, gate } = await shop();
    const [confirmed, speculative] = [new Calls(), new Calls()];
    stock.sink(confirmed.note);
    stock.sink(speculative.note, { confirmed: false });
    await kernel.space.settled();
    stock.set(8);
    await kernel.space.idle();
    expect([confirmed.take(), speculative.take()]).toEqual([[10], [10, 8]]);
    gate.open();
    await kernel.space.settled();
    expect([confirmed.take(), speculative.take()]).toEqual([[], [10]]);
    stock.set(9);
    await kernel.space.settled();
    expect([confirmed.take(), speculative.take()]).toEqual([[9], [9]]);
  });

  test("[R62] an event that an observer publishes because of rolled-back state is dropped", async () => {
    const { kernel, stock, gate } = await shop();
    const heard = new Promise((resolve) => {
      kernel.bus.subscribe("Stock.Low", ({ payload }) => resolve(payload), { subscriberId: "watch" });
    });
    const publications: Promise<number>[] = [];
    kernel.space.effect(() => {
      const left = stock.get() ?? 0;
      if (left < 10) publications.push(kernel.bus.publish("Stock.Low", "watch", { left }));
    });
    await kernel.space.settled();
    stock.set(8);
    await kernel.space.idle();
    expect(publications).toHaveLength(1);
    gate.open();
    await expect(publications[0]).rejects.toMatchObject({ code: "DROPPED" });
    await kernel.space.settled();
    stock.set(9);
    await kernel.space.settled();
    expect(await publications[1]).toBeGreaterThan(0);
    expect(await heard).toEqual({ left: 9 });
  });

  test("[R62] sends and publications of an observer are dropped with its reads", async () => {
    const { kernel, stock, gate } = await shop();
    const orders = kernel.space.stream<number>("orders");
    const handled: number[] = [];
    orders.handle((left) => void handled.push(left));
    const ends: Promise<unknown>[][] = [];
    kernel.space.effect(() => {
      const left = stock.get() ?? 0;
      if (left >= 10) return;
      const publication = { topic: "Stock.Low", source: "watch", payload: left };
      const message = (kind: "command" | "event", type: string) => ({
        ...{ kind, type, data: left },
        metadata: { id: `${type} ${left}`, timestamp: 1 },
      });
      ends.push([
        kernel.bus.publishMany([publication]),
        kernel.bus.publishMessage(message("event", "Stock.Lower"), "watch"),
        kernel.request(message("command", "Stock.Order")),
        orders.send(left).outcome,
      ]);
    });
    await kernel.space.settled();
    stock.set(8);
    await kernel.space.idle();
    gate.open();
    const [published, told, asked, sent] = ends[0] as Promise<unknown>[];
    for (const end of [published, told, asked]) await expect(end).rejects.toMatchObject({ code: "DROPPED" });
    expect(await sent).toMatchObject({ kind: "dropped", reason: "origin-failed" });
    await kernel.space.settled();
    stock.set(9);
    await kernel.space.settled();
    expect(await ends[1]?.[3]).toMatchObject({ kind: "handled" });
    await Promise.all(ends[1] ?? []);
    expect(handled).toEqual([9]);
  });

  test("[R58] a request repeated under its id shows observers no second effect", async () => {
    const published: unknown[] = [];
    const seen = new Calls();
    await using kernel = await Kernel.open({
      store: await openSqliteStore({ path: join(scratchFolder(), "kernel.db"), durability: "process" }),
      capabilities: ({ space, bus }) => {
        const stock = space.cell<number>("stock", 10);
        stock.sink((left) => {
          seen.note(left);
          if ((left ?? 0) < 9) published.push(bus.publish("Stock.Low", "watch", { left: left ?? null }));
        });
        const handle = (
          _: null,
          tx: { get(cell: typeof stock): number | undefined; set(cell: typeof stock, n: number): void },
        ) => {
          tx.set(stock, (tx.get(stock) ?? 0) - 1);
          return { ok: true };
        };
        return { shop: transactional({ space, description: "shop", commands: { "Shop.Order": { handle } } }) };
      },
    });
    await kernel.space.settled();
    const metadata = { id: "order-1", timestamp: Date.now() };
    const order = { kind: "command" as const, type: "Shop.Order", data: null, metadata };
    expect((await kernel.request(order)).data).toEqual((await kernel.request(order)).data);
    await kernel.space.settled();
    expect([seen.seen, published]).toEqual([[10, 9], []]);
  });
});
