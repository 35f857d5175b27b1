import { describe, expect, test } from "#test";
import type { Event } from "../../src/bus/event.ts";
import { EventBus } from "../../src/bus/event-bus.ts";
import { deferred, recorder, setup } from "./bus-setup.ts";

describe("subscribing", () => {
  test("[J42] an event reaches every subscriber of its topic or of a pattern that names it, in the order of subscribing", async () => {
    const { bus, act } = setup();
    const calls: string[] = [];
    for (const pattern of ["email.received", "email.*", "*.received", "**", "email.sent", "*", "email.received.*"]) {
      bus.subscribe(pattern, () => void calls.push(pattern), { subscriberId: "s" });
    }
    await act(() => bus.start());
    await act(() => bus.publish("email.received", "mail", {}));
    expect(calls).toEqual(["email.received", "email.*", "*.received", "**"]);
  });

  test("[J42] subscriptions live in memory: a new bus has none", async () => {
    const { bus, act, another, row } = setup();
    bus.subscribe("tick", () => {}, { subscriberId: "s" });
    const other = another();
    await act(() => other.start());
    const id = await act(() => other.publish("tick", "clock", 1));
    expect((await row(id)).reason).toBe("no subscriber");
  });

  test("[J42] subscribing while it runs counts from the next event on", async () => {
    const { bus, act } = setup();
    const { ids, handler } = recorder();
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.publish("tick", "clock", 2));
    expect(ids).toEqual([2]);
  });

  test("[J43] unsubscribe removes that subscriber from that topic only; an unknown one is no error", async () => {
    const { bus, act } = setup();
    const calls: string[] = [];
    bus.subscribe("tick", () => void calls.push("a"), { subscriberId: "a" });
    bus.subscribe("tick", () => void calls.push("b"), { subscriberId: "b" });
    bus.subscribe("*", () => void calls.push("a*"), { subscriberId: "a" });
    await act(() => bus.start());
    expect(bus.unsubscribe("tick", "a")).toBe(true);
    expect(bus.unsubscribe("tick", "a")).toBe(false);
    expect(bus.unsubscribe("tock", "b")).toBe(false);
    await act(() => bus.publish("tick", "clock", 1));
    expect(calls).toEqual(["b", "a*"]);
  });

  test("[J44] one subscriber twice on a topic: both run, each with its own share, and both are removed together", async () => {
    const { bus, act, row } = setup();
    const calls: string[] = [];
    bus.subscribe("tick", () => void calls.push("first"), { subscriberId: "a" });
    bus.subscribe(
      "tick",
      () => {
        calls.push("second");
        throw new Error("no");
      },
      { subscriberId: "a" },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect(calls).toEqual(["first", "second"]);
    expect((await row(id)).deliveries.map(({ subscriber, status }) => `${subscriber}: ${status}`)).toEqual([
      "a: done",
      "a 2: failed",
    ]);
    bus.unsubscribe("tick", "a");
    await act(() => bus.publish("tick", "clock", 2));
    expect(calls).toEqual(["first", "second"]);
  });

  test("[J44] [U100] bad options are refused with a sentence", () => {
    const { bus } = setup();
    const refused: [object, string][] = [
      [{ subscriberId: "" }, "subscriberId"],
      [{ subscriberId: "two words" }, "without blanks"],
      [{ subscriberId: "s", retry: { attempts: 0 } }, "at least 1"],
      [{ subscriberId: "s", retry: { attempts: 2, backoff: { factor: 0.5 } } }, "backoff"],
      [{ subscriberId: "s", retry: 0 }, "at least 1"],
      [{ subscriberId: "s", retry: "often" }, "retry is a number of attempts in all"],
      [{ subscriberId: "s", retry: { attempts: 2, backof: {} } }, 'retry: the option "backof" is not known'],
      [{ subscriberId: "s", retry: { attempts: 2, backoff: { start: 5 } } }, 'retry: the option "start" is not known'],
      [{ subscriberId: "s", timeoutMs: -1 }, "timeoutMs"],
      [{ subscriberId: "s", serialBy: "key" }, "serialBy"],
      [{ subscriberId: "s", onFailed: true }, "onFailed"],
      [{ subscriberId: "s", retries: 3 }, 'the option "retries" is not known'],
      [{ subscriberId: "s", concurrency: 0.5 }, "concurrency"],
    ];
    for (const [options, message] of refused) {
      expect(() => bus.subscribe("tick", () => {}, options as never)).toThrow(message);
    }
    expect(() => bus.subscribe("tick.**.x", () => {}, { subscriberId: "s" })).toThrow("not a topic pattern");
    expect(() => bus.subscribe("tick", "not a function" as never, { subscriberId: "s" })).toThrow("function");
  });

  test("[J89] a bus lists its subscriptions with their topics, in the order of subscribing, and the load of each", async () => {
    const { bus, act, openSpace } = setup();
    const { promise, resolve } = deferred();
    const space = await openSpace();
    bus.subscribe("tick", () => promise, { subscriberId: "slow", concurrency: 1, retry: { attempts: 3 } });
    bus.subscribe("tock.**", () => {}, { subscriberId: "order", serialBy: (event) => event.topic });
    bus.subscribe("tock", () => {}, { subscriberId: "books", space });
    await act(() => bus.start());
    for (const _ of [1, 2, 3]) await act(() => bus.publish("tick", "clock", {}));
    const plain = { handling: "plain", attempts: 1, serial: false, running: 0, waiting: 0 };
    const slow = { ...plain, pattern: "tick", subscriberId: "slow", attempts: 3 };
    expect(bus.subscriptions()).toEqual([
      { ...slow, running: 1, waiting: 2 },
      { ...plain, pattern: "tock.**", subscriberId: "order", serial: true },
      { ...plain, pattern: "tock", subscriberId: "books", handling: "transactional" },
    ]);
    bus.unsubscribe("tock", "books");
    await act(async () => resolve());
    expect(bus.subscriptions().map(({ running, waiting }) => [running, waiting])).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test("[J48] a handler sees a frozen event with the ADR's fields, and no field of the journal", async () => {
    const { bus, act, host } = setup();
    const seen: Event[] = [];
    bus.subscribe("email.received", (event) => void seen.push(event), { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("email.received", "mail", { to: ["ada"] }, { correlation: "c" }));
    const [event] = seen as [Event];
    expect(event).toMatchObject({
      id,
      topic: "email.received",
      source: "mail",
      payload: { to: ["ada"] },
      createdAtMs: host.now(),
      correlation: "c",
      status: "processing",
    });
    expect(Object.keys(event)).not.toContain("error");
    expect(() => Object.assign(event, { id: 9 })).toThrow();
    expect(() => (event.payload as { to: string[] }).to.push("eve")).toThrow();
    expect(Object.isFrozen(event.message) && Object.isFrozen(event.message.metadata)).toBe(true);
  });

  test("[J48] an event that is read from the journal is seen as one that was handed over", async () => {
    const { bus, act } = setup();
    const seen: Event[] = [];
    bus.subscribe("tick", (event) => void seen.push(event), { subscriberId: "s" });
    await act(() => bus.publish("tick", "clock", { n: [1] }));
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", { n: [1] }));
    const [read, handed] = seen;
    expect({ ...read, id: 0, message: 0 }).toEqual({ ...handed, id: 0, message: 0 });
    expect(Object.isFrozen(read?.payload)).toBe(true);
  });

  test("[J48] payloads are typed by topic where an application says so", async () => {
    const { host, store, act } = setup();
    interface Mail {
      readonly from: string;
    }
    const bus = new EventBus<{ "email.received": Mail; tick: number }>({ host, store });
    const seen: (string | number)[] = [];
    bus.subscribe("email.received", (event) => void seen.push(event.payload.from), { subscriberId: "s" });
    bus.subscribe("*", (event) => void seen.push(event.payload as number), { subscriberId: "s" });
    // @ts-expect-error: the payload of a mail is no number
    expect(await act(() => bus.publish("email.received", "mail", 7))).toBe(1);
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 3));
    expect(seen).toEqual([undefined, 3]);
  });
});
