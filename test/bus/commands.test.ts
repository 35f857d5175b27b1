/** A bus of commands: exactly one subscriber for each type, which knows the former attempts. */
import { describe, expect, test } from "#test";
import type { EventBusOptions } from "../../src/bus/event-bus.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import type { Message } from "../../src/message/envelope.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { setup } from "./bus-setup.ts";

const COMMANDS: Partial<EventBusOptions> = { kind: "command", leaseMs: 1_000 };
const WORKER = { subscriberId: "worker" };

const order = (id: string): Message => ({
  ...{ kind: "command", type: "Work.Do", data: null },
  metadata: { id, timestamp: 1 },
});

describe("a bus for commands", () => {
  test("[J94] a new command is handed over without a claim; the same one again is the same row, and is not handled again", async () => {
    const { bus, act, store } = setup(COMMANDS);
    const handled: string[] = [];
    bus.subscribe("Work.Do", ({ message }) => void handled.push(message.metadata.id), WORKER);
    await act(() => bus.start());
    store.claim = () => Promise.resolve([]);
    expect(await act(() => bus.keep(order("one"), "worker"))).toBeUndefined();
    expect(handled).toEqual(["one"]);
    await act(() => bus.idle());
    expect(await act(() => bus.keep(order("one"), "worker"))).toMatchObject({ status: "done", source: "worker" });
    expect(handled).toEqual(["one"]);
  });

  test("[J94] it takes commands alone, and a bus for events takes none, also with a wildcard", async () => {
    const { bus, act, another } = setup(COMMANDS);
    const events = another();
    const heard: string[] = [];
    events.subscribe("Work.*", ({ message }) => void heard.push(`event ${message.metadata.id}`), WORKER);
    await act(() => events.start());
    await act(() => bus.keep(order("one"), "worker"));
    await act(() => events.publish("Work.Do", "test", null));
    await act(() => events.idle());
    bus.subscribe("Work.Do", ({ message }) => void heard.push(`${message.kind} ${message.metadata.id}`), WORKER);
    await act(() => bus.start());
    await act(() => bus.idle());
    expect(heard).toHaveLength(2);
    expect(heard[1]).toBe("command one");
    const thrown = await act(() =>
      bus.keep({ ...order("two"), kind: "event" }, "worker").catch((error: Error) => error),
    );
    expect(thrown).toMatchObject({ code: "BUS_EVENT_INVALID" });
  });

  test("[J94] a command without a subscriber has failed", async () => {
    const { bus, act, row } = setup(COMMANDS);
    await act(() => bus.keep(order("one"), "worker"));
    await act(() => bus.start());
    await act(() => bus.idle());
    expect(await row(1)).toMatchObject({ status: "failed", error: "no capability handles it" });
  });

  test("[J94] a handler knows how many processes have died with its command", async () => {
    const { bus, act, host, disk, another } = setup(COMMANDS);
    const process = simulatedProcess(host);
    const killed = another({ ...COMMANDS, host: process, store: memoryStore({ host: process, disk }) });
    killed.subscribe("Work.Do", () => new Promise(() => undefined), WORKER);
    await act(() => killed.start());
    await act(() => killed.keep(order("one"), "worker"));
    process.kill();
    const deaths: number[] = [];
    bus.subscribe("Work.Do", (_, context) => void deaths.push(context.deaths), WORKER);
    await act(() => bus.start());
    await host.advance(5_000);
    expect(deaths).toEqual([1]);
  });

  test("[J61] a retry policy may say which failures are worth another try", async () => {
    const { bus, act, host, row } = setup();
    let tries = 0;
    const retry = { attempts: 5, when: (thrown: unknown) => thrown instanceof RangeError };
    const fail = () => {
      throw ++tries < 3 ? new RangeError("for now") : new Error("for good");
    };
    bus.subscribe("tick", fail, { subscriberId: "s", retry });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    await host.advance(3_600_000);
    expect(tries).toBe(3);
    expect(await row(1)).toMatchObject({ status: "failed", error: "s: for good" });
  });
});
