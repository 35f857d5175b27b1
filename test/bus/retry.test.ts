import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { HANDLER_TIMEOUT_MS, RETRY_BACKOFF_MAX_MS, WORK_WINDOW_MS } from "../../src/limits.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Store } from "../../src/store/store.ts";
import { deferred, setup, withFaults } from "./bus-setup.ts";

/** A bus on a store that takes no events and commits while `room.isFull`. Settlements still fit. */
function onFullStore() {
  const world = setup();
  const { store: inner, host } = world;
  const room = { isFull: false };
  const full = () => Promise.resolve(rejected("failed", "store-full", "no space left"));
  const faults: Partial<Store> = {
    append: (...given) => (room.isFull ? full() : inner.append(...given)),
    commit: (request) => (room.isFull ? full() : inner.commit(request)),
  };
  const store = withFaults(inner, faults);
  const openSpace = () => host.run(() => Space.open({ store, host, name: "home" }));
  return { ...world, room, bus: world.another({ store }), openSpace };
}

describe("retries, timeouts, requeueing", () => {
  test("[J60] a failed event is not tried again by itself, ever", async () => {
    const { bus, act, host, row } = setup();
    let calls = 0;
    bus.subscribe(
      "tick",
      () => {
        calls++;
        throw new Error("no");
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(3_600_000);
    expect(calls).toBe(1);
    expect((await row(id)).status).toBe("failed");
  });

  test("[J61] a subscription that asks for it is tried again, with growing waits drawn between half and whole", async () => {
    const { bus, act, host, row } = setup();
    const atMs: number[] = [];
    bus.subscribe(
      "tick",
      () => {
        atMs.push(host.monotonic());
        throw new Error(`try ${atMs.length}`);
      },
      { subscriberId: "s", retry: { attempts: 4, backoff: { startMs: 1_000, factor: 2, maxMs: 3_000 } } },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect(await row(id)).toMatchObject({ status: "pending", error: "s: try 1" });
    await host.advance(60_000);
    expect(atMs).toHaveLength(4);
    const waits = atMs.slice(1).map((at, i) => at - atMs[i]!);
    for (const [i, bound] of [1_000, 2_000, 3_000].entries()) {
      expect(waits[i]! >= bound / 2 && waits[i]! <= bound).toBe(true);
    }
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: try 4" });
    expect((await row(id)).deliveries).toMatchObject([{ subscriber: "s", status: "failed", attempts: 4 }]);
  });

  test("[J120] a retry that is due before the one that is waited for comes at its own time, not at a poll", async () => {
    const { bus, act, host } = setup();
    const tried: string[] = [];
    for (const [topic, startMs] of [
      ["slow", 600_000],
      ["fast", 100],
    ] as const) {
      const fail = () => {
        tried.push(topic);
        throw new Error("no");
      };
      bus.subscribe(topic, fail, { subscriberId: topic, retry: { attempts: 2, backoff: { startMs } } });
    }
    await act(() => bus.start());
    await act(() => bus.publish("slow", "clock", 1));
    await act(() => bus.publish("fast", "clock", 1));
    expect(tried).toEqual(["slow", "fast"]);
    await host.advance(100);
    expect(tried).toEqual(["slow", "fast", "fast"]);
  });

  test("[J61] `when` gets the value that a transactional handler threw", async () => {
    const { bus, act, host, row, openSpace } = setup();
    const asked: unknown[] = [];
    const bad = new RangeError("for now");
    const when = (thrown: unknown) => asked.push(thrown) < 3;
    const space = await openSpace();
    const fail = () => {
      throw bad;
    };
    bus.subscribe("tick", fail, { subscriberId: "s", space, retry: { attempts: 9, when } });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(3_600_000);
    expect(asked).toEqual([bad, bad, bad]);
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: for now" });
  });

  for (const kind of ["returns at once", "returns a promise", "is transactional"]) {
    test(`[J61] a policy whose when throws, of a handler that ${kind}, fails the delivery with both reasons`, async () => {
      const { bus, act, host, row, openSpace } = setup();
      const when = () => {
        throw new TypeError("no such property");
      };
      const options = { subscriberId: "s", retry: { attempts: 3, when } };
      const fail = () => {
        throw new Error("for now");
      };
      if (kind === "is transactional") bus.subscribe("tick", fail, { ...options, space: await openSpace() });
      else bus.subscribe("tick", kind === "returns at once" ? fail : async () => fail(), options);
      await act(() => bus.start());
      const id = await act(() => bus.publish("tick", "clock", 1));
      await host.advance(60_000);
      const error = "s: for now; retry.when threw: no such property";
      expect(await row(id)).toMatchObject({ status: "failed", error });
      expect(bus.busy).toBe(false);
    });
  }

  test("[J55] a retry runs only subscribers that have neither succeeded nor failed for good", async () => {
    const { bus, act, host, row } = setup();
    const calls: string[] = [];
    bus.subscribe("tick", () => void calls.push("a"), { subscriberId: "a" });
    bus.subscribe(
      "tick",
      (_event, { attempt }) => {
        calls.push(`b${attempt}`);
        if (attempt < 3) throw new Error("not yet");
      },
      { subscriberId: "b", retry: { attempts: 3 } },
    );
    bus.subscribe(
      "tick",
      () => {
        calls.push("c");
        throw new Error("never");
      },
      { subscriberId: "c" },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(60_000);
    expect(calls).toEqual(["a", "b1", "c", "b2", "b3"]);
    expect(await row(id)).toMatchObject({ status: "failed", error: "c: never" });
  });

  test("[J61] an attempt that is due survives the process that put it off", async () => {
    const { bus, act, host, another, row } = setup();
    const subscribe = (to: typeof bus, calls: number[]) =>
      to.subscribe(
        "tick",
        (_event, { attempt }) => {
          calls.push(attempt);
          if (attempt === 1) throw new Error("no");
        },
        { subscriberId: "s", retry: { attempts: 2, backoff: { startMs: 10_000, factor: 1 } } },
      );
    const first: number[] = [];
    subscribe(bus, first);
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.stop());
    const other = another();
    const second: number[] = [];
    subscribe(other, second);
    await act(() => other.start());
    expect([first, second]).toEqual([[1], []]);
    // Not by the poll: at the very moment.
    const waitMs = (await row(id)).nextAttemptAtMs! - host.now();
    await host.advance(waitMs - 1);
    expect(second).toEqual([]);
    await host.advance(1);
    expect(second).toEqual([2]);
    expect((await row(id)).status).toBe("done");
  });

  test("[J75] a failed event is requeued one by one, in bulk, or by query, and succeeds where it has not", async () => {
    const { bus, act, store } = setup();
    let broken = true;
    const calls: string[] = [];
    for (const topic of ["tick", "tock"] as const) {
      bus.subscribe(topic, (event) => void calls.push(`a${event.id}`), { subscriberId: "a" });
      bus.subscribe(
        topic,
        (event) => {
          calls.push(`b${event.id}`);
          if (broken) throw new Error("broken");
        },
        { subscriberId: "b" },
      );
    }
    await act(() => bus.start());
    for (const topic of ["tick", "tick", "tock", "tock"]) await act(() => bus.publish(topic, "clock", 1));
    expect((await bus.failures()).count).toBe(4);
    expect((await bus.failures({ limit: 2 })).rows.map((row) => row.id)).toEqual([4, 3]);
    broken = false;
    calls.length = 0;
    expect(await act(() => bus.requeue(1))).toEqual([1]);
    expect(await act(() => bus.requeue([1, 2, 77]))).toEqual([2]);
    expect(await act(() => bus.requeue({ topic: "tock" }))).toEqual([3, 4]);
    expect(calls).toEqual(["b1", "b2", "b3", "b4"]);
    expect(await store.count()).toMatchObject({ failed: 0, done: 4 });
  });

  test("[J75] an event that was given back after a failure does not count as requeued", async () => {
    const { bus, act, row } = setup();
    const calls: string[] = [];
    const first = deferred();
    const fails = ({ id }: { id: number }) => {
      calls.push(`a${id}`);
      throw new Error("no");
    };
    const waits = ({ id }: { id: number }) => {
      calls.push(`b${id}`);
      return id === 1 ? first.promise : undefined;
    };
    bus.subscribe("tick", fails, { subscriberId: "a" });
    bus.subscribe("tick", waits, { subscriberId: "b", concurrency: 1 });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(async () => bus.pause());
    expect((await row(id)).status).toBe("pending");
    await act(async () => bus.resume());
    await act(async () => first.resolve());
    expect(calls).toEqual(["a1", "b1", "a2", "b2"]);
    expect(await row(id)).toMatchObject({ status: "failed", error: "a: no" });
  });

  test("[J61] the wait before the next try is kept when the event is given back before its last handler", async () => {
    const { bus, act, host, row } = setup();
    const inside = deferred();
    const calls: string[] = [];
    const fails = ({ id }: { id: number }, { attempt }: { attempt: number }) => {
      calls.push(`a${id}/${attempt}`);
      if (attempt === 1) throw new Error("no");
    };
    const waits = ({ id }: { id: number }) => {
      calls.push(`b${id}`);
      return id === 1 ? inside.promise : undefined;
    };
    bus.subscribe("tick", fails, { subscriberId: "a", retry: { attempts: 2, backoff: { startMs: 60_000 } } });
    bus.subscribe("tick", waits, { subscriberId: "b", concurrency: 1 });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    const id = await act(() => bus.publish("tick", "clock", 2));
    await act(async () => bus.pause());
    const delivery = { subscriber: "a", status: "retry", error: "no", nextAttemptAtMs: expect.any(Number) };
    expect(await row(id)).toMatchObject({ status: "pending", deliveries: [delivery] });
    await act(async () => bus.resume());
    await act(async () => inside.resolve());
    await host.advance(29_000);
    expect(calls).toEqual(["a1/1", "b1", "a2/1", "b2"]);
    await host.advance(60_000);
    expect(calls.slice(4).toSorted()).toEqual(["a1/2", "a2/2"]);
    expect((await row(id)).status).toBe("done");
  });

  test("[J97] a retry of a consumer that is removed has failed with its event, and no other handler is called again", async () => {
    const { bus, act, host, another, row } = setup();
    const calls: string[] = [];
    const failing = (name: string) => () => {
      calls.push(name);
      throw new Error("no");
    };
    bus.subscribe("tick", failing("a"), { subscriberId: "a" });
    bus.subscribe("tick", failing("b"), { subscriberId: "b", retry: { attempts: 2 } });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.stop());
    const other = another();
    other.subscribe("tick", failing("a"), { subscriberId: "a" });
    await act(() => other.start());
    await host.advance(60_000);
    expect(calls).toEqual(["a", "b"]);
    expect(await row(id)).toMatchObject({ status: "pending", error: expect.stringContaining("waits for b on tick") });
    await act(() => other.removeConsumers("b"));
    expect(calls).toEqual(["a", "b"]);
    const { status, deliveries } = await row(id);
    expect(status).toBe("failed");
    expect(deliveries.map((one) => [one.subscriber, one.status])).toEqual([
      ["a", "failed"],
      ["b", "removed"],
    ]);
    await other.stop();
  });

  test("[J62] a handler that hangs fails by its timeout, its signal is aborted, and others go on", async () => {
    const { bus, act, host, row } = setup();
    let signal: AbortSignal | undefined;
    bus.subscribe(
      "hang",
      (_event, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
      { subscriberId: "s", timeoutMs: 100 },
    );
    bus.subscribe("hang", () => {}, { subscriberId: "next" });
    bus.subscribe("other", () => {}, { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("hang", "x", 1));
    const other = await act(() => bus.publish("other", "x", 1));
    expect((await row(other)).status).toBe("done");
    expect(signal?.aborted).toBe(false);
    await host.advance(100);
    expect(signal?.aborted).toBe(true);
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: the handler timed out after 100 ms" });
    expect((await row(id)).deliveries.map(({ status }) => status)).toEqual(["failed", "done"]);
  });

  test("[J214] an event whose handler could not emit on a full store is delivered again without a retry policy", async () => {
    const { bus, act, host, row, room } = onFullStore();
    const atMs: number[] = [];
    const heard: unknown[] = [];
    const onFailed = () => void heard.push("failed");
    bus.subscribe("out", ({ payload }) => void heard.push(payload), { subscriberId: "after" });
    const handle = async (_: unknown, context: { emit(topic: string, payload: number): Promise<number> }) => {
      atMs.push(host.monotonic());
      await context.emit("out", atMs.length);
    };
    bus.subscribe("in", handle, { subscriberId: "s", onFailed });
    await act(() => bus.start());
    const id = await act(async () => {
      const published = bus.publish("in", "x", 1);
      void published.then(() => (room.isFull = true));
      return published;
    });
    expect(await row(id)).toMatchObject({ status: "pending", error: expect.stringMatching(/^s: .*no space left/) });
    await host.advance(20_000);
    const waits = atMs.slice(1).map((at, n) => at - (atMs[n] ?? 0));
    expect(waits.length).toBeGreaterThanOrEqual(4);
    for (const [n, wait] of waits.slice(0, 3).entries())
      expect(wait >= 500 * 2 ** n && wait <= 1_000 * 2 ** n).toBe(true);
    room.isFull = false;
    await host.advance(RETRY_BACKOFF_MAX_MS);
    expect([(await row(id)).status, heard]).toEqual(["done", [atMs.length]]);
  });

  test("[J214] an event whose transaction found no room for 30 s is delivered again, and has its effect once", async () => {
    const { bus, act, host, row, room, openSpace } = onFullStore();
    const space = await openSpace();
    const count = space.cell<number>("count", 0);
    const handle = () => {
      room.isFull = host.monotonic() < 2 * WORK_WINDOW_MS;
      count.set(count.get() + 1);
    };
    bus.subscribe("in", handle, { subscriberId: "s", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("in", "x", 1));
    await host.advance(WORK_WINDOW_MS + 400);
    expect(await row(id)).toMatchObject({ status: "pending", error: expect.stringMatching(/^s: .*no space left/) });
    await host.advance(2 * WORK_WINDOW_MS);
    expect([(await row(id)).status, count.get()]).toEqual(["done", 1]);
  });

  test("[J214] an event whose handler emits an invalid event fails for good", async () => {
    const { bus, act, row } = setup();
    bus.subscribe("in", (_, context) => context.emit("out", Number.NaN), { subscriberId: "s" });
    await act(() => bus.start());
    expect(await row(await act(() => bus.publish("in", "x", 1)))).toMatchObject({ status: "failed" });
  });

  test("[J62] the timeout is five minutes unless given", async () => {
    const { bus, act, host, row } = setup();
    bus.subscribe("hang", () => new Promise(() => {}), { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("hang", "x", 1));
    await host.advance(HANDLER_TIMEOUT_MS - 1);
    expect((await row(id)).status).toBe("processing");
    await host.advance(1);
    expect((await row(id)).status).toBe("failed");
  });

  test("[J63] a handler has no effect after its timeout", async () => {
    const { bus, act, host, row } = setup();
    const gate = deferred();
    bus.subscribe("hang", () => gate.promise, { subscriberId: "s", timeoutMs: 100 });
    await act(() => bus.start());
    const id = await act(() => bus.publish("hang", "x", 1));
    await host.advance(100);
    await act(async () => gate.resolve());
    expect((await row(id)).status).toBe("failed");
  });
});
