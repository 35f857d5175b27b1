/**
 * A transactional handler may change its data, emissions and answers: journal, receipt and subscribers have the
 * originals.
 */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Tx } from "../../src/work/tx.ts";
import { command, setup } from "./loop-setup.ts";

type Order = { items: number[]; at?: number };

/** `another` opens the space once more, as another process would. */
type Handle = (order: Order, tx: Tx, space: Space, host: SimulatedHost, another: () => Promise<Space>) => unknown;

async function shop(handle: Handle) {
  const host = simulatedHost(1);
  const store = memoryStore({ host });
  const space = await host.run(() => Space.open({ store, host, name: "test" }));
  const another = () => Space.open({ store, host, name: "test" });
  const selling = transactional({
    space,
    description: "sells",
    emits: { "Shop.Sold": true },
    commands: {
      "Shop.Order": { handle: (order: Json, tx) => handle(order as Order, tx, space, host, another) as Json },
    },
  });
  const { loop, client } = await setup({ selling }, { host });
  const one = client();
  const order = async (...ids: string[]) => {
    for (const id of ids) loop.receive(command("Shop.Order", id, { items: [3, 1, 2] }), one);
    await host.advance(1_000);
  };
  const journal = async (topic: string) =>
    (await host.run(() => store.query({ topic, limit: 9 }))).map(({ message }) => message?.data);
  return { host, order, journal, space, client: one };
}

describe("data and emissions of a transactional handler", () => {
  test("[L32] a handler's changes to its data are not journaled, and the repeated request gets its answer", async () => {
    const { order, journal, client } = await shop((data, _tx, _space, host) => {
      data.items.sort();
      data.at = host.now();
      return data.items[0];
    });
    await order("a");
    await order("a");
    expect(client.answers).toEqual(["reply a 1", "reply a 1"]);
    expect(await journal("Shop.Order")).toEqual([{ items: [3, 1, 2] }]);
  });

  test("[L32] a handler that runs again gets the data as it was sent", async () => {
    let runs = 0;
    const { order, client } = await shop(async (data, tx, space, _host, another) => {
      const stock = space.cell<number>("stock");
      const before = tx.get(stock) ?? 0;
      if (++runs === 1) {
        const other = await another();
        await other.transact(() => other.cell<number>("stock").set(10));
      }
      data.items.push(before);
      tx.set(stock, before + 1);
      return data.items;
    });
    await order("a");
    expect([runs > 1, client.answers]).toEqual([true, ["reply a [3,1,2,10]"]]);
  });

  test("[L32] emissions and answers are copied at that moment", async () => {
    const state = { count: 0 };
    const { order, journal, client } = await shop((_data, tx) => {
      state.count++;
      tx.emit("Shop.Sold", state);
      return state;
    });
    await order("a", "b");
    await order("a", "b");
    expect(client.answers.toSorted()).toEqual([
      'reply a {"count":1}',
      'reply a {"count":1}',
      'reply b {"count":2}',
      'reply b {"count":2}',
    ]);
    expect(await journal("Shop.Sold")).toEqual([{ count: 1 }, { count: 2 }]);
  });

  test("[L32] [M6] a handler is told at once that its emission is not JSON, and has no effect", async () => {
    const { order, journal, space, client } = await shop((_data, tx, of) => {
      tx.set(of.cell("touched"), true);
      tx.emit("Shop.Sold", { when: new Date(0) } as never);
    });
    await order("a");
    expect(client.answers).toEqual(["error a 500"]);
    expect(client.received[0]?.data).toMatchObject({
      message: expect.stringContaining("selling does not emit this: data.when: must be a plain object"),
    });
    expect([await journal("Shop.Sold"), space.cell("touched").get()]).toEqual([[], undefined]);
  });
});
