import { describe, expect, test } from "#test";
import type { TransactionalHandler } from "../../src/bus/handler.ts";
import { Space } from "../../src/cells/space.ts";
import { WORK_WINDOW_MS } from "../../src/limits.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { receiptOf as receiptNamed } from "../../src/store/receipt-name.ts";
import { deferred, type Setup, setup, withFaults } from "./bus-setup.ts";

const receiptOf = (id: string, subscriber: string) => receiptNamed({ kind: "event", id, subscriber });

const COUNTER = { scope: SHARED_SCOPE, id: "counter" };
const counterOf = (space: Space) => space.cell("counter", 0);
const count = (space: Space) => counterOf(space).update((n) => n + 1);

async function stored({ store }: Setup, ref: { scope: string; id: string }): Promise<unknown> {
  return (await store.load("home", [ref])).documents[0]?.value;
}

describe("labels", () => {
  async function labelled() {
    const all = setup();
    const { bus, host } = all;
    const space = await all.openSpace();
    const replica = space.replica(space.name);
    const transaction = replica.transaction();
    for (const id of ["secret", "hidden"]) {
      const ref = { scope: SHARED_SCOPE, id };
      transaction.write(ref, [], 1);
      transaction.labels.push({ ...ref, path: [], labels: ["s"] });
    }
    await host.run(() => transaction.commit().outcome);
    const on = (topic: string, handler: TransactionalHandler) =>
      bus.subscribe(topic, handler, { subscriberId: topic, space });
    return { ...all, replica, on, cell: (id: string) => space.cell(id) };
  }

  test("[F11] a handler writes only where its reads may be known; its receipt and its events carry their label", async () => {
    const { bus, act, row, replica, on, cell } = await labelled();
    on("copy", (_event, tx) => tx.set(cell("open"), tx.get(cell("secret"))));
    on("keep", (_event, tx) => {
      tx.emit("kept", 1);
      tx.set(cell("hidden"), tx.get(cell("secret")));
    });
    await act(() => bus.start());
    const [copied, kept] = [await act(() => bus.publish("copy", "t", 1)), await act(() => bus.publish("keep", "t", 1))];
    expect(await row(copied)).toMatchObject({
      status: "failed",
      error: expect.stringContaining("must not write to open: "),
    });
    const { status, message } = await row(kept);
    expect(status).toBe("done");
    expect((await row(kept + 1)).message?.metadata.label).toEqual(["s"]);
    await act(() => replica.load([receiptOf(message!.metadata.id, "keep")]));
    expect(replica.place(receiptOf(message!.metadata.id, "keep")).labels?.places).toEqual([{ path: [], label: ["s"] }]);
  });

  test("[F11] [F23] a handler of a labelled event begins with its label, and so do its events", async () => {
    const { bus, act, row, on, cell } = await labelled();
    on("first", (_event, tx) => {
      tx.get(cell("secret"));
      tx.emit("second", 1);
    });
    on("second", (_event, tx) => tx.emit("third", 1));
    on("third", (_event, tx) => tx.set(cell("open"), 1));
    await act(() => bus.start());
    const id = await act(() => bus.publish("first", "t", 1));
    const rows = [await row(id), await row(id + 1), await row(id + 2)];
    expect(rows.map(({ topic, status, message }) => [topic, status, message?.metadata.label])).toEqual([
      ["first", "done", undefined],
      ["second", "done", ["s"]],
      ["third", "failed", ["s"]],
    ]);
  });
});

