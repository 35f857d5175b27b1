/**
 * Serial order where an event is not over for all subscribers, or other processes hold more events than one page of the
 * journal.
 */
import { describe, expect, test } from "#test";
import type { Event } from "../../src/bus/event.ts";
import { JOURNAL_PAGE_ROWS } from "../../src/limits.ts";
import { recorder, setup } from "./bus-setup.ts";

const serialBy = ({ payload }: Event) => String(payload);

describe("serial keys", () => {
  test("[J64] an event that failed for good for one subscriber releases its next one, although another one retries much later", async () => {
    const { bus, act, host } = setup();
    const handled: number[] = [];
    const failsFirst = (event: Event) => {
      handled.push(event.id);
      if (handled.length === 1) throw new Error("for good");
    };
    bus.subscribe("tick", failsFirst, { subscriberId: "serial", serialBy });
    const later = ({ id }: Event) => {
      if (id === 1) throw new Error("later");
    };
    const retry = { attempts: 2, backoff: { startMs: 3_600_000, factor: 1 } };
    bus.subscribe("tick", later, { subscriberId: "patient", retry });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", "k"));
    await act(() => bus.publish("tick", "clock", "k"));
    await host.advance(10_000);
    expect(handled).toEqual([1, 2]);
  });

  test("[J64] a transactional handler that fails at once does not hold up the next subscriber of the key", async () => {
    const { bus, act, host, store, openSpace } = setup();
    const space = await openSpace();
    const fail = () => {
      throw new Error("no");
    };
    const { ids, handler } = recorder();
    bus.subscribe("tick", fail, { subscriberId: "first", serialBy, space });
    bus.subscribe("tick", handler, { subscriberId: "second", serialBy, space });
    await act(() => bus.start());
    for (let n = 0; n < 3; n++) await act(() => bus.publish("tick", "clock", "k"));
    await host.advance(1_000);
    expect(ids).toEqual([1, 2, 3]);
    expect((await store.count()).failed).toBe(3);
  });

  test("[J64] an event waits for every earlier one of its key that another process holds, however many there are", async () => {
    const { store, bus, another, act, host } = setup();
    const publisher = another();
    const count = JOURNAL_PAGE_ROWS + 50;
    const earlier = Array.from({ length: count }, () => ({ topic: "tick", source: "clock", payload: "k" }));
    await act(() => publisher.publishMany(earlier));
    const { lease } = await act(() => store.openLease(1_000_000_000));
    const claims = await act(() => store.claim({ lease, limit: count, kinds: ["event"] }));
    expect(claims.length).toBe(count);
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "serial", serialBy });
    await act(() => bus.start());
    const last = await act(() => bus.publish("tick", "clock", "k"));
    await host.advance(20_000);
    expect(ids).toEqual([]);
    const done = claims.map(({ row, attempt }) => ({ id: row.id, lease, attempt, outcome: { kind: "done" as const } }));
    await act(() => store.settle(done.slice(0, JOURNAL_PAGE_ROWS)));
    await host.advance(20_000);
    expect(ids).toEqual([]);
    await act(() => store.settle(done.slice(JOURNAL_PAGE_ROWS)));
    await host.advance(20_000);
    expect(ids).toEqual([last]);
  });
});
