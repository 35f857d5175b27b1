import { describe, expect, test } from "#test";
import type { TraceNode } from "../../src/bus/audit.ts";
import type { EventsGone } from "../../src/bus/bus-error.ts";
import { Concluded } from "../../src/bus/concluded.ts";
import { JOURNAL_PAGE_ROWS, RETENTION_INTERVAL_MS, RETENTION_STEP_ROWS } from "../../src/limits.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { cursorAt } from "../store/cursor-at.ts";
import { deferred, setup, withFaults } from "./bus-setup.ts";

async function idsOf(rows: AsyncIterable<JournalRow>): Promise<number[]> {
  const ids: number[] = [];
  for await (const row of rows) ids.push(row.id);
  return ids;
}

describe("looking at the journal", () => {
  test("[J77] the causal tree of a conversation comes in one call", async () => {
    const { bus, act } = setup();
    bus.subscribe("email.received", (_event, context) => context.emit("agent.invoked", {}), { subscriberId: "agent" });
    bus.subscribe(
      "agent.invoked",
      async (_event, context) => {
        await context.emit("user.notify", 1);
        await context.emit("user.notify", 2);
      },
      { subscriberId: "notifier" },
    );
    await act(() => bus.start());
    await act(() => bus.publish("email.received", "mail", {}, { correlation: "c-1" }));
    await act(() => bus.publish("email.received", "mail", {}, { correlation: "c-2" }));
    const { roots, size } = await act(() => bus.trace("c-1"));
    const shape = ({ row, children }: TraceNode): unknown => [row.topic, children.map(shape)];
    expect(size).toBe(4);
    expect(roots.map(shape)).toEqual([
      [
        "email.received",
        [
          [
            "agent.invoked",
            [
              ["user.notify", []],
              ["user.notify", []],
            ],
          ],
        ],
      ],
    ]);
    expect(await act(() => bus.trace("nobody"))).toEqual({ correlation: "nobody", size: 0, roots: [] });
  });

  test("[J77] an event whose cause is gone is a root", async () => {
    const { bus, act } = setup();
    await act(() => bus.publish("tick", "x", 1, { correlation: "c", causation: "gone" }));
    const { roots } = await act(() => bus.trace("c"));
    expect(roots.map(({ row }) => row.id)).toEqual([1]);
  });

  test("[J77] a cause may come after its effect; of causes in a circle the first in the journal is the root", async () => {
    const { bus, act } = setup();
    const causes = { effect: "command", command: undefined, itself: "itself", c: "b", a: "c", b: "a", under: "a" };
    for (const [id, causation] of Object.entries(causes)) {
      const metadata = { id, timestamp: 0, correlation: "c", ...(causation === undefined ? {} : { causation }) };
      await act(() => bus.publishMessage({ kind: "event", type: "Some.Thing", data: null, metadata }, "x"));
    }
    const shape = ({ row, children }: TraceNode): unknown => {
      const id = row.message?.metadata.id;
      return children.length === 0 ? id : [id, ...children.map(shape)];
    };
    const { roots, size } = await act(() => bus.trace("c"));
    expect(size).toBe(7);
    expect(roots.map(shape)).toEqual([["command", "effect"], "itself", ["c", ["a", "b", "under"]]]);
  });

  test("[J95] between two pages of the journal, and two claims of a backlog, others get in", async () => {
    const { host, disk, act, another } = setup();
    const inner = memoryStore({ host, disk });
    // Pages and claims that were asked for in one step of the host: other tasks run between two steps.
    let inStep = 0;
    let most = 0;
    const counted = <Method extends (...values: never[]) => unknown>(method: Method) =>
      ((...values) => {
        most = Math.max(most, ++inStep);
        return method.apply(inner, values);
      }) as Method;
    const store = withFaults(inner, {
      query: counted(inner.query),
      follow: counted(inner.follow),
      claim: counted(inner.claim),
    });
    const bus = another({ store });
    const publication = { topic: "tick", source: "x", payload: 0, correlation: "c" };
    await act(() => bus.publishMany(Array.from({ length: 5 * JOURNAL_PAGE_ROWS }, () => publication)));
    const mostDuring = async (work: Promise<unknown>): Promise<number> => {
      let isOver = false;
      most = 0;
      void work.finally(() => {
        isOver = true;
      });
      while (!isOver) {
        inStep = 0;
        await host.step();
      }
      return most;
    };
    expect(await mostDuring(idsOf(bus.tail({ topic: "no.such.*" })))).toBe(1);
    expect(await mostDuring(bus.trace("c"))).toBe(1);
    const fail = () => {
      throw new Error("no");
    };
    bus.subscribe("tick", fail, { subscriberId: "s" });
    expect(await mostDuring(bus.start().then(() => bus.idle()))).toBeLessThanOrEqual(2);
    expect((await inner.count()).failed).toBe(5 * JOURNAL_PAGE_ROWS);
    bus.pause();
    expect(await mostDuring(bus.requeue({ topic: "tick" }))).toBe(1);
    expect((await inner.count()).pending).toBe(5 * JOURNAL_PAGE_ROWS);
  });

  test("[J78] events are found by topic, status, time and correlation", async () => {
    const { bus, act, host } = setup();
    await act(() => bus.publish("tick", "x", 1, { correlation: "c" }));
    await host.advance(1_000);
    await act(() => bus.publish("tock", "x", 2));
    const found = async (query: object) => (await bus.query({ limit: 9, ...query })).map((row) => row.id);
    expect(await found({ topic: "tock" })).toEqual([2]);
    expect(await found({ correlation: "c" })).toEqual([1]);
    expect(await found({ createdFromMs: host.now() })).toEqual([2]);
    expect(await found({ status: "pending", order: "descending" })).toEqual([2, 1]);
  });

  test("[J76] a tail gives the present events, from a position, of a topic or pattern, over many pages", async () => {
    const { bus, act, store } = setup();
    const topics = ["email.received", "email.sent", "tick"];
    const count = 2 * JOURNAL_PAGE_ROWS + 7;
    const events = Array.from({ length: count }, (_, i) => ({ topic: topics[i % 3]!, source: "x", payload: i }));
    await act(() => bus.publishMany(events));
    expect(await act(() => idsOf(bus.tail()))).toEqual(events.map((_, i) => i + 1));
    expect(await act(() => idsOf(bus.tail({ from: cursorAt(store, count - 2) })))).toEqual([count - 1, count]);
    expect(await act(() => idsOf(bus.tail({ from: cursorAt(store, 500), topic: "tick" })))).toEqual([
      501, 504, 507, 510, 513, 516, 519,
    ]);
    expect((await act(() => idsOf(bus.tail({ topic: "email.*" })))).slice(0, 4)).toEqual([1, 2, 4, 5]);
  });

  test("[J76] a tail that follows gets later events of this and other processes, until it is aborted", async () => {
    const { bus, act, another, host } = setup();
    const ids: number[] = [];
    const end = new AbortController();
    const following = (async () => {
      for await (const row of bus.tail({ follow: true, signal: end.signal })) ids.push(row.id);
    })();
    await act(() => bus.publish("tick", "x", 1));
    expect(ids).toEqual([1]);
    await act(() => another().publish("tick", "x", 2));
    await act(() => bus.publish("tick", "x", 3));
    expect(ids).toEqual([1, 2, 3]);
    end.abort();
    await act(() => following);
    expect(host.pendingTimers).toBe(0);
  });

  test("[J74] [J121] retention removes done events by number and age; dead letters and unsettled events stay", async () => {
    const { bus, act, host, store } = setup({ retention: { maxSettled: 5, maxAgeMs: 3_600_000 } });
    bus.subscribe(
      "tick",
      (event) => {
        if (event.payload === "bad") throw new Error("bad");
        return event.payload === "slow" ? new Promise(() => {}) : undefined;
      },
      { subscriberId: "s", timeoutMs: 100 * 3_600_000 },
    );
    await act(() => bus.start());
    await act(() => bus.publish("tick", "x", "slow"));
    await act(() => bus.publish("tick", "x", "bad"));
    for (let i = 0; i < 10; i++) await act(() => bus.publish("tick", "x", i));
    await host.advance(RETENTION_INTERVAL_MS);
    expect(await store.count()).toEqual({ pending: 0, processing: 1, done: 5, failed: 1 });
    await host.advance(3_600_000 + RETENTION_INTERVAL_MS);
    expect(await store.count()).toEqual({ pending: 0, processing: 1, done: 0, failed: 1 });
  });

  test("[J125] a dead letter that is discarded is done, with the reason and the error, and is delivered no more", async () => {
    const { bus, act, row } = setup();
    let calls = 0;
    bus.subscribe(
      "tick",
      () => {
        calls++;
        throw new Error("boom");
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "x", 1));
    expect(await act(() => bus.discard([id, 99], "sent by hand"))).toEqual([id]);
    expect(await row(id)).toMatchObject({
      ...{ status: "done", error: "s: boom", outcome: "discarded", reason: "sent by hand" },
    });
    expect(await act(() => bus.requeue(id))).toEqual([]);
    expect(await act(() => bus.failures())).toMatchObject({ count: 0, rows: [] });
    expect(calls).toBe(1);
    await expect(bus.discard(id, " ")).rejects.toMatchObject({ code: "BUS_MISUSE" });
  });

  test("[J124] a plain handler that throws Concluded ends its event as done, with the outcome, and is not called again", async () => {
    const { bus, act, host, row } = setup();
    let calls = 0;
    const conclude = () => {
      calls++;
      throw new Concluded({ outcome: "cancelled", reason: "no longer wanted" });
    };
    bus.subscribe("tick", conclude, { subscriberId: "s", retry: { attempts: 5 } });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "x", 1));
    await host.advance(3_600_000);
    expect(await row(id)).toMatchObject({ status: "done", outcome: "cancelled", reason: "no longer wanted" });
    expect(calls).toBe(1);
  });

  test("[J126] failed events are found by their topic and by their type", async () => {
    const { bus, act } = setup();
    const fail = () => {
      throw new Error("no");
    };
    bus.subscribe("user.notify", fail, { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("user.notify", "x", 1));
    for (const topic of ["User.Notify", "user.notify"]) expect(await act(() => bus.requeue({ topic }))).toEqual([id]);
    expect(await act(() => bus.requeue({ topic: "User.notify" }))).toEqual([]);
  });

  test("[J76] a reader that resumes where events were removed hears which, and can resume after them", async () => {
    const { bus, act, store } = setup({ retention: { maxSettled: 2 } });
    bus.subscribe("slow", () => new Promise(() => {}), { subscriberId: "s", timeoutMs: 3_600_000 });
    await act(() => bus.start());
    const publish = async (topic: string, times: number) => {
      for (let i = 0; i < times; i++) await act(() => bus.publish(topic, "x", i));
    };
    await publish("tick", 3);
    await publish("slow", 1);
    await publish("tick", 6);
    await act(() => bus.sweep());
    // A reader of the present events gets them; 4 is not settled.
    for (const from of [{}, { from: "start" }]) expect(await act(() => idsOf(bus.tail(from)))).toEqual([4, 9, 10]);
    const gone = async (from: number, topic?: string) => {
      const given: number[] = [];
      const tail = bus.tail({ from: cursorAt(store, from), ...(topic ? { topic } : {}) });
      const thrown = await act(async () => {
        for await (const { id } of tail) given.push(id);
      }).catch((error: EventsGone) => `${error.code} ${error.cursor} ${error.message}`);
      return [...given, thrown];
    };
    const [four, eight] = [cursorAt(store, 4), cursorAt(store, 8)];
    const text = `events after ${four} are not in the journal any more; go on from ${eight}, without them`;
    expect(await gone(3)).toEqual([4, `BUS_EVENTS_GONE ${eight} ${text}`]);
    expect(await gone(5, "tick")).toEqual([expect.stringContaining(`BUS_EVENTS_GONE ${eight}`)]);
    expect(await gone(7)).toEqual([expect.stringContaining(`events after ${cursorAt(store, 7)} are not`)]);
    expect(await gone(8, "tick")).toEqual([9, 10, undefined]);
    expect(await gone(10)).toEqual([undefined]);
  });

  test("[J76] a reader that resumes where all later events were removed hears of it, and so does one that follows", async () => {
    const { bus, act, host, store } = setup({ retention: { maxSettled: 0 } });
    await act(() => bus.start());
    const publish = () => act(() => bus.publish("tick", "x", 1));
    for (let i = 0; i < 5; i++) await publish();
    const toldOf = (error: EventsGone) => `${error.code} ${error.cursor}`;
    const following = new AbortController();
    const follow = async () => {
      for await (const _ of bus.tail({ from: cursorAt(store, 5), follow: true, signal: following.signal }))
        await hung.promise;
    };
    const hung = deferred();
    const followed = follow().catch(toldOf);
    await host.advance(0);
    await publish();
    await publish();
    await act(() => bus.sweep());
    const gone = (from: number) => act(() => idsOf(bus.tail({ from: cursorAt(store, from) })).catch(toldOf));
    for (const from of [2, 6]) expect(await gone(from)).toBe(`BUS_EVENTS_GONE ${cursorAt(store, 7)}`);
    for (const from of [7, 8]) expect(await gone(from)).toEqual([]);
    // From the beginning means from the first present event.
    expect(await act(() => idsOf(bus.tail({ from: "start" })))).toEqual([]);
    // It was given 6, and has not asked for 7 before that was gone.
    await act(async () => hung.resolve());
    expect(await act(() => followed)).toBe(`BUS_EVENTS_GONE ${cursorAt(store, 7)}`);
  });

  test("[J74] retention goes in small steps, between which publishing gets in", async () => {
    const { host, disk, act, another } = setup();
    const inner = memoryStore({ host, disk });
    const asked: string[] = [];
    const store = withFaults(inner, {
      retain: (retention) => {
        asked.push(`retain ${retention.limit}`);
        return inner.retain(retention);
      },
      append: (entries) => {
        asked.push("append");
        return inner.append(entries);
      },
    });
    const bus = another({ store, retention: { maxSettled: 0 } });
    await act(() => bus.start());
    const events = Array.from({ length: 3 * RETENTION_STEP_ROWS }, (_, payload) => ({
      topic: "tick",
      source: "x",
      payload,
    }));
    await act(() => bus.publishMany(events));
    await host.advance(100);
    asked.length = 0;
    const sweeping = bus.sweep();
    await host.step();
    const publishing = bus.publish("tick", "x", 1);
    await act(() => Promise.all([sweeping, publishing]));
    const step = `retain ${RETENTION_STEP_ROWS}`;
    expect(asked.filter((one) => one === step).length >= 4).toBe(true);
    expect(asked.indexOf("append") < asked.lastIndexOf(step)).toBe(true);
  });

  test("[J79] observers hear of faults, and one that throws has no effect on the bus", async () => {
    const { bus, act, row, host } = setup({
      observe: ({ kind }) => {
        throw new Error(`told of ${kind}`);
      },
    });
    const reported: unknown[] = [];
    host.report = (error) => void reported.push(error);
    bus.subscribe("tick", () => Promise.reject(new Error("no")), { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "x", 1));
    expect((await row(id)).status).toBe("failed");
    expect(reported).toEqual([new Error("told of handler-failed")]);
  });
});
