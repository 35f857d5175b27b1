/** Messages and refusals of handlers through `tx`, in a loop with its journals. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { Space } from "../../src/cells/space.ts";
import { TX_MESSAGES_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { Failure } from "../../src/message/error-data.ts";
import { timeInId } from "../../src/message/id-time.ts";
import type { Json } from "../../src/message/json.ts";
import { rejected } from "../../src/store/rejection.ts";
import { TIMER_KIND } from "../../src/work/timer-row.ts";
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

  test("[U70] a handler that throws sends no message", async () => {
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

  test("[U71] a transaction sends at most 10,000 messages, now and later together", async () => {
    const { world, order } = await setup((_data, tx) => {
      for (let n = 0; n < TX_MESSAGES_MAX; n++) {
        if (n % 2 === 0) tx.emit("Order.Placed", n);
        else tx.send("Mail.Later", n, { delayMs: 1 });
      }
      tx.emit("Order.Placed", "one more");
    });
    await expect(order()).rejects.toThrow("sends more than 10000 messages in one transaction");
    expect(await world.rows()).toEqual(["Shop.Order failed"]);
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

describe("timers of a transaction", () => {
  const mails = (log: { get(): unknown }) => (log.get() as [string, Json, number][]).map(([, data, at]) => [data, at]);

  test("[U79] a timer is set with the commit, and fires once", async () => {
    const { world, log, order } = await setup((data, tx) =>
      tx.setTimer({ name: "remind", at: tx.now + 5_000, send: { type: "Mail.Later", data } }),
    );
    const from = world.host.now();
    await order("tea");
    await world.host.advance(60_000);
    expect(mails(log)).toEqual([["tea", from + 5_000]]);
  });

  test("[U79] a timer that is set again under its name is replaced, also after it has fired", async () => {
    const { world, log, order } = await setup((data, tx) =>
      tx.setTimer({ name: "remind", delayMs: 5_000, send: { type: "Mail.Later", data } }),
    );
    await order("tea");
    await world.host.advance(1_000);
    await order("milk");
    await world.host.advance(10_000);
    await order("milk");
    await world.host.advance(10_000);
    expect(mails(log).map(([data]) => data)).toEqual(["milk", "milk"]);
  });

  test("[U79] a schedule repeats until it is cancelled, by another invocation too", async () => {
    const { world, log, order } = await setup((data, tx) => {
      if (data === "stop") tx.cancelTimer("remind");
      else tx.setTimer({ name: "remind", everyMs: 1_000, send: { type: "Mail.Later", data } });
    });
    await order("tea");
    await world.host.advance(3_500);
    await order("stop");
    await world.host.advance(10_000);
    expect(mails(log)).toHaveLength(3);
  });

  test("[U79] two spaces may have timers of one name", async () => {
    const { world, process } = await setup(() => null);
    const { host, store, space } = process;
    const other = await world.run(() => Space.open({ store, host, name: "other" }));
    for (const one of [space, other])
      await world.run(() =>
        one.transact((tx) => tx.setTimer({ name: "remind", delayMs: 60_000, send: { type: "Mail.Send" } })),
      );
    expect(await world.run(() => store.dueRows(Number.MAX_SAFE_INTEGER, 10, TIMER_KIND))).toHaveLength(2);
  });

  test("[U79] a handler that throws sets no timer", async () => {
    const { world, log, order } = await setup((data, tx) => {
      tx.setTimer({ name: "remind", delayMs: 1, send: { type: "Mail.Later", data } });
      throw new Error("no");
    });
    await expect(order()).rejects.toThrow("no");
    await world.settle();
    expect(log.get()).toEqual([]);
  });

  test("[U79] a timer that cannot be set is refused, with the reason", async () => {
    const timers: readonly (readonly [object, string])[] = [
      [{ name: "", at: 1 }, "name: a timer is named by 1 to 255 characters"],
      [{ name: "a" }, "needs one of at, delayMs, everyMs and cron"],
      [{ name: "a", at: 1, everyMs: 1 }, "give one of at, delayMs, everyMs and cron"],
      [{ name: "a", at: 1, delayMs: 1 }, "give either at or delayMs"],
      [{ name: "a", at: Number.NaN }, "at: must be milliseconds since 1970"],
      [{ name: "a", everyMs: 0 }, "everyMs: must be a whole number"],
      [{ name: "a", cron: "never" }, "cron:"],
    ];
    const { order } = await setup((data, tx) =>
      tx.setTimer({ ...timers[data as number]?.[0], send: { type: "Mail.Later" } } as never),
    );
    for (const [at, [, reason]] of timers.entries()) await expect(order(at)).rejects.toThrow(reason);
  });
});

describe("requests of a transaction", () => {
  test("[U78] a handler that runs again asks under the same id, and the callee runs once", async () => {
    const ids: string[] = [];
    const world = new World(memoryWorlds);
    const process = await world.process();
    const { space } = process;
    const [total, stamps] = [space.cell<number>("total", 0), space.cell<number>("stamps", 0)];
    const shop = transactional({
      space,
      description: "takes orders",
      sends: { "Stamp.Take": "command" },
      commands: {
        "Shop.Order": {
          handle: async (_data: Json, tx) => {
            const sum = tx.get(total);
            const taken = await tx.command("Stamp.Take", null, { key: "stamp" });
            tx.set(total, sum + 1);
            return taken;
          },
        },
      },
    });
    const stamp = transactional({
      space,
      description: "gives stamps",
      commands: {
        "Stamp.Take": {
          handle: (_data: Json, tx) => {
            ids.push(tx.message?.metadata.id ?? "");
            tx.update(stamps, (count) => count + 1);
            return tx.get(stamps);
          },
        },
      },
    });
    const { loop } = await bootLoop(process, { shop, stamp });
    let isFirst = true;
    process.line.plan = ({ request }) => {
      if (!isFirst || !request?.patches.some(({ id }) => id === "total")) return {};
      isFirst = false;
      return { instead: rejected("stale", "read-moved", "moved") };
    };
    expect(await world.run(() => loop.command("Shop.Order", null))).toBe(1);
    expect([stamps.get(), new Set(ids).size]).toEqual([1, 1]);
  });

  test("[U78] a request fails with 504 after its `timeoutMs`", async () => {
    const world = new World(memoryWorlds);
    const process = await world.process();
    const shop = transactional({
      space: process.space,
      description: "takes orders",
      sends: { "Slow.Answer": "query" },
      commands: {
        "Shop.Order": { handle: (_data: Json, tx) => tx.query("Slow.Answer", null, { timeoutMs: 50 }) },
      },
    });
    const never = () => new Promise<Json>(() => undefined);
    const slow = capability({ description: "never answers", queries: { "Slow.Answer": { handle: never } } });
    const { loop } = await bootLoop(process, { shop, slow });
    const startMs = world.host.monotonic();
    const order = world.run(() => loop.command("Shop.Order", null));
    await expect(order).rejects.toMatchObject({ code: 504, reason: "TIMED_OUT" });
    expect(world.host.monotonic() - startMs).toBeLessThan(1_000);
  });

  test("[U78] without a kernel a request is refused", async () => {
    const world = new World(memoryWorlds);
    const { space } = await world.process();
    const stream = space.stream<null>("orders");
    stream.handle((_value, tx) => tx.query("Shop.List", null));
    const outcome = await world.run(() => stream.send(null).outcome);
    expect(outcome).toMatchObject({ kind: "failed", message: expect.stringContaining("only a kernel has handlers") });
  });
});

describe("launches of a transaction", () => {
  test("[U70] values for streams and pieces of patterns come with the commit, from a command", async () => {
    let isOpen = false;
    const { world, process, order } = await setup((_data, tx) => {
      tx.sendTo(stream, 7);
      tx.start(counter, { from: 1 }, { id: "piece" });
      return isOpen ? null : tx.refuse("CLOSED");
    });
    const { space } = process;
    const stream = space.stream<number>("stream");
    const counter = pattern("counter", (inputs: Cell<{ from: number }>) => ({ next: inputs.key("from") }));
    const seen: number[] = [];
    stream.handle((value) => void seen.push(value));
    await expect(order()).rejects.toThrow("CLOSED");
    await world.settle();
    expect([seen, [...space.pieces.keys()]]).toEqual([[], []]);
    isOpen = true;
    await order();
    await world.settle();
    expect([seen, [...space.pieces.keys()]]).toEqual([[7], ["piece"]]);
  });

  test("[U70] `transact` sends and refuses through its tx", async () => {
    const { world, log, process } = await setup(() => null);
    const { space } = process;
    const refusing = (tx: Tx) => {
      tx.push(log, "never");
      return tx.refuse("CLOSED");
    };
    const refused = world.run(() => space.transact(refusing));
    await expect(refused).rejects.toMatchObject({ reason: "CLOSED", code: 409 });
    await world.run(() => space.transact((tx) => tx.send("Mail.Send", "tea")));
    await world.settle();
    expect(log.get()).toEqual([["mail", "tea"]]);
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

  test("[U73] a refusal with a code of 500 or more is a mistake of the handler", async () => {
    const { order } = await setup((_data, tx) => tx.refuse("BROKEN", { code: 500 }));
    await expect(order()).rejects.toThrow("a refusal has a code of 400 to 499, got 500");
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

  test("[L73] an event handler that throws leaves no effect, and its delivery fails with the reason", async () => {
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
