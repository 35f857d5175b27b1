/** Consumers: events wait for every declared subscriber, whether and wherever it runs. */
import { describe, expect, test } from "#test";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { EVENT_DEATHS_MAX, LEASE_MS } from "../../src/limits.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

const RETRY = { attempts: 3, backoff: { startMs: 1_000, factor: 1 } };

describe("a declared consumer that does not run", () => {
  test("[J98] its events are pending with the reason, and are delivered when it subscribes, without a restart", async () => {
    const { bus, act, row } = setup();
    bus.declare("mail.received", "agent");
    await act(() => bus.start());
    const id = await act(() => bus.publish("mail.received", "inbox", 1));
    expect(await row(id)).toMatchObject({
      status: "pending",
      error: "waits for agent on mail.received, which is not running",
      deliveries: [{ subscriber: "agent", status: "waiting", attempts: 0 }],
    });
    const { ids, handler } = recorder();
    await act(async () => bus.subscribe("mail.received", handler, { subscriberId: "agent" }));
    expect([ids, (await row(id)).status]).toEqual([[id], "done"]);
  });

  test("[J98] the subscribers that run here get the event at once, and once", async () => {
    const { bus, act, row } = setup();
    bus.declare("mail.*", "agent");
    const index = recorder();
    bus.subscribe("mail.received", index.handler, { subscriberId: "index" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("mail.received", "inbox", 1));
    expect(index.ids).toEqual([id]);
    expect((await row(id)).deliveries).toMatchObject([
      { subscriber: "index", status: "done" },
      { subscriber: "agent mail.*", status: "waiting", awaits: "agent mail.*" },
    ]);
    const agent = recorder();
    await act(async () => bus.subscribe("mail.*", agent.handler, { subscriberId: "agent" }));
    expect([index.ids, agent.ids, (await row(id)).status]).toEqual([[id], [id], "done"]);
  });

  test("[J98] a backlog of events that were published before the consumer was declared waits for it", async () => {
    const { bus, act, store, another } = setup();
    const publisher = another();
    await act(() => publisher.publishMany(Array.from({ length: 50 }, () => ({ topic: "t", source: "x", payload: 1 }))));
    bus.declare("t", "agent");
    await act(() => bus.start());
    expect(await store.count()).toMatchObject({ pending: 50, done: 0 });
    expect(await bus.consumers()).toMatchObject([{ name: "agent", pattern: "t", leases: [], waiting: 50 }]);
    const { ids, handler } = recorder();
    await act(async () => bus.subscribe("t", handler, { subscriberId: "agent" }));
    expect(ids).toHaveLength(50);
  });

  test("[J98] a suspended subscriber keeps its events, also those in hand and those to be tried again", async () => {
    const { bus, act, host, row } = setup();
    const calls: string[] = [];
    const fails = ({ id }: { id: number }, { attempt }: { attempt: number }) => {
      calls.push(`${id}/${attempt}`);
      throw new Error("boom");
    };
    bus.subscribe("tick", fails, { subscriberId: "s", retry: RETRY });
    await act(() => bus.start());
    const first = await act(() => bus.publish("tick", "clock", 1));
    expect(bus.suspend("tick", "s")).toBe(true);
    const second = await act(() => bus.publish("tick", "clock", 2));
    await host.advance(60_000);
    expect(calls).toEqual([`${first}/1`]);
    for (const id of [first, second]) expect((await row(id)).status).toBe("pending");
    expect((await row(first)).error).toBe("s: boom\nwaits for s on tick, which is not running");
    const heal = ({ id }: { id: number }, { attempt }: { attempt: number }) => void calls.push(`${id}/${attempt}`);
    await act(async () => bus.subscribe("tick", heal, { subscriberId: "s", retry: RETRY }));
    await host.advance(60_000);
    expect(calls).toEqual([`${first}/1`, `${first}/2`, `${second}/1`]);
    for (const id of [first, second]) expect((await row(id)).status).toBe("done");
  });

  test("[J98] an event that fails at one consumer is not failed before the others had it", async () => {
    const { bus, act, row } = setup();
    let calls = 0;
    const fails = () => {
      calls++;
      throw new Error("boom");
    };
    bus.subscribe("tick", fails, { subscriberId: "a" });
    bus.declare("tick", "b");
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect(await row(id)).toMatchObject({ status: "pending", error: expect.stringContaining("a: boom") });
    await act(async () => bus.subscribe("tick", () => {}, { subscriberId: "b" }));
    expect(await row(id)).toMatchObject({ status: "failed", error: "a: boom" });
    expect(calls).toBe(1);
  });

  test("[J98] a transactional handler commits its share, and the event waits for the rest", async () => {
    const { bus, act, row, openSpace } = setup();
    const space = await openSpace();
    bus.subscribe("tick", (_event, tx) => tx.set(space.cell("count"), 1), { subscriberId: "counter", space });
    bus.declare("tick", "b");
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).deliveries).toMatchObject([
      { subscriber: "counter", status: "done" },
      { subscriber: "b", status: "waiting" },
    ]);
    await act(async () => bus.subscribe("tick", () => {}, { subscriberId: "b" }));
    expect((await row(id)).status).toBe("done");
  });

  test("[J99] a subscription that is not durable hears events while it is there, and no event waits for it", async () => {
    const { bus, act, row, another } = setup();
    const live = recorder();
    bus.subscribe("tick", live.handler, { subscriberId: "screen", durable: false });
    await act(() => bus.start());
    const first = await act(() => bus.publish("tick", "clock", 1));
    expect(live.ids).toEqual([first]);
    expect(await bus.consumers()).toEqual([]);
    await act(() => bus.stop());
    const other = another();
    await act(() => other.start());
    const second = await act(() => other.publish("tick", "clock", 2));
    expect(await row(second)).toMatchObject({ status: "done", outcome: "unheard", reason: "no subscriber" });
  });
});

