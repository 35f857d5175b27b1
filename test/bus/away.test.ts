/** A bus on a store that loses its server: the same data come back, or data with another history. */
import { describe, expect, test } from "#test";
import { EventBus } from "../../src/bus/event-bus.ts";
import type { BusObservation } from "../../src/bus/observation.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Server } from "../store/served-store.ts";

const LEASE_MS = 30_000;

async function served() {
  const host = simulatedHost(1);
  const server = new Server(host);
  const [line, other] = [server.connect(), server.connect()];
  const observed: BusObservation[] = [];
  const bus = new EventBus({ host, store: line.store, leaseMs: LEASE_MS, observe: (one) => void observed.push(one) });
  const handled: unknown[] = [];
  bus.subscribe("tick", ({ payload }) => void handled.push(payload), { subscriberId: "s" });
  const act = async <T>(action: () => Promise<T>): Promise<T> => {
    const result = await host.run(action);
    await host.advance(0);
    return result;
  };
  await act(() => bus.start());
  /** Published by a kernel with a working line. */
  const elsewhere = new EventBus({ host, store: other.store });
  return { host, server, line, bus, act, handled, elsewhere, kinds: () => observed.map(({ kind }) => kind) };
}

describe("a store that is away", () => {
  test("[J176] [S238] no event is claimed and no lease is lost; waiting events are handled when the store is back", async () => {
    const { host, line, bus, act, handled, elsewhere, kinds } = await served();
    line.cut();
    await act(() => elsewhere.publish("tick", "x", 1));
    let published = false;
    const parked = bus.publish("tick", "x", 2).then(() => {
      published = true;
    });
    await host.advance(LEASE_MS / 2);
    expect([handled, published]).toEqual([[], false]);
    line.repair();
    await host.advance(0);
    await parked;
    await host.advance(0);
    expect(handled.toSorted()).toEqual([1, 2]);
    expect(kinds()).not.toContain("lease-lost");
    await act(() => bus.stop());
  });

  test("[J177] data with another history void the lease, and the bus goes on under a new one", async () => {
    const { host, server, bus, act, handled, kinds } = await served();
    await act(() => bus.publish("tick", "x", 1));
    server.failOver();
    await host.advance(0);
    expect(kinds()).toContain("lease-lost");
    await act(() => bus.publish("tick", "x", 2));
    expect(handled).toEqual([1, 2]);
    expect((await bus.consumers()).map(({ name, leases }) => [name, leases.length])).toEqual([["s", 1]]);
    await act(() => bus.stop());
  });
});
