/** Clients behind a URL: over a real HTTP server, with the WebSocket of the runtime. */
import { createServer, type Socket, connect as tcpConnect } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connect as connectPage } from "../../src/client/browser.ts";
import { connect } from "../../src/client/index.ts";
import type { shop } from "../app/shop-app.ts";
import { serve } from "../http/http-setup.ts";

const SCOPES = ["read", "send"];

/** The first values. */
async function take<T>(values: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const value of values) if (taken.push(value) === count) break;
  return taken;
}

/** A server between client and kernel; its connections can be cut, or fall silent. */
async function cuttable(target: string): Promise<{ readonly url: string; cut(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = tcpConnect(Number(new URL(target).port), "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return { url: `http://127.0.0.1:${port}`, cut };
}

describe("a client behind a URL", () => {
  test("[W62] calls, refusals, live queries and events are those of the app, on one WebSocket", async () => {
    const { server, token } = await serve();
    await using client = await connect<typeof shop>({ url: server.url, token: await token("page", SCOPES) });
    const sums = client.live("Shop.Sum");
    const seen: number[] = [];
    const stop = sums.subscribe((sum) => seen.push(sum));
    const placed = take(client.events("Order.Placed", { from: "start" }), 2);
    expect(await client.command("Shop.Order", { price: 30 }, { id: "one" })).toEqual({ orders: 1 });
    expect(await client.command("Shop.Order", { price: 30 }, { id: "one" })).toEqual({ orders: 1 });
    expect(await client.safeCommand("Shop.Order", { price: 300 })).toMatchObject({
      ok: false,
      failure: { reason: "TOO_DEAR", data: { most: 100 } },
    });
    await client.command("Shop.Order", { price: 12 });
    expect((await placed).map(({ data }) => data)).toEqual([{ price: 30 }, { price: 12 }]);
    await vi.waitUntil(() => seen.at(-1) === 42, { timeout: 60_000 });
    stop();
    expect(await take(sums, 1)).toEqual([42]);
  });

  test("[W62] data that is not JSON, a wrong address and a path in a page are refused with a remedy", async () => {
    const { server, token } = await serve();
    await using client = await connect<typeof shop>({ url: server.url, token: await token("page", SCOPES) });
    await expect(client.command("Shop.Order", { price: Number.NaN })).rejects.toThrow(/data\.price/);
    await expect(connect<typeof shop>({ url: "nonsense" })).rejects.toThrow(/not an address like/);
    await expect(connect<typeof shop>({})).rejects.toThrow(/url is missing/);
    await expect(connectPage<typeof shop>({ path: "kernel.sock" } as never)).rejects.toThrow(/give url/);
  });

  test("[W63] a refused token fails requests and live queries; a function is asked again", async () => {
    const { server, token } = await serve();
    const tokens = ["wrong", "wrong", await token("page", SCOPES)];
    await using client = await connect<typeof shop>({ url: server.url, token: () => tokens.shift() ?? "none left" });
    await expect(client.query("Shop.Sum")).rejects.toMatchObject({ code: 401, reason: "UNAUTHENTICATED" });
    expect(client.status).toEqual({ connection: "refused", waiting: 0 });
    const failed = await new Promise((resolve) => client.live("Shop.Sum").subscribe(() => undefined, resolve));
    expect(failed).toMatchObject({ code: 401 });
    expect(await client.query("Shop.Sum")).toBe(0);
    expect(client.status.connection).toBe("connected");
  });

  test("[W64] [W65] after each cut every event comes once, the live query goes on, and commands take effect once", async () => {
    const { kernel, server, token } = await serve();
    const between = await cuttable(server.url);
    await using client = await connect<typeof shop>({ url: between.url, token: await token("page", SCOPES) });
    const states: string[] = [];
    client.onStatus(() => states.push(client.status.connection));
    let sum = -1;
    client.live("Shop.Sum").subscribe((now) => (sum = now));
    const placed = take(client.events("Order.Placed", { from: "start" }), 10);
    for (let order = 1; order <= 10; order++) {
      const answer = client.command("Shop.Order", { price: order });
      between.cut();
      expect(await answer).toEqual({ orders: order });
    }
    const prices = (await placed).map(({ data }) => data.price);
    expect(prices).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await vi.waitUntil(() => sum === 55, { timeout: 60_000 });
    expect(await kernel.query("Shop.Sum")).toBe(55);
    expect(states).toContain("away");
    expect(client.status).toEqual({ connection: "connected", waiting: 0 });
    expect(client.status).toBe(client.status);
  });

  test("[W66] streams that their readers have ended end in the kernel, however soon", async () => {
    const { server, token } = await serve();
    await using client = await connect<typeof shop>({ url: server.url, token: await token("page", SCOPES) });
    // More than a connection may have open at once.
    for (let round = 0; round < 40; round++) {
      const errors: unknown[] = [];
      const stops = Array.from({ length: 8 }, () =>
        client.live("Shop.Sum").subscribe(
          () => undefined,
          (error) => errors.push(error),
        ),
      );
      // Half of them end before the kernel has begun them.
      if (round % 2 === 0) await client.query("Shop.Sum");
      for (const stop of stops) stop();
      await client.query("Shop.Sum");
      expect(errors).toEqual([]);
    }
    expect(await take(client.live("Shop.Sum"), 1)).toEqual([0]);
  });

  test("[W62] after close every call fails, and nothing is sent", async () => {
    const { server, token } = await serve();
    const client = await connect<typeof shop>({ url: server.url, token: await token("page", SCOPES) });
    const waits = client.query("Shop.Sum");
    await client.close();
    await expect(waits).rejects.toMatchObject({ reason: "CLOSED" });
    await expect(client.query("Shop.Sum")).rejects.toMatchObject({ reason: "CLOSED" });
    expect(client.status.connection).toBe("closed");
  });
});
