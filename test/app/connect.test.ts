/** An app in a process of its own, called over its socket, killed and started again. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Connected, connect } from "../../src/client/index.ts";
import { open } from "../../src/index.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { scratchFolder } from "../repo/program.ts";
import { shop } from "./shop-app.ts";

const APP = new URL("./shop-app.ts", import.meta.url).pathname;
const PATIENCE_MS = 590_000;

async function shopAt(kernel: KernelProcess): Promise<Connected<typeof shop>> {
  return connect<typeof shop>({ path: kernel.socketPath, timeoutMs: PATIENCE_MS });
}

describe("connect", () => {
  test("[A31] [A32] calls, refusals, ids and events are those of the app", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), APP);
    await using client = await shopAt(kernel);
    const heard = client.events("Order.Placed", { from: "start" });
    expect(await client.command("Shop.Order", { price: 30 }, { id: "one" })).toEqual({ orders: 1 });
    expect(await client.command("Shop.Order", { price: 30 }, { id: "one" })).toEqual({ orders: 1 });
    expect(await client.query("Shop.Sum")).toBe(30);
    expect(await client.safeCommand("Shop.Order", { price: 300 })).toMatchObject({
      ok: false,
      failure: { reason: "TOO_DEAR", data: { most: 100 } },
    });
    for await (const { type, data } of heard) {
      expect([type, data]).toEqual(["Order.Placed", { price: 30 }]);
      break;
    }
  });

  test("[A44] a client subscribes when events are asked for, before the iteration begins, and ends unread ones", async () => {
    const socketPath = join(scratchFolder(), "kernel.sock");
    await using kernel = await open(shop, { socketPath });
    await using client = await connect<typeof shop>({ path: socketPath, timeoutMs: PATIENCE_MS });
    const { streams } = kernel.kernel.loop;
    const events = client.events("Order.Placed")[Symbol.asyncIterator]();
    while (streams.size === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    await client.command("Shop.Order", { price: 8 });
    expect(await events.next()).toMatchObject({ done: false, value: { type: "Order.Placed", data: { price: 8 } } });
    await events.return?.();
    const unread = client.events("Order.Placed")[Symbol.asyncIterator]();
    await unread.return?.();
    expect(await unread.next()).toMatchObject({ done: true });
    while (streams.size > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  });

  test("[A28] [A31] [A17] a live query goes on when the kernel was killed, and each event is committed once", async () => {
    const folder = scratchFolder();
    let kernel = await KernelProcess.start(folder, APP);
    const client = await shopAt(kernel);
    const answers: (readonly number[])[] = [];
    let wake: () => void = () => undefined;
    const stop = client.live("Shop.Paid").subscribe((paid) => {
      answers.push(paid);
      wake();
    });
    const until = async (count: number) => {
      while ((answers.at(-1)?.length ?? -1) < count) await new Promise<void>((resolve) => (wake = resolve));
    };
    await until(0);
    for (let round = 1; round <= 3; round++) {
      await client.command("Shop.Order", { price: round });
      await kernel.kill();
      kernel = await KernelProcess.start(folder, APP);
      await until(round);
    }
    stop();
    expect(answers.at(-1)?.toSorted()).toEqual([2, 4, 6]);
    await client.close();
  });

  test("[A31] a query that the kernel does not have ends the live query with its reason", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), APP);
    await using client = await shopAt(kernel);
    const failed = await new Promise((resolve) =>
      client.live("Shop.Nothing" as "Shop.Sum").subscribe(() => undefined, resolve),
    );
    expect(failed).toMatchObject({ code: 404, message: expect.stringContaining("Shop.Nothing") });
  });
});
