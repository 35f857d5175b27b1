/** The last handlings, in memory: found by id, cause and correlation; bounded; a late end has no effect. */
import { describe, expect, test } from "#test";
import { HandlingRing } from "../../src/bus/handling-ring.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import type { Message } from "../../src/message/envelope.ts";
import { setup } from "./bus-setup.ts";

const command = (id: string, metadata: object = {}): Message => ({
  ...{ kind: "command", type: "Shop.Order", data: null },
  metadata: { id, timestamp: 1, ...metadata },
});

describe("the handling ring", () => {
  test("[K70] a handling is found by its message, its cause and its correlation, with its durations and outcome", async () => {
    const host = simulatedHost(1);
    const ring = new HandlingRing(host);
    const place = ring.given(command("m", { causation: "c", correlation: "k" }), "shop", "the program");
    expect(ring.find(new Set(["m"]), 10)).toMatchObject([{ handler: "shop", attempt: 1 }]);
    expect(ring.find(new Set(["m"]), 10)[0]?.outcome).toBe(undefined);
    await host.advance(4);
    const begun = host.monotonic();
    await host.advance(6);
    ring.ended(place, "replied", begun);
    for (const id of ["m", "c", "k"])
      expect(ring.find(new Set([id]), 10)).toMatchObject([{ id: "m", outcome: "replied", waitedMs: 4, tookMs: 10 }]);
    expect(ring.find(new Set(["other"]), 10)).toEqual([]);
    expect(ring.lastOf("shop", 5)).toHaveLength(1);
  });

  test("[K70] the oldest handling makes room, and its later end has no effect", () => {
    const ring = new HandlingRing(simulatedHost(1), 3);
    const places = ["a", "b", "c", "d"].map((id) => ring.given(command(id), id, "x"));
    ring.ended(places[0] as number, "late");
    ring.ended(places[3] as number, "replied");
    ring.ended(places[3] as number, "again");
    expect(ring.size).toBe(3);
    expect(ring.find(new Set(["a", "b", "c", "d"]), 10).map(({ id, outcome }) => [id, outcome])).toEqual([
      ["b", undefined],
      ["c", undefined],
      ["d", "replied"],
    ]);
    expect(ring.find(new Set(["a", "b", "c", "d"]), 2)).toHaveLength(2);
  });

  test("[K70] handlers of events are remembered with their attempts and failures, plain and asynchronous", async () => {
    const host = simulatedHost(1);
    const handlings = new HandlingRing(host);
    const { bus, act } = setup({ host, handlings });
    bus.subscribe("a.told", () => undefined, { subscriberId: "plain" });
    bus.subscribe("a.told", async () => Promise.reject(new Error("no")), { subscriberId: "failing" });
    await host.run(() => bus.start());
    await host.run(() => bus.publish("a.told", "test", null));
    await host.advance(1_000);
    const of = (name: string) => handlings.lastOf(name, 5).map(({ outcome, askedBy }) => [outcome, askedBy]);
    expect([of("plain"), of("failing")]).toEqual([[["done", "test"]], [["failed: no", "test"]]]);
    await act(() => bus.stop());
  });
});