describe("processes with different subscribers", () => {
  test("[J100] each consumer gets every event once, from and in any process", async () => {
    const { bus, another, act, host, row } = setup();
    const [a, b] = [recorder(), recorder()];
    bus.subscribe("tick", a.handler, { subscriberId: "a" });
    const other = another();
    other.subscribe("tick", b.handler, { subscriberId: "b" });
    await act(() => bus.start());
    await act(() => other.start());
    const ids: number[] = [];
    for (const one of [bus, other, another()]) ids.push(await act(() => one.publish("tick", "clock", 1)));
    await host.advance(1_000);
    expect(a.ids.toSorted()).toEqual(ids);
    expect(b.ids.toSorted()).toEqual(ids);
    for (const id of ids) expect((await row(id)).status).toBe("done");
  });

  test("[J100] a process that does not know a new consumer yet leaves its events to it", async () => {
    const { bus, another, act, host, row } = setup();
    const inside = deferred();
    bus.subscribe("tick", () => inside.promise, { subscriberId: "old" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const unheard = another();
    const { ids, handler } = recorder();
    unheard.subscribe("*", handler, { subscriberId: "new" });
    await act(() => unheard.start());
    await act(async () => inside.resolve());
    const second = await act(() => bus.publish("tock", "clock", 1));
    await host.advance(1_000);
    expect(ids).toEqual([id, second]);
    expect((await row(id)).status).toBe("done");
    expect((await row(second)).status).toBe("done");
  });

  test("[J100] a consumer that was declared during a transactional handling gets the event", async () => {
    const { bus, another, act, host, row, openSpace } = setup();
    const space = await openSpace();
    const inside = deferred();
    bus.subscribe("tick", () => inside.promise, { subscriberId: "old", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const other = another();
    const { ids, handler } = recorder();
    other.subscribe("tick", handler, { subscriberId: "new" });
    await act(() => other.start());
    await act(async () => inside.resolve());
    await host.advance(10_000);
    expect([ids, (await row(id)).status]).toEqual([[id], "done"]);
  });

  test("[J100] processes that run the same consumer share its events", async () => {
    const { bus, another, act, host } = setup();
    const [a, b] = [recorder(), recorder()];
    const other = another();
    bus.subscribe("tick", a.handler, { subscriberId: "s" });
    other.subscribe("tick", b.handler, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => other.start());
    for (let n = 0; n < 20; n++) await act(() => (n % 2 ? bus : other).publish("tick", "clock", n));
    await host.advance(10_000);
    expect([...a.ids, ...b.ids].toSorted((x, y) => x - y)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    expect(await bus.consumers()).toMatchObject([{ name: "s", leases: [expect.any(Number), expect.any(Number)] }]);
  });

  test("[J101] an event that kills the process of its consumer is failed, although another process puts it back each time", async () => {
    const all = setup();
    const { bus, another, act, host, row, disk } = all;
    bus.subscribe("tick", () => {}, { subscriberId: "quiet" });
    await act(() => bus.start());
    let killed = 0;
    const live = async () => {
      const process = simulatedProcess(host);
      const victim = another({ host: process, store: memoryStore({ host: process, disk }) });
      const die = () => {
        killed++;
        process.kill();
      };
      victim.subscribe("tick", die, { subscriberId: "victim" });
      await act(() => victim.start());
      await host.advance(3 * LEASE_MS);
      process.kill();
    };
    await live();
    const id = await act(() => bus.publish("tick", "clock", 1));
    for (let n = 0; n < 3 * EVENT_DEATHS_MAX; n++) await live();
    expect(await row(id)).toMatchObject({
      status: "failed",
      error: expect.stringContaining("its process died 5 times"),
    });
    expect(killed).toBe(EVENT_DEATHS_MAX);
  });
});

describe("consumers that are gone for good", () => {
  test("[J102] unsubscribing removes the consumer: the events that wait for it alone are done, with the reason", async () => {
    const { bus, act, row } = setup();
    bus.declare("tick", "gone");
    bus.subscribe("tick", () => {}, { subscriberId: "stays" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).status).toBe("pending");
    bus.unsubscribe("tick", "gone");
    await act(() => bus.idle());
    expect(await row(id)).toMatchObject({
      status: "done",
      outcome: "unheard",
      reason: "not handled by gone: the consumer was removed",
    });
    expect((await bus.consumers()).map(({ name }) => name)).toEqual(["stays"]);
  });

  test("[J102] a process that unsubscribes leaves the consumer to another that runs it", async () => {
    const { bus, another, act, host, row } = setup();
    const { ids, handler } = recorder();
    const other = another();
    for (const one of [bus, other]) one.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => other.start());
    bus.unsubscribe("tick", "s");
    await act(() => bus.idle());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(1_000);
    expect([ids, (await row(id)).status]).toEqual([[id], "done"]);
  });

  test("[J103] an operator removes a consumer that does not run, and not one that does", async () => {
    const { bus, another, act, row } = setup();
    const gone = another();
    gone.subscribe("a", () => {}, { subscriberId: "gone" });
    gone.subscribe("b.*", () => {}, { subscriberId: "gone" });
    await act(() => gone.start());
    expect(await act(() => bus.removeConsumers("gone", "a"))).toEqual([
      { name: "gone", pattern: "a", waiting: 0, result: "running" },
    ]);
    await act(() => gone.stop());
    await act(() => bus.start());
    const ids = [await act(() => bus.publish("a", "x", 1)), await act(() => bus.publish("b.c", "x", 1))];
    for (const id of ids) expect((await row(id)).status).toBe("pending");
    expect(await act(() => bus.removeConsumers("gone"))).toEqual([
      { name: "gone", pattern: "a", waiting: 1, result: "removed" },
      { name: "gone", pattern: "b.*", waiting: 1, result: "removed" },
    ]);
    for (const id of ids) expect((await row(id)).status).toBe("done");
    expect((await row(ids[1]!)).deliveries).toMatchObject([{ subscriber: "gone b.*", status: "removed" }]);
    expect(await act(() => bus.removeConsumers("gone"))).toEqual([]);
  });

  test("[J104] requeue brings back an event that was settled without a consumer", async () => {
    const { bus, act, row } = setup();
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).reason).toBe("no subscriber");
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "late" });
    expect(await act(() => bus.requeue(id))).toEqual([id]);
    expect([ids, (await row(id)).status]).toEqual([[id], "done"]);
    expect(await act(() => bus.requeue(id))).toEqual([]);
  });

  test("[J104] requeue for one consumer calls no other handler", async () => {
    const { bus, act, row } = setup();
    const [old, late] = [recorder(), recorder()];
    bus.subscribe("tick", old.handler, { subscriberId: "old" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.idle());
    bus.subscribe("tick", late.handler, { subscriberId: "late" });
    await act(() => bus.idle());
    expect(await act(() => bus.requeue([id, 99], { consumer: "late" }))).toEqual([id]);
    expect([old.ids, late.ids, (await row(id)).status]).toEqual([[id], [id], "done"]);
    await expect(act(() => bus.requeue([id], { consumer: "nobody" }))).rejects.toMatchObject({
      code: "BUS_MISUSE",
      message: expect.stringContaining("millrace consumers"),
    });
  });
});

describe("a store that does not take consumers", () => {
  test("[J98] a start fails with its reason, and a later declaration is tried again", async () => {
    const { store, act, host, another, observed } = setup();
    let refused = 2;
    const faulty = withFaults(store, {
      declareConsumers: (declaration) =>
        refused-- > 0 ? Promise.reject(new Error("not now")) : store.declareConsumers(declaration),
    });
    const bus = another({ store: faulty });
    bus.subscribe("tick", () => {}, { subscriberId: "s" });
    await expect(act(() => bus.start())).rejects.toThrow("not now");
    refused = 0;
    await act(() => bus.start());
    refused = 1;
    bus.subscribe("tock", () => {}, { subscriberId: "s" });
    await host.advance(1_000);
    expect(observed).toMatchObject([{ kind: "store-trouble", doing: "declaring consumers" }]);
    expect((await bus.consumers()).map(({ pattern }) => pattern)).toEqual(["tick", "tock"]);
  });

  test("[J42] a bad topic or subscriber is refused by declare as by subscribe", () => {
    const { bus } = setup();
    expect(() => bus.declare("no topic", "s")).toThrow();
    expect(() => bus.declare("tick", "a b")).toThrow(/subscriberId/);
    expect(() => bus.subscribe("tick", () => {}, { subscriberId: "s", durable: 1 as never })).toThrow(/durable/);
  });
});
