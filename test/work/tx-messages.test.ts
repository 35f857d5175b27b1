/** What a handler sends and refuses through `tx`, in a loop with its journals. */
import { describe, expect, test } from "#test";
import { transactional } from "../../src/loop/transactional.ts";
import { Failure } from "../../src/message/error-data.ts";
import { timeInId } from "../../src/message/id-time.ts";
import type { Json } from "../../src/message/json.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Tx } from "../../src/work/tx.ts";
import { bootLoop } from "./loop-world.ts";
import { memoryWorlds, World } from "./world.ts";

async function setup(place: (data: Json, tx: Tx) => unknown, heard?: (data: Json, tx: Tx) => unknown) {
  const world = new World(memoryWorlds);
  const process = await world.process();
  const { space } = process;
  const log = space.cell<Json[]>("log", []);
  const shop = transactional({
    space,
    description: "takes orders",
    emits: { "Order.Placed": true },
    sends: { "Mail.Send": "command", "Mail.Later": "command" },
    commands: { "Shop.Order": { handle: (data: Json, tx) => place(data, tx) as Json } },
  });
  const mail = transactional({
    space,
    description: "sends mail",
    emits: { "Mail.Sent": true },
    commands: {
      "Mail.Send": { handle: (data: Json, tx) => void tx.push(log, ["mail", data] as Json) },
      "Mail.Later": { handle: (data: Json, tx) => void tx.push(log, ["later", data, tx.now] as Json) },
    },
    on: {
      "Order.Placed": (data, tx) => (heard === undefined ? tx.push(log, ["placed", data] as Json) : heard(data, tx)),
    },
  });
  const { loop, bus } = await bootLoop(process, { shop, mail });
  const order = (data: Json = null) => world.run(() => loop.command("Shop.Order", data));
  return { world, process, log, loop, bus, order };
}

describe("messages of a transaction", () => {
  test("[U70] a command that a handler sends is handled after the commit", async () => {
    const { world, log, order } = await setup((data, tx) => void tx.send("Mail.Send", data));
    await order("tea");
    await world.settle();
    expect(log.get()).toEqual([["mail", "tea"]]);
    expect(await world.rows()).toContain("Mail.Send done");
  });

  test("[U70] a handler that throws sends nothing", async () => {
    const { world, log, order } = await setup((data, tx) => {
      tx.send("Mail.Send", data);
      tx.emit("Order.Placed", data);
      tx.send("Mail.Later", data, { delayMs: 10 });
      throw new Error("no");
    });
    await expect(order("tea")).rejects.toThrow("no");
    await world.settle();
    expect(log.get()).toEqual([]);
    expect(await world.rows()).toEqual(["Shop.Order failed"]);
  });

  test("[U72] a command with `at` is sent when its time has come", async () => {
    const { world, log, order } = await setup((data, tx) => void tx.send("Mail.Later", data, { at: tx.now + 60_000 }));
    await order("tea");
    const from = world.host.now();
    await world.settle();
    expect(log.get()).toEqual([]);
    await world.host.advance(61_000);
    const [[, data, at] = []] = log.get() as [string, Json, number][];
    expect(data).toBe("tea");
    expect(at).toBeGreaterThanOrEqual(from + 59_000);
  });

  test("[U71] a message that its capability does not declare is refused at once", async () => {
    const { order } = await setup((data, tx) => void tx.send("Else.Where", data));
    await expect(order()).rejects.toThrow("shop does not send this: command Else.Where is not declared");
  });

  test("[U76] members of `tx` work when they are taken out of it", async () => {
    const { world, log, order } = await setup((data, { send, emit, message }) => {
      emit("Order.Placed", [data, message?.type ?? null]);
      send("Mail.Send", data);
    });
    await order("tea");
    await world.settle();
    expect(log.get()).toHaveLength(2);
    expect(log.get()).toContainEqual(["placed", ["tea", "Shop.Order"]]);
  });
});

