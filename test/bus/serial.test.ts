import { describe, expect, test } from "#test";
import { EventBus } from "../../src/bus/event-bus.ts";
import { EventRun } from "../../src/bus/event-run.ts";
import { SerialOrder } from "../../src/bus/serial-order.ts";
import { Subscription } from "../../src/bus/subscription.ts";
import { Subscriptions } from "../../src/bus/subscriptions.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { BLOCKERS_UNASKED_MAX, LEASE_MS, WATCH_PAUSE_MS } from "../../src/limits.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { deferred, setup, withFaults } from "./bus-setup.ts";

interface Keyed {
  readonly key: string;
  readonly n: number;
}
const serialBy = (event: { payload: unknown }) => (event.payload as Keyed).key;

/** A store that cannot be asked for rows. */
function withoutQueries(store: Store): Store {
  return new Proxy(store, {
    get(target, key) {
      if (key === "query") return () => Promise.reject(new Error("a fault: nothing is answered"));
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

describe("serial keys", () => {
  test("[J64] events of one key are handled one after the other, in the journal's order; other keys go on", async () => {
    const { bus, act, host } = setup();
    const log: string[] = [];
    bus.subscribe(
      "step",
      async (event) => {
        const { key, n } = event.payload as unknown as Keyed;
        log.push(`${key}${n}(`);
        for (let turns = (7 * n) % 5; turns >= 0; turns--) await host.yield();
        log.push(`${key}${n})`);
      },
      { subscriberId: "s", serialBy },
    );
    await act(() => bus.start());
    const events = Array.from({ length: 30 }, (_, n) => ({
      topic: "step",
      source: "x",
      payload: { key: "abc"[n % 3]!, n },
    }));
    await act(() => bus.publishMany(events));
    await host.advance(100);
    for (const key of "abc") {
      const ofKey = log.filter((entry) => entry.startsWith(key));
      const numbers = Array.from({ length: 10 }, (_, i) => 3 * i + "abc".indexOf(key));
      expect(ofKey).toEqual(numbers.flatMap((n) => [`${key}${n}(`, `${key}${n})`]));
    }
    expect(log.slice(0, 3).every((entry) => entry.endsWith("("))).toBe(true);
  });

  test("[J64] a run that could not ask the journal goes on when the events before it have arrived", async () => {
    const { act, another, host, disk } = setup();
    const killed = simulatedProcess(host);
    const other = another({ host: killed, store: memoryStore({ host: killed, disk }) });
    other.subscribe("step", () => new Promise(() => {}), { subscriberId: "s", serialBy });
    const bus = another({ store: withoutQueries(memoryStore({ host, disk })) });
    const handled: number[] = [];
    bus.subscribe("step", (event) => handled.push(event.id), { subscriberId: "s", serialBy });
    await act(() => other.start());
    await act(() => bus.start());
    await act(() => other.publish("step", "x", { key: "a", n: 1 }));
    await act(() => bus.publish("step", "x", { key: "b", n: 2 }));
    await host.advance(LEASE_MS / 2);
    expect(handled).toEqual([]);
    killed.kill();
    await host.advance(3 * LEASE_MS);
    expect(handled.toSorted()).toEqual([1, 2]);
  });

  test("[J64] an event waits for an earlier one of its key that another process holds", async () => {
    const { bus, act, another, host } = setup();
    const gate = deferred();
    const log: string[] = [];
    const subscribe = (to: EventBus, name: string) =>
      to.subscribe(
        "step",
        (event) => {
          log.push(`${name}${event.id}`);
          return event.id === 1 ? gate.promise : undefined;
        },
        { subscriberId: "s", serialBy },
      );
    const other = another();
    subscribe(bus, "one ");
    subscribe(other, "two ");
    await act(() => bus.start());
    await act(() => other.start());
    await act(() => bus.publish("step", "x", { key: "k", n: 1 }));
    await act(() => other.publish("step", "x", { key: "k", n: 2 }));
    await act(() => other.publish("step", "x", { key: "free", n: 3 }));
    expect(log).toEqual(["one 1", "two 3"]);
    await act(async () => gate.resolve());
    await host.advance(2 * WATCH_PAUSE_MS);
    expect(log).toEqual(["one 1", "two 3", "two 2"]);
    other.checkInvariants();
  });

  test("[J64] an event waits for an earlier one of its key that is due for another attempt", async () => {
    const { bus, act, host } = setup();
    const log: string[] = [];
    bus.subscribe(
      "step",
      (event, { attempt }) => {
        log.push(`${event.id}/${attempt}`);
        if (event.id === 1 && attempt < 3) throw new Error("not yet");
      },
      { subscriberId: "s", serialBy, retry: { attempts: 3, backoff: { startMs: 1_000 } } },
    );
    await act(() => bus.start());
    for (let n = 0; n < 3; n++) await act(() => bus.publish("step", "x", { key: "k", n }));
    expect(log).toEqual(["1/1"]);
    await host.advance(60_000);
    expect(log).toEqual(["1/1", "1/2", "1/3", "2/1", "3/1"]);
  });

  test("[J64] an event that has failed for good lets the next event of its key start", async () => {
    const { bus, act } = setup();
    const log: number[] = [];
    bus.subscribe(
      "step",
      (event) => {
        log.push(event.id);
        if (event.id === 1) throw new Error("never");
      },
      { subscriberId: "s", serialBy },
    );
    await act(() => bus.start());
    for (let n = 0; n < 2; n++) await act(() => bus.publish("step", "x", { key: "k", n }));
    expect(log).toEqual([1, 2]);
  });

  test("[J64] a requeued event waits for the running handler, and precedes waiting events, of every subscriber", async () => {
    const { bus, act, host, store } = setup();
    const log: string[] = [];
    let isBad = true;
    const gates = new Map<string, () => void>();
    for (const subscriberId of ["s", "t"]) {
      bus.subscribe(
        "step",
        async ({ id }) => {
          if (id === 1 && isBad) throw new Error("not yet");
          log.push(`${subscriberId}${id}(`);
          await new Promise<void>((resolve) => gates.set(`${subscriberId}${id}`, resolve));
          log.push(`${subscriberId}${id})`);
        },
        { subscriberId, serialBy },
      );
    }
    const letOut = (name: string) => act(async () => gates.get(name)?.());
    await act(() => bus.start());
    for (let n = 1; n <= 3; n++) await act(() => bus.publish("step", "x", { key: "k", n }));
    isBad = false;
    expect(await act(() => bus.requeue(1))).toEqual([1]);
    expect(log).toEqual(["s2("]);
    for (const name of ["s2", "s1", "t1", "t2", "s3", "t3"]) await letOut(name);
    expect(log.filter((entry) => entry.endsWith("("))).toEqual(["s2(", "s1(", "t1(", "t2(", "s3(", "t3("]);
    expect(log.every((entry, at) => at % 2 === 0 || entry === log[at - 1]!.replace("(", ")"))).toBe(true);
    await host.advance(100);
    expect((await store.count()).done).toBe(3);
  });

  test("[J64] the events of a process that died come before later events", async () => {
    const { bus, act, another, host } = setup();
    const log: number[] = [];
    bus.subscribe("step", () => new Promise(() => {}), { subscriberId: "s", serialBy });
    await act(() => bus.start());
    await act(() => bus.publish("step", "x", { key: "k", n: 1 }));
    await act(() => bus.stop({ graceMs: 10 }));
    const other = another();
    other.subscribe("step", (event) => void log.push(event.id), { subscriberId: "s", serialBy });
    await act(() => other.start());
    await act(() => other.publish("step", "x", { key: "k", n: 2 }));
    await host.advance(LEASE_MS / 2);
    expect(log).toEqual([]);
    await host.advance(2 * LEASE_MS);
    expect(log).toEqual([1, 2]);
  });

  test("[J64] a later subscription waits for the events that were unsettled at its start", async () => {
    const { bus, act, host } = setup();
    const log: number[] = [];
    const once = (_event: unknown, { attempt }: { attempt: number }) => {
      if (attempt === 1) throw new Error("not yet");
    };
    bus.subscribe("other", () => {}, { subscriberId: "s", serialBy: () => "k" });
    bus.subscribe("step", once, { subscriberId: "p", retry: { attempts: 2, backoff: { startMs: 10_000 } } });
    await act(() => bus.start());
    await act(() => bus.publish("other", "x", 1));
    await act(() => bus.publish("step", "x", { key: "k", n: 1 }));
    bus.subscribe("step", (event) => void log.push(event.id), { subscriberId: "t", serialBy });
    await act(() => bus.publish("step", "x", { key: "k", n: 2 }));
    await act(() => bus.publish("step", "x", { key: "free", n: 3 }));
    expect(log).toEqual([4]);
    await host.advance(60_000);
    expect(log).toEqual([4, 2, 3]);
  });

  test("[J64] a subscription that is made during a check waits for unsettled events too", async () => {
    const { act, another, host, store } = setup();
    const answer = deferred();
    const query: Store["query"] = (which) => answer.promise.then(() => store.query(which));
    const bus = another({ store: withFaults(store, { query }) });
    const log: number[] = [];
    const once = (_event: unknown, { attempt }: { attempt: number }) => {
      if (attempt === 1) throw new Error("not yet");
    };
    bus.subscribe("other", () => {}, { subscriberId: "s", serialBy: () => "k" });
    bus.subscribe("step", once, { subscriberId: "p", retry: { attempts: 2, backoff: { startMs: 10_000 } } });
    await act(() => bus.start());
    await act(() => bus.publish("other", "x", 1));
    await act(() => bus.publish("step", "x", { key: "k", n: 1 }));
    // An id that is not held here has to be asked for.
    await act(() => bus.publish("unheard", "x", 0));
    await act(() => bus.publish("other", "x", 2));
    bus.subscribe("step", (event) => void log.push(event.id), { subscriberId: "t", serialBy });
    await act(async () => answer.resolve());
    await act(() => bus.publish("step", "x", { key: "k", n: 2 }));
    await host.advance(60_000);
    expect(log).toEqual([2, 5]);
  });

  test("[J64] the first ordered subscription waits for the held events, and no longer", async () => {
    const { act, another, host, store } = setup();
    // No notice tells of other processes' writes, and the poll is far away.
    const bus = another({ store: withFaults(store, { watch: () => () => undefined }) });
    const gate = deferred();
    const log: string[] = [];
    bus.subscribe("step", () => gate.promise, { subscriberId: "p", concurrency: 1 });
    await act(() => bus.start());
    await act(() => bus.publish("step", "x", { key: "k", n: 1 }));
    bus.subscribe("step", (event) => void log.push(`t${event.id}`), { subscriberId: "t", serialBy });
    bus.unsubscribe("step", "p");
    await act(() => bus.publish("step", "x", { key: "k", n: 2 }));
    expect(log).toEqual([]);
    await act(async () => gate.resolve());
    await host.advance(10);
    expect(log).toEqual(["t2"]);
    bus.checkInvariants();
  });

  test("[J67] the memory for unsettled events of other processes is bounded", async () => {
    const { act, host, store } = setup();
    const subscriptions = new Subscriptions();
    const plain = { kind: "plain", handler: () => undefined } as const;
    const defaults = { timeoutMs: 1_000, concurrency: 10, board: undefined };
    subscriptions.add(new Subscription("step", plain, { subscriberId: "s", serialBy }, defaults));
    const order = new SerialOrder({ host, store, subscriptions, observe: () => undefined });
    const publisher = new EventBus({ host, store });
    const others = Array.from({ length: BLOCKERS_UNASKED_MAX }, (_, n) => {
      return { topic: "step", source: "x", payload: { key: `k${n}`, n } };
    });
    await act(() => publisher.publishMany(others));
    const id = await act(() => publisher.publish("step", "x", { key: "mine", n: 0 }));
    const [row] = await store.query({ id, limit: 1 });
    const { topic, source, message } = row!;
    const claim = { lease: 9, attempt: 1, deliveries: [] };
    const run = new EventRun({ id, topic, source, message: message! }, claim, {
      steps: subscriptions.stepsFor(topic),
      missing: [],
      version: 0,
    });
    order.arrive(run);
    await act(async () => expect(order.mayStart(run)).toBe(false));
    expect([order.mayStart(run), order.blockers]).toEqual([true, BLOCKERS_UNASKED_MAX]);
    const { lease } = await store.openLease(LEASE_MS);
    const claims = await store.claim({ lease, limit: BLOCKERS_UNASKED_MAX, kinds: ["event"] });
    await store.settle(
      claims.map((one) => ({ id: one.row.id, lease, attempt: one.attempt, outcome: { kind: "done" } })),
    );
    await act(async () => order.recheck());
    expect(order.blockers).toBe(0);
    order.checkInvariants();
  });

  test("[J65] a key that cannot be had fails that share only", async () => {
    const { bus, act, row } = setup();
    bus.subscribe("step", () => {}, {
      subscriberId: "s",
      serialBy: (event) => (event.payload as { key: { text: string } }).key.text,
    });
    bus.subscribe("step", () => {}, { subscriberId: "t", serialBy: () => 7 as never });
    bus.subscribe("step", () => {}, { subscriberId: "u" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("step", "x", {}));
    const { status, deliveries, error } = await row(id);
    expect(status).toBe("failed");
    expect(deliveries.map((delivery) => delivery.status)).toEqual(["failed", "failed", "done"]);
    expect(error).toContain("must give a string");
  });
});