describe("transactional handlers", () => {
  test("[J56] writes, emits, receipt and status are there together, in one commit for the last handler", async () => {
    const all = setup();
    const { bus, act, row, host, disk, another } = all;
    void bus;
    const inner = memoryStore({ host, disk });
    const asked = { commit: 0, settle: 0 };
    const store = withFaults(inner, {
      commit: (request) => {
        asked.commit++;
        return inner.commit(request);
      },
      settle: (settlements) => {
        asked.settle += settlements.filter(({ id }) => id === 1).length;
        return inner.settle(settlements);
      },
    });
    const own = another({ store });
    const space = await host.run(() => Space.open({ store, host, name: "home" }));
    own.subscribe(
      "tick",
      (event, tx) => {
        tx.set(space.cell("counter"), { n: event.payload });
        tx.emit("counted", { n: event.payload });
        return { counted: true };
      },
      { subscriberId: "counter", space },
    );
    await act(() => own.start());
    const id = await act(() => own.publish("tick", "clock", 7, { correlation: "c" }));
    expect(await stored(all, COUNTER)).toEqual({ n: 7 });
    const { message, status, deliveries } = await row(id);
    expect({ status, deliveries }).toEqual({ status: "done", deliveries: [] });
    expect(await stored(all, receiptOf(message!.metadata.id, "counter"))).toEqual({ counted: true });
    const emitted = await row(2);
    expect(emitted).toMatchObject({ topic: "counted", source: "counter", status: "done" });
    expect(emitted.message?.metadata).toMatchObject({ correlation: "c", causation: message?.metadata.id });
    expect(asked).toEqual({ commit: 1, settle: 0 });
  });

  test("[J56] a handler that throws leaves no effect", async () => {
    const all = setup();
    const { bus, act, row, store } = all;
    const space = await all.openSpace();
    bus.subscribe(
      "tick",
      (_event, tx) => {
        tx.set(counterOf(space), 1);
        tx.emit("counted", 1);
        throw new Error("no");
      },
      { subscriberId: "counter", space },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 7));
    expect(await row(id)).toMatchObject({ status: "failed", error: "counter: no" });
    expect(await stored(all, COUNTER)).toBeUndefined();
    expect(await store.count()).toMatchObject({ done: 0, failed: 1 });
    expect(space.replica("home").pendingCommits).toBe(0);
  });

  /** Handles `take` while the stock lasts. */
  async function shop(all: Setup, left: number) {
    const space = await all.openSpace();
    await all.act(() => space.transact(() => counterOf(space).set(left)));
    const take: TransactionalHandler = (_event, tx) => {
      const now = tx.get(counterOf(space));
      if (now === 0) throw new Error("sold out");
      tx.set(counterOf(space), now - 1);
    };
    return { space, take };
  }

  test("[J57] a redelivery whose handler throws because its work is done is done", async () => {
    const all = setup();
    const { bus, act, row } = all;
    const { space, take } = await shop(all, 1);
    const id = await act(() => bus.publish("take", "shop", null));
    const earlier = space.replica("home").transaction();
    earlier.write(receiptOf((await row(id)).message!.metadata.id, "taker"), [], {});
    earlier.write(COUNTER, [], 0);
    await act(() => earlier.commit().outcome);
    bus.subscribe("take", take, { subscriberId: "taker", space });
    await act(() => bus.start());
    expect(await row(id)).toMatchObject({ status: "done" });
    const next = await act(() => bus.publish("take", "shop", null));
    expect(await row(next)).toMatchObject({ status: "failed", error: "taker: sold out" });
  });

  test("[J57] a redelivery whose handler takes too long after its work is done is done", async () => {
    const all = setup();
    const { bus, act, row, host } = all;
    const space = await all.openSpace();
    const id = await act(() => bus.publish("take", "shop", null));
    const earlier = space.replica("home").transaction();
    earlier.write(receiptOf((await row(id)).message!.metadata.id, "taker"), [], {});
    await act(() => earlier.commit().outcome);
    const never = deferred();
    bus.subscribe("take", () => never.promise, { subscriberId: "taker", space, timeout: 50 });
    await act(() => bus.start());
    await host.advance(1_000);
    expect(await row(id)).toMatchObject({ status: "done" });
    const next = await act(() => bus.publish("take", "shop", null));
    await host.advance(1_000);
    expect(await row(next)).toMatchObject({ status: "failed", error: expect.stringContaining("timed out") });
  });

  test("[J58] a handler that throws after it read a commit that is rolled back runs again", async () => {
    const all = setup();
    const { bus, act, row, host } = all;
    const { space, take } = await shop(all, 1);
    // Another process fills up, and this one does not know: the first handling reads an old value.
    const other = await all.replica();
    await host.run(() => other.load([COUNTER]));
    const filled = other.transaction();
    filled.write(COUNTER, [], 100);
    await host.run(() => filled.commit().outcome);
    bus.subscribe("take", take, { subscriberId: "taker", space });
    await act(() => bus.start());
    const ids = await act(() => bus.publishMany([1, 2].map((payload) => ({ topic: "take", source: "shop", payload }))));
    await host.advance(10_000);
    for (const id of ids) expect(await row(id)).toMatchObject({ status: "done" });
    expect(await stored(all, COUNTER)).toBe(98);
  });

  test("[J58] [S101] a handler that throws on an event older than all receipts has failed with the thrown value", async () => {
    const all = setup();
    const { bus, act, row, host, store } = all;
    const { space, take } = await shop(all, 0);
    const id = await act(() => bus.publish("take", "shop", null));
    await host.advance(86_400_000);
    await act(() => store.forgetReceipts({ madeBeforeMs: host.now(), limit: 100 }));
    bus.subscribe("take", take, { subscriberId: "taker", space });
    await act(() => bus.start());
    expect(await row(id)).toMatchObject({ status: "failed", error: "taker: sold out" });
  });

  test("[J57] a redelivery that finds the receipt is done, and its handler's work is not repeated", async () => {
    const all = setup();
    const { bus, act, store, row } = all;
    const space = await all.openSpace();
    // Handled by a process that died before the others of the event were: its share is known by the receipt alone.
    const id = await act(() => bus.publish("tick", "clock", 7));
    const { message } = await row(id);
    const receipt = receiptOf(message!.metadata.id, "counter");
    const other = await all.replica();
    const earlier = other.transaction();
    earlier.write(receipt, [], {});
    earlier.write(COUNTER, [], { n: 1 });
    await act(() => earlier.commit().outcome);
    bus.subscribe(
      "tick",
      (_event, tx) => {
        const { n } = tx.get(space.cell("counter", { n: 0 }));
        tx.set(space.cell("counter"), { n: n + 1 });
        tx.emit("counted", n);
      },
      { subscriberId: "counter", space },
    );
    await act(() => bus.start());
    expect((await row(id)).status).toBe("done");
    expect(await stored(all, COUNTER)).toEqual({ n: 1 });
    expect(space.cell("counter").get()).toEqual({ n: 1 });
    expect((await store.count()).done).toBe(1);
  });

  test("[J57] receipts of different messages and subscribers never meet", () => {
    const names = [receiptOf("a", "b:c"), receiptOf("a:b", "c"), receiptOf("a", "b"), receiptOf("1:a", "b")];
    expect(new Set(names.map(({ id }) => id)).size).toBe(names.length);
  });

  test("[J58] a handler whose reads moved is run again until its commit stands", async () => {
    const all = setup();
    const { bus, act, host, another, store } = all;
    const spaces = [await all.openSpace(), await all.openSpace()];
    const buses = [bus, another()];
    let runs = 0;
    for (const [i, one] of buses.entries()) {
      one.subscribe(
        "tick",
        async (_event, tx) => {
          runs++;
          const n = tx.get(counterOf(spaces[i]!));
          await host.yield();
          tx.set(counterOf(spaces[i]!), n + 1);
        },
        { subscriberId: "counter", space: spaces[i]! },
      );
      await act(() => one.start());
    }
    for (let i = 0; i < 20; i++) await act(() => buses[i % 2]!.publish("tick", "clock", i));
    const many = Array.from({ length: 20 }, (_, payload) => ({ topic: "tick", source: "clock", payload }));
    const publishing = buses.map((one) => one.publishMany(many));
    await act(() => Promise.all(publishing));
    await host.advance(WORK_WINDOW_MS);
    expect(await stored(all, COUNTER)).toBe(60);
    expect(runs > 60).toBe(true);
    expect((await store.count()).done).toBe(60);
  });

  test("[J58] a document that is not in memory is loaded first: no handler decides without it", async () => {
    const all = setup();
    const { bus, act, host, store } = all;
    const writer = await all.replica();
    const tx = writer.transaction();
    tx.write(COUNTER, [], { n: 41 });
    await act(() => tx.commit().outcome);
    const space = await host.run(() => Space.open({ store, host, name: "home" }));
    bus.subscribe(
      "tick",
      (_event, tx) => {
        // Without the document this throws; while it is being loaded the throw does not count.
        tx.update(space.cell<{ n: number }>("counter").key("n"), (n) => (n as number) + 1);
      },
      { subscriberId: "counter", space },
    );
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    expect(await stored(all, COUNTER)).toEqual({ n: 42 });
    expect((await store.count()).failed).toBe(0);
  });

  test("[J58] reads that never hold still fail the delivery after the window, with the reason", async () => {
    const all = setup();
    const { host, disk, another, act, row } = all;
    const inner = memoryStore({ host, disk });
    const stale = { kind: "rejected", class: "stale", reason: "read-moved", message: "it moved" } as const;
    const store = withFaults(inner, { commit: async () => stale });
    const bus = another({ store });
    const space = await host.run(() => Space.open({ store, host, name: "home" }));
    let runs = 0;
    bus.subscribe("tick", () => void runs++, { subscriberId: "s", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).status).toBe("processing");
    await host.advance(WORK_WINDOW_MS + 1_000);
    expect((await row(id)).status).toBe("failed");
    expect((await row(id)).error).toContain("it moved");
    expect(runs > 50).toBe(true);
  });

  test("[J58] a handling that rested on a rolled-back commit runs again, for any reason of the roll-back", async () => {
    const all = setup();
    const { bus, act, host, store, row } = all;
    const space = await all.openSpace();
    await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.publish("tick", "clock", 2));
    const { message } = await row(1);
    const other = await all.replica();
    const earlier = other.transaction();
    earlier.write(receiptOf(message!.metadata.id, "counter"), [], {});
    await act(() => earlier.commit().outcome);
    bus.subscribe("tick", () => count(space), {
      subscriberId: "counter",
      space,
    });
    await act(() => bus.start());
    await host.advance(1_000);
    expect(await store.count()).toMatchObject({ done: 2, failed: 0 });
    expect(await stored(all, COUNTER)).toBe(1);
  });

  test("[J57] a commit whose answer got lost is settled by its receipt, without waiting for the lease", async () => {
    for (const fate of ["made", "not made"] as const) {
      const all = setup();
      const { host, disk, another, act } = all;
      const inner = memoryStore({ host, disk });
      let lost = 0;
      const store = withFaults(inner, {
        commit: async (request) => {
          if (lost++ > 0) return inner.commit(request);
          if (fate === "made") await inner.commit(request);
          return { kind: "rejected", class: "unknown", reason: "no-answer", message: "no answer" };
        },
      });
      const bus = another({ store });
      const space = await host.run(() => Space.open({ store, host, name: "home" }));
      bus.subscribe("tick", () => count(space), {
        subscriberId: "counter",
        space,
      });
      await act(() => bus.start());
      await act(() => bus.publish("tick", "clock", 1));
      await host.advance(1_000);
      expect(await inner.count()).toMatchObject({ done: 1, processing: 0 });
      expect(await stored(all, COUNTER)).toBe(1);
    }
  });

  test("[J59] several transactional handlers of one event each have their share; a retry runs the missing one only", async () => {
    const all = setup();
    const { bus, act, host, row } = all;
    const space = await all.openSpace();
    const calls: string[] = [];
    const part = (name: string) => ({ scope: SHARED_SCOPE, id: name });
    for (const name of ["a", "b", "c"]) {
      bus.subscribe(
        "tick",
        (_event, tx) => {
          calls.push(name);
          tx.update(space.cell<number>(name), (n = 0) => n + 1);
          if (name === "b" && tx.attempt === 1) throw new Error("not yet");
        },
        { subscriberId: name, space, retry: { attempts: 2 } },
      );
    }
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).deliveries.map(({ subscriber, status }) => subscriber + status)).toEqual([
      "adone",
      "bretry",
      "cdone",
    ]);
    await host.advance(5_000);
    expect((await row(id)).status).toBe("done");
    for (const name of ["a", "b", "c"]) expect(await stored(all, part(name))).toBe(1);
    expect(calls.filter((name) => name === "a").length <= 2).toBe(true);
  });

  test("[J59] an event of a transaction is delivered if and only if it commits", async () => {
    const all = setup();
    const { bus, act } = all;
    const space = await all.openSpace();
    const seen: unknown[] = [];
    bus.subscribe("order", (event, tx) => void tx.emit("shipped", event.payload), {
      subscriberId: "s",
      space,
    });
    bus.subscribe("shipped", (event) => void seen.push(event.payload), { subscriberId: "t" });
    await act(() => bus.start());
    for (let i = 0; i < 5; i++) await act(() => bus.publish("order", "shop", i));
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  test("[J63] a transactional handler that timed out can no longer write", async () => {
    const all = setup();
    const { bus, act, host, row } = all;
    const space = await all.openSpace();
    const gate = deferred();
    let late: unknown;
    bus.subscribe(
      "tick",
      async (_event, tx) => {
        await gate.promise;
        try {
          tx.set(counterOf(space), 1);
        } catch (error) {
          late = error;
        }
      },
      { subscriberId: "s", space, timeoutMs: 50 },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(50);
    expect((await row(id)).status).toBe("failed");
    await act(async () => gate.resolve());
    expect(late).toMatchObject({ code: "WORK_OVER" });
    expect(await stored(all, COUNTER)).toBeUndefined();
  });

  test("[J56] a receipt must be JSON: a handler that returns another value fails without a write", async () => {
    const all = setup();
    const { bus, act, row } = all;
    const space = await all.openSpace();
    bus.subscribe(
      "tick",
      (_event, tx) => {
        tx.set(counterOf(space), 1);
        return new Map();
      },
      { subscriberId: "s", space },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).error).toContain("cannot be its receipt");
    expect(await stored(all, COUNTER)).toBeUndefined();
  });
});