describe("ids of messages", () => {
  test("[U77] an attempt after a conflict gives its messages the same ids", async () => {
    const ids: string[][] = [];
    const { world, process, order } = await setup((data, tx) => {
      const log = process.space.cell<Json[]>("log", []);
      tx.get(log);
      ids.push([tx.send("Mail.Send", data), tx.emit("Order.Placed", data), tx.send("Mail.Send", 2, { key: "second" })]);
    });
    let isFirst = true;
    process.line.plan = ({ request }) => {
      if (!isFirst || !request?.entries.some(({ message }) => message.type === "Mail.Send")) return {};
      isFirst = false;
      return { instead: rejected("stale", "read-moved", "moved") };
    };
    const beganAt = world.host.now();
    await order("tea");
    await world.settle();
    expect(ids.length).toBeGreaterThan(1);
    for (const again of ids) expect(again).toEqual(ids[0]);
    expect(new Set(ids[0]).size).toBe(3);
    const rows = await world.run(() => process.store.query({ limit: 10 }));
    expect(rows.map(({ message }) => message?.metadata.id)).toEqual(expect.arrayContaining(ids[0] ?? []));
    // UUIDv7 by their form, with the time of the first attempt.
    expect(ids[0]?.map((id) => timeInId(id))).toEqual([beganAt, beganAt, beganAt]);
  });
});

describe("refusals", () => {
  test("[U73] the caller of a handler that refuses gets a failure with its reason and data", async () => {
    const { world, log, order } = await setup((_data, tx) => {
      tx.push(log, "never");
      tx.send("Mail.Send", "never");
      return tx.refuse("SOLD_OUT", { data: { left: 0 }, message: "no tea left", code: 410 });
    });
    const failure = await order().then(
      () => undefined,
      (error: unknown) => error as Failure,
    );
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({ code: 410, reason: "SOLD_OUT", data: { left: 0 }, message: "no tea left" });
    await world.settle();
    expect(log.get()).toEqual([]);
  });

  test("[U74] a refusal is no dead letter, and the command may be repeated", async () => {
    let isOpen = false;
    const { world, order, process } = await setup((_data, tx) => (isOpen ? "done" : tx.refuse("CLOSED")));
    await expect(order()).rejects.toMatchObject({ code: 409, reason: "CLOSED", message: "CLOSED" });
    const [row] = await world.run(() => process.store.query({ limit: 10 }));
    expect([row?.status, row?.outcome]).toEqual(["done", "refused"]);
    isOpen = true;
    expect(await order()).toBe("done");
  });

  test("[U75] a handler that calls `refuse` and does not return it fails and says so", async () => {
    const { order } = await setup((_data, tx) => void tx.refuse("CLOSED"));
    await expect(order()).rejects.toMatchObject({ code: 500, message: expect.stringContaining("return tx.refuse") });
  });
});

describe("events of a transactional capability", () => {
  test("[L72] the writes, the receipt and the settled delivery of an event handler are one commit", async () => {
    const { world, process, log, order } = await setup((data, tx) => void tx.emit("Order.Placed", data));
    await order("tea");
    await world.settle();
    expect(log.get()).toEqual([["placed", "tea"]]);
    const commits = process.line.arrived.filter(({ patches }) => patches.some(({ id }) => id === "log"));
    expect(commits).toHaveLength(1);
    expect(commits[0]?.settlements).toMatchObject([{ outcome: { kind: "done" } }]);
    expect(commits[0]?.preconditions.some(({ kind }) => kind === "absent")).toBe(true);
  });

  test("[L73] an event handler that throws leaves nothing, and its delivery fails with the reason", async () => {
    const { world, log, order, bus } = await setup(
      (data, tx) => void tx.emit("Order.Placed", data),
      (_data, tx) => {
        tx.push(log, "never");
        tx.emit("Mail.Sent", null);
        throw new Error("no stamps");
      },
    );
    await order("tea");
    await world.settle();
    expect(log.get()).toEqual([]);
    const [failed] = await world.run(() => bus.query({ status: "failed", limit: 1 }));
    expect(failed?.error).toBe("mail: no stamps");
    expect((await world.rows()).filter((row) => row.startsWith("Mail.Sent"))).toEqual([]);
  });
});
