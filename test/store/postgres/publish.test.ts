/** Events that a user's own transaction publishes by SQL, over plain `pg`. */
import { describe, expect, test } from "vitest";
import type { Timer, TimerOptions } from "../../../src/host/host.ts";
import { webPlatform } from "../../../src/host/platform.ts";
import { systemHost } from "../../../src/host/system-host.ts";
import { app, on, open, type } from "../../../src/index.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { ControlledHost } from "../controlled-host.ts";
import { freshSchema, NO_POSTGRES, testServer, userClient } from "./server.ts";

const server = testServer();

interface Sold {
  readonly id: number;
  readonly price: number;
}

/** An app that sums up its sales, and notes each event of its handler. */
function salesOf(seen: Sold[], wake: () => void) {
  return app("sales", ({ cell, event }) => {
    const sum = cell<number>("sum", 0);
    const sold = event("Order.Placed", type<Sold>());
    return {
      queries: { "Sales.Sum": () => sum.get() },
      on: {
        add: on(sold, (order, tx) => {
          tx.update(sum, (before) => before + order.price);
          seen.push(order);
          wake();
        }),
      },
    };
  });
}

/** Resolves once `count` events were handled. */
class Seen {
  readonly orders: Sold[] = [];
  #wake: () => void = () => {};

  readonly wake = (): void => this.#wake();

