/** Waits that several subscribers, or several troubles of the store, have to agree on. */
import { describe, expect, test } from "#test";
import { TIMER_DELAY_MS_MAX } from "../../src/limits.ts";
import { recorder, setup, withFaults } from "./bus-setup.ts";

describe("an event that several subscribers failed at", () => {
  test("[J105] each delivery has its own backoff: a slow retry does not delay a quick one", async () => {
    const { bus, act, host } = setup();
    const calls: string[] = [];
    for (const [subscriberId, startMs] of [
      ["soon", 1_000],
      ["late", 60_000],
    ] as const) {
      const handler = () => {
        calls.push(subscriberId);
        throw new Error("not yet");
      };
      bus.subscribe("tick", handler, { subscriberId, retry: { attempts: 2, backoff: { startMs, factor: 1 } } });
    }
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    await host.advance(1_000);
    expect(calls).toEqual(["soon", "late", "soon"]);
    await host.advance(28_999);
    expect(calls).toEqual(["soon", "late", "soon"]);
    await host.advance(30_001);
    expect(calls).toEqual(["soon", "late", "soon", "late"]);
  });
});

describe("waits that cannot be counted", () => {
  test("[J61] no wait is none, however often it is doubled, and one without end is as long as a timer reaches", async () => {
    const { bus, act, host, row } = setup();
    let calls = 0;
    const often = () => {
      if (++calls < 1_100) throw new Error("not yet");
    };
    const never = () => {
      throw new Error("not yet");
    };
    bus.subscribe("often", often, { subscriberId: "s", retry: { attempts: 2_000, backoff: { startMs: 0 } } });
    const backoff = { startMs: 1, factor: 1e300, maxMs: 1e300 };
    bus.subscribe("never", never, { subscriberId: "s", retry: { attempts: 9, backoff } });
    await act(() => bus.start());
    const id = await act(() => bus.publish("often", "clock", 1));
    expect((await row(id)).status).toBe("done");
    expect(calls).toBe(1_100);
    const late = await act(() => bus.publish("never", "clock", 1));
    await host.advance(10);
    const { attempts, nextAttemptAtMs = 0 } = await row(late);
    expect(attempts).toBe(2);
    const waitMs = nextAttemptAtMs - host.now();
    expect(waitMs > TIMER_DELAY_MS_MAX / 3 && waitMs <= TIMER_DELAY_MS_MAX).toBe(true);
  });
});

describe("a store whose answers get lost", () => {
  test("[J2] [J71] an event that a claim has taken without telling is handled, though this process lives on", async () => {
    const { store, another, act, host, row } = setup();
    let lost = 0;
    const faulty = withFaults(store, {
      claim: async (request) => {
        const claims = await store.claim(request);
        if (claims.length === 0 || lost > 0) return claims;
        lost++;
        throw new Error("the answer is lost");
      },
    });
    const publisher = another();
    const id = await act(() => publisher.publish("tick", "clock", 1));
    const bus = another({ store: faulty });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    await host.advance(10_000);
    expect(lost).toBe(1);
    expect(ids).toEqual([id]);
    await host.advance(120_000);
    expect((await row(id)).status).toBe("done");
  });

  test("[J2] [J54] a row that cannot be read is failed, though the first settle of it got lost", async () => {
    const { store, another, act, host, row } = setup();
    let refused = 0;
    const faulty = withFaults(store, {
      claim: async (request) => {
        const claims = await store.claim(request);
        return claims.map((claim) => ({ ...claim, row: { ...claim.row, message: undefined, unreadable: "torn" } }));
      },
      settle: async (settlements, urgency) => {
        if (refused++ === 0) throw new Error("not now");
        return store.settle(settlements, urgency);
      },
    });
    const publisher = another();
    const id = await act(() => publisher.publish("tick", "clock", 1));
    const bus = another({ store: faulty });
    bus.subscribe("tick", () => undefined, { subscriberId: "s" });
    await act(() => bus.start());
    await host.advance(120_000);
    expect(await row(id)).toMatchObject({ status: "failed", error: "torn" });
  });
});
