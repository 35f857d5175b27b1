/** Clients behind a URL: over a real HTTP server, with the WebSocket of the runtime. */
import { describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import type { shop } from "../app/shop-app.ts";
import { serve } from "../http/http-setup.ts";

/** The n-th value that differs from those before. */
async function take<T>(values: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const value of values) if (taken.push(value) === count) break;
  return taken;
}

describe("a client behind a URL", () => {
  test("[W62] calls, refusals, live queries and events are those of the app, on one WebSocket", async () => {
    const { server, token } = await serve();
    await using client = await connect<typeof shop>({ url: server.url, token: await token("page", ["read", "send"]) });
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
    expect(await take(sums, 1)).toEqual([42]);
    stop();
    expect(seen.at(-1)).toBe(42);
  });

  test("[W63] a wrong token fails the requests and the live queries, and the status says so", async () => {
    const { server } = await serve();
    await using client = await connect<typeof shop>({ url: server.url, token: "wrong" });
    await expect(client.query("Shop.Sum")).rejects.toMatchObject({ code: 401, reason: "UNAUTHENTICATED" });
    expect(client.status).toEqual({ connection: "refused", waiting: 0 });
    const failed = await new Promise((resolve) => client.live("Shop.Sum").subscribe(() => undefined, resolve));
    expect(failed).toMatchObject({ code: 401 });
  });
});