  async reaches(count: number): Promise<void> {
    while (this.orders.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** Its long timers do not fire, so that no poll finds an event. */
class NeverPolls extends ControlledHost {
  override timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer {
    return delayMs < 50 ? super.timer(delayMs, fire, options) : { cancel: () => true };
  }
}

/** Resolves when one of the stores counts so many pending events, and no count is under way any more. */
async function untilPending(stores: readonly Store[], count: number, act?: () => Promise<unknown>): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const counts: Promise<unknown>[] = [];
  const look = async (store: Store) => {
    if ((await store.count()).pending === count) reached.resolve();
  };
  const stops = stores.map((store) => store.watch(() => void counts.push(look(store))));
  await act?.();
  await reached.promise;
  for (const stop of stops) stop();
  await Promise.all(counts);
}

describe.skipIf(NO_POSTGRES !== undefined)("publishing from SQL", () => {
  test("[S271] an event published in a transaction is delivered if that commits, and never if it is rolled back", async () => {
    const seen = new Seen();
    const kernel = await open(salesOf(seen.orders, seen.wake), { store: server.url });
    await using client = await userClient(server.url);
    await client.query("CREATE TABLE orders (id integer PRIMARY KEY, price integer NOT NULL)");
    const place = async (id: number, end: "COMMIT" | "ROLLBACK") => {
      await client.query("BEGIN");
      await client.query("INSERT INTO orders VALUES ($1, $2)", [id, 10 * id]);
      await client.query("SELECT millrace.publish('Order.Placed', $1)", [{ id, price: 10 * id }]);
      await client.query(end);
    };
    for (const id of [1, 2, 3, 4]) await place(id, id % 2 === 0 ? "ROLLBACK" : "COMMIT");
    await seen.reaches(2);
    await place(5, "COMMIT");
    await seen.reaches(3);
    expect(seen.orders).toEqual([1, 3, 5].map((id) => ({ id, price: 10 * id })));
    const rows = await client.query("SELECT topic, source FROM millrace.event_journal WHERE topic = 'Order.Placed'");
    expect(rows.rows).toEqual([1, 2, 3].map(() => ({ topic: "Order.Placed", source: "sql" })));
    const left = await client.query("SELECT count(*)::integer AS n FROM millrace.outbox");
    expect(left.rows).toEqual([{ n: 0 }]);
    await kernel.close();
  });

  test("[S271] a kernel is woken by the commit: no timer has to fire", async () => {
    const schema = freshSchema();
    await using store = await openPostgresStore({ url: server.url, schema, host: new NeverPolls() });
    await using client = await userClient(server.url);
    for (const count of [1, 2, 3]) {
      await untilPending([store], count, () => client.query(`SELECT ${schema}.publish('item.made', $1)`, [count]));
    }
  });

  test("[S272] events wait for a kernel, and are moved in the order of the calls, each once by several kernels", async () => {
    const schema = freshSchema();
    await using store = await openPostgresStore({ url: server.url, schema });
    await using client = await userClient(server.url);
    const publish = `SELECT ${schema}.publish('item.made', to_jsonb(n)) FROM generate_series($1::integer, $2::integer) n`;
    const count = 1_200;
    await client.query(publish, [1, count]);
    expect((await store.count()).pending).toBe(0);
    const others = await Promise.all([1, 2].map(() => openPostgresStore({ url: server.url, schema })));
    await untilPending([store, ...others], count);
    const lanes = new Map<number, number[]>();
    for (let cursor = 0; ; ) {
      const rows = await store.query({ limit: 500, cursor });
      for (const { id, lane = 0, message } of rows) {
        lanes.set(lane, [...(lanes.get(lane) ?? []), Number(message?.data)]);
        cursor = id;
      }
      if (rows.length < 500) break;
    }
    for (const numbers of lanes.values()) expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    const all = [...lanes.values()].flat().sort((a, b) => a - b);
    expect(all).toEqual(Array.from({ length: count }, (_, n) => n + 1));
    for (const one of others) await one.close();
    expect((await store.verify()).problems).toEqual([]);
  });

  test("[S273] an event with a given id is published once; other content under the id is refused", async () => {
    const schema = freshSchema();
    await using store = await openPostgresStore({ url: server.url, schema });
    await using client = await userClient(server.url);
    const publish = async (data: unknown, id: string) => {
      const { rows } = await client.query(
        `SELECT ${schema}.publish('item.made', $1, id => $2, correlation => 'c') AS id`,
        [JSON.stringify(data), id],
      );
      return rows[0]?.["id"];
    };
    expect(await publish({ n: 1 }, "one")).toBe("one");
    expect(await publish({ n: 1 }, "one")).toBe("one");
    await expect(publish({ n: 2 }, "one")).rejects.toMatchObject({ code: "23505" });
    await untilPending([store], 1);
    // It is in the journal now. The same event is no further one.
    await publish({ n: 1 }, "one");
    const made = await client.query(`SELECT ${schema}.publish('item.made') AS id`);
    expect(made.rows[0]?.["id"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    await untilPending([store], 2);
    const rows = await store.query({ limit: 10 });
    expect(rows.map(({ message }) => [message?.metadata.id, message?.data, message?.metadata.correlation])).toEqual([
      ["one", { n: 1 }, "c"],
      [made.rows[0]?.["id"], null, undefined],
    ]);
  });

  test("[S274] a call that is no event is refused at once; a row that the journal cannot take stays and is reported", async () => {
    const schema = freshSchema();
    const reports: string[] = [];
    const complain = (_what: string, error: unknown) => void reports.push(String((error as Error).message));
    const host = systemHost({ ...webPlatform(), complain });
    await using store = await openPostgresStore({ url: server.url, schema, host });
    await using client = await userClient(server.url);
    const refused = async (text: string, ...values: unknown[]) =>
      expect(client.query(text.replace("publish", `${schema}.publish`), values)).rejects.toMatchObject({
        code: "22023",
      });
    await refused("SELECT publish('no topic')");
    await refused("SELECT publish('.')");
    await refused("SELECT publish(NULL)");
    await refused("SELECT publish('a.b', id => '')");
    await refused("SELECT publish('a.b', to_jsonb(repeat('x', 1048576)))");
    // A number that JavaScript has not.
    await client.query(`SELECT ${schema}.publish('a.b', '1e999')`);
    await client.query(`SELECT ${schema}.publish('a.b', '1')`);
    await untilPending([store], 1);
    const { rows } = await client.query(`SELECT payload, problem FROM ${schema}.outbox`);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.["problem"]).toContain("data");
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain(rows[0]?.["problem"]);
  });
});
