import { describe, expect, test } from "#test";
import { BusError } from "../../src/bus/bus-error.ts";
import { EventBus } from "../../src/bus/event-bus.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { PAYLOAD_BYTES_MAX } from "../../src/limits.ts";
import { eventMessage } from "../../src/message/lineage.ts";
import type { JournalEntry, Settlement } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Store } from "../../src/store/store.ts";
import { recorder, setup, withFaults } from "./bus-setup.ts";

async function refusal(publishing: Promise<unknown>): Promise<unknown> {
  return publishing.then(
    () => "published",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );
}

describe("publishing", () => {
  test("[J40] an event has a positive, increasing id, is pending, and calls no handler before the start", async () => {
    const { bus, act, row } = setup();
    let calls = 0;
    bus.subscribe("tick", () => void calls++, { subscriberId: "s" });
    const ids = [await act(() => bus.publish("tick", "clock", 1)), await act(() => bus.publish("tick", "clock", 2))];
    expect(ids).toEqual([1, 2]);
    expect((await row(1)).status).toBe("pending");
    expect(calls).toBe(0);
  });

  test("[J40] no handler has been called when publish returns its promise, nor is one awaited by it", async () => {
    const { bus, act } = setup();
    let calls = 0;
    const never = new Promise<void>(() => {});
    bus.subscribe(
      "tick",
      () => {
        calls++;
        return never;
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    const publishing = bus.publish("tick", "clock", 1);
    expect(calls).toBe(0);
    await act(() => publishing);
    expect(calls).toBe(1);
  });

  test("[J40] an acknowledged event is in the journal of a new bus", async () => {
    const { bus, act, another } = setup();
    const id = await act(() => bus.publish("email.received", "mail", { from: "ada" }, { correlation: "c" }));
    const [row] = await act(() => another().query({ id, limit: 1 }));
    expect(row?.message?.data).toEqual({ from: "ada" });
    expect(row?.source).toBe("mail");
    expect(row?.message?.type).toBe("Email.Received");
  });

  test("[J41] two topics of one type are refused when the second is wired, by publishing or subscribing", async () => {
    const { bus, act } = setup();
    await act(() => bus.publish("email.received", "mail", null));
    expect(await act(() => refusal(bus.publish("Email.Received", "mail", null)))).toBe("TOPIC_COLLISION");
    expect(() => bus.subscribe("email.Received", () => {}, { subscriberId: "s" })).toThrow("rename one");
    expect(await act(() => refusal(bus.publish("email..received", "mail", null)))).toBe("TOPIC_INVALID");
  });

  test("[J45] data that is not pure JSON is refused and leaves no row", async () => {
    const { bus, act, store } = setup();
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const payloads = [undefined, 1n, cyclic, new Date(0), Number.NaN, [undefined], "\0", [() => 1], new Map()];
    for (const payload of payloads) {
      expect(await act(() => refusal(bus.publish("tick", "clock", payload as never)))).toBe("BUS_EVENT_INVALID");
    }
    for (const source of ["", "\0", "x".repeat(256)]) {
      expect(await act(() => refusal(bus.publish("tick", source, null)))).toBe("BUS_EVENT_INVALID");
    }
    expect(await act(() => refusal(bus.publish("tick", "clock", null, { correlation: "" })))).toBe("BUS_EVENT_INVALID");
    expect(await store.count()).toEqual({ pending: 0, processing: 0, done: 0, failed: 0 });
  });

  test("[J45] unicode, odd keys and a payload of 1 MiB come back as they were; one byte more is refused", async () => {
    const { bus, act, row } = setup();
    const odd = { "": 1, __proto__x: [null, "é€😀"], "a b": { "\n": "\t" } };
    expect((await row(await act(() => bus.publish("tick", "clock", odd)))).message?.data).toEqual(odd);
    const full = "x".repeat(PAYLOAD_BYTES_MAX - 2);
    expect((await row(await act(() => bus.publish("tick", "clock", full)))).message?.data).toBe(full);
    expect(await act(() => refusal(bus.publish("tick", "clock", `${full}x`)))).toBe("BUS_REFUSED");
  });

  test("[J45] [M32] an accessor is read once; symbols and hidden fields stay behind", async () => {
    const { bus, act, row } = setup();
    let reads = 0;
    const payload = {
      get now() {
        return ++reads;
      },
      [Symbol("s")]: 1,
    };
    Object.defineProperty(payload, "hidden", { value: 1, enumerable: false });
    const stored = (await row(await act(() => bus.publish("tick", "clock", payload)))).message?.data;
    expect(JSON.stringify(stored)).toBe('{"now":1}');
  });

  test("[J45] handlers do not see later changes of a payload", async () => {
    const { bus, act } = setup();
    const seen: unknown[] = [];
    bus.subscribe("tick", (event) => void seen.push(event.payload), { subscriberId: "s" });
    await act(() => bus.start());
    const payload = { list: [1] };
    const publishing = bus.publish("tick", "clock", payload);
    payload.list.push(2);
    await act(() => publishing);
    expect(seen).toEqual([{ list: [1] }]);
  });

  test("[J46] correlation and causation are kept, and never invented", async () => {
    const { bus, act, row } = setup();
    const given = await row(await act(() => bus.publish("tick", "clock", 1, { correlation: "c-1", causation: "m-1" })));
    expect(given.message?.metadata).toMatchObject({ correlation: "c-1", causation: "m-1" });
    const plain = await row(await act(() => bus.publish("tick", "clock", 1)));
    expect(Object.keys(plain.message?.metadata ?? {}).sort()).toEqual(["id", "timestamp"]);
  });

  test("[J46] an event of a handler carries the correlation of its event, and that event as its cause", async () => {
    const { bus, act, row } = setup();
    bus.subscribe("email.received", (_event, context) => context.emit("user.notify", { text: "mail" }), {
      subscriberId: "notifier",
    });
    await act(() => bus.start());
    const id = await act(() => bus.publish("email.received", "mail", {}, { correlation: "c-1" }));
    const cause = await row(id);
    const effect = await row(id + 1);
    expect(effect.topic).toBe("user.notify");
    expect(effect.source).toBe("notifier");
    expect(effect.message?.metadata.correlation).toBe("c-1");
    expect(effect.message?.metadata.causation).toBe(cause.message?.metadata.id);
  });

  test("[J47] many events are stored in order, all or none", async () => {
    const { bus, act, store } = setup();
    const events = [1, 2, 3].map((payload) => ({ topic: "tick", source: "clock", payload }));
    expect(await act(() => bus.publishMany(events))).toEqual([1, 2, 3]);
    const bad = [...events, { topic: "tick", source: "clock", payload: Number.NaN }];
    expect(await act(() => refusal(bus.publishMany(bad)))).toBe("BUS_EVENT_INVALID");
    expect((await store.count()).pending).toBe(3);
    expect(await act(() => bus.publishMany([]))).toEqual([]);
  });

  test("[J47] ids follow the order of the calls of one turn, in each way of publishing", async () => {
    const { bus, act, host } = setup();
    const message = eventMessage(host, "Email.Received", {});
    const all = () =>
      Promise.all([
        bus.publish("tick", "clock", 1),
        bus.publishMany([2, 3].map((payload) => ({ topic: "tick", source: "clock", payload }))),
        bus.publish("tick", "clock", 4),
        bus.publishMessage(message, "mail"),
        bus.publish("tick", "clock", 6),
      ]);
    expect(await act(all)).toEqual([1, [2, 3], 4, 5, 6]);
  });

  test("[J47] a message that another sender made is published once, however often it is sent", async () => {
    const { bus, act, host, row } = setup();
    const { ids, handler } = recorder();
    bus.subscribe("Email.Received", handler, { subscriberId: "s" });
    await act(() => bus.start());
    const message = eventMessage(host, "Email.Received", { from: "ada" }, { correlation: "c", traceparent: "00-1" });
    for (let i = 0; i < 3; i++) expect(await act(() => bus.publishMessage(message, "mail"))).toBe(1);
    expect(ids).toEqual([1]);
    expect((await row(1)).message).toEqual(message);
    const changed = { ...message, data: { from: "eve" } };
    expect(await act(() => refusal(bus.publishMessage(changed, "mail")))).toBe("BUS_REFUSED");
    const command = { ...message, kind: "command" as const };
    expect(await act(() => refusal(bus.publishMessage(command, "mail")))).toBe("BUS_EVENT_INVALID");
  });

  test("[J47] an event that the store refuses does not affect the other events of its turn", async () => {
    const { bus, act, store } = setup();
    const tooLarge = "x".repeat(PAYLOAD_BYTES_MAX);
    const publishing = [1, tooLarge, 3].map((payload) => refusal(bus.publish("tick", "clock", payload)));
    expect(await act(() => Promise.all(publishing))).toEqual(["published", "BUS_REFUSED", "published"]);
    expect((await store.count()).pending).toBe(2);
  });

  for (const bound of ["allowed", "of the journal"] as const) {
    test(`[J47] an oversized event does not reorder the others, also before later events (more than is ${bound})`, async () => {
      const { act, host, another } = setup();
      const bytes = bound === "allowed" ? 100 : PAYLOAD_BYTES_MAX;
      const store = memoryStore({ host, disk: new MemoryDisk({ payloadBytesMax: bytes }) });
      const bus = another({ store });
      const seen: unknown[] = [];
      bus.subscribe("tick", ({ payload }) => void seen.push(payload), { subscriberId: "s", serialBy: () => "k" });
      await act(() => bus.start());
      const tooLarge = "x".repeat(bytes);
      const publishing = Array.from({ length: 300 }, (_, n) =>
        refusal(bus.publish("tick", "clock", n === 5 ? tooLarge : n)),
      );
      const many = bus.publishMany([300, 301].map((payload) => ({ topic: "tick", source: "clock", payload })));
      await Promise.resolve();
      const later = bus.publish("tick", "clock", 302);
      const outcomes = await act(() => Promise.all(publishing));
      expect(outcomes.map((outcome, n) => (outcome === "published" ? "" : `${n} ${outcome}`)).join("")).toBe(
        "5 BUS_REFUSED",
      );
      expect([await many, await later]).toEqual([[300, 301], 302]);
      expect(seen).toEqual(Array.from({ length: 303 }, (_, n) => n).filter((n) => n !== 5));
    });
  }

  test("[J47] an event that the store could not write is not stored later, after newer events", async () => {
    const { act, another, store: inner } = setup();
    let isBusy = true;
    const store = withFaults(inner, {
      append: async (entries, leaveOut) => {
        if (isBusy) return rejected("failed", "store-busy", "too much waits");
        return inner.append(entries, leaveOut);
      },
    });
    const bus = another({ store });
    const publish = (n: number) => refusal(bus.publish("tick", "clock", n));
    const first = [publish(1), publish(2)];
    await act(async () => {
      await Promise.resolve();
      isBusy = false;
      await Promise.all([...first, publish(3)]);
    });
    expect(await Promise.all(first)).toEqual(["BUS_NOT_STORED", "BUS_NOT_STORED"]);
    expect((await inner.query({ limit: 9 })).map(({ message }) => message?.data)).toEqual([3]);
  });

  test("[J47] an aborted signal keeps an event from being sent", async () => {
    const { bus, act, store } = setup();
    const signal = AbortSignal.abort(new Error("never mind"));
    expect(await act(() => refusal(bus.publish("tick", "clock", 1, { signal })))).toEqual(new Error("never mind"));
    expect((await store.count()).pending).toBe(0);
  });

  test("[J47] a store that cannot write makes publish reject with a remedy, and the bus lives on", async () => {
    const good = setup();
    const outcomes = [
      { class: "failed", reason: "store-full" },
      { class: "unknown", reason: "io-error" },
    ] as const;
    const answers = outcomes.map((outcome) => ({ kind: "rejected", message: "no space", ...outcome }) as const);
    const store = withFaults(good.store, {
      append: (entries) => Promise.resolve(answers.shift() ?? good.store.append(entries)),
    });
    const { bus, act } = setup({ store });
    expect(await act(() => refusal(bus.publish("tick", "clock", 1)))).toBe("BUS_NOT_STORED");
    expect(await act(() => refusal(bus.publish("tick", "clock", 1)))).toBe("BUS_UNKNOWN");
    expect(await act(() => bus.publish("tick", "clock", 1))).toBe(1);
  });

  test("[J47] after stop, publish and start are refused", async () => {
    const { bus, act, another } = setup();
    await act(() => bus.start());
    await act(() => bus.stop());
    expect(await act(() => refusal(bus.publish("tick", "clock", 1)))).toBe("BUS_STOPPED");
    expect(await act(() => refusal(bus.start()))).toBe("BUS_STOPPED");
    expect(() => bus.subscribe("tick", () => {}, { subscriberId: "s" })).toThrow(BusError);
    expect(await act(() => another().publish("tick", "clock", 1))).toBe(1);
  });

  test("[J55] [J46] an event that a handler emits without waiting is appended before the handler's event is settled", async () => {
    const host = simulatedHost(1);
    const asked: string[] = [];
    const inner = memoryStore({ host });
    const store: Store = new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return (...given: readonly unknown[]) => {
          if (name === "append")
            asked.push(...(given[0] as readonly JournalEntry[]).map(({ topic }) => `append ${topic}`));
          if (name === "settle") asked.push(...(given[0] as readonly Settlement[]).map(({ id }) => `settle ${id}`));
          return member.apply(target, given);
        };
      },
    });
    const bus = new EventBus({ host, store });
    bus.subscribe("in", ({ payload }, context) => void (payload === 2 && context.emit("out", payload)), {
      subscriberId: "s",
    });
    bus.subscribe("out", () => undefined, { subscriberId: "t" });
    await host.run(() => bus.start());
    const publications = [1, 2].map((payload) => ({ topic: "in", source: "test", payload }));
    await host.run(() => bus.publishMany(publications));
    await host.advance(1_000);
    const settled = asked.indexOf("settle 2");
    expect(asked.indexOf("append out")).toBeGreaterThan(-1);
    expect(settled).toBeGreaterThan(asked.indexOf("append out"));
    await host.run(() => bus.stop());
  });

  test("[J55] an event of a handler is stored when the handler's event is settled, also beside an oversized one", async () => {
    const { act, another, store: inner } = setup();
    const seen: unknown[] = [];
    const store = withFaults(inner, {
      settle: async (settlements, urgency) => {
        const before = await inner.query({ topic: "out", limit: 9 });
        seen.push([settlements.map(({ id }) => id), before.length]);
        return inner.settle(settlements, urgency);
      },
    });
    const bus = another({ store });
    const refusals: unknown[] = [];
    const emits = (_event: unknown, context: { emit(topic: string, payload: unknown): Promise<number> }) => {
      void context.emit("out", 1);
      void refusal(context.emit("out", "x".repeat(PAYLOAD_BYTES_MAX))).then((code) => refusals.push(code));
    };
    bus.subscribe("in", emits, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publish("in", "test", 1));
    expect(refusals).toEqual(["BUS_REFUSED"]);
    expect(seen).toEqual([[[1], 1]]);
  });

  test("[J106] publish resolves when the event is durable, before a synchronous handler runs", async () => {
    const { bus, act } = setup();
    const order: string[] = [];
    bus.subscribe("tick", () => void order.push("handled"), { subscriberId: "s" });
    await act(() => bus.start());
    await act(async () => {
      await bus.publish("tick", "clock", 1);
      order.push("published");
    });
    const note = () => void order.push("published");
    await act(async () => {
      for (const n of [2, 3]) void bus.publish("tick", "clock", n).then(note);
    });
    expect(order).toEqual(["published", "handled", "published", "published", "handled", "handled"]);
  });
});
