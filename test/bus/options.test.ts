/** Senseless options are refused where they are given. */
import { describe, expect, test } from "#test";
import { EventBus } from "../../src/bus/event-bus.ts";
import { TIMER_DELAY_MS_MAX } from "../../src/limits.ts";
import { setup } from "./bus-setup.ts";

const MISUSE = { code: "BUS_MISUSE" };

/** The thrown value. */
function thrownBy(code: () => unknown): unknown {
  try {
    code();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("options of a bus", () => {
  test("[J44] no options, and a space that is no replica, are refused with a remedy", () => {
    const { bus } = setup();
    const handler = () => undefined;
    expect(thrownBy(() => bus.subscribe("tick", handler, undefined as never))).toMatchObject(MISUSE);
    const options = { subscriberId: "s", space: { name: "s" } as never };
    expect(thrownBy(() => bus.subscribe("tick", handler, options))).toMatchObject(MISUSE);
    expect(bus.subscriptions()).toEqual([]);
  });

  test("[J62] timeout is timeoutMs", async () => {
    const { bus, act, host, row } = setup();
    bus.subscribe("tick", () => new Promise(() => undefined), { subscriberId: "s", timeout: 1_000 });
    expect(thrownBy(() => bus.subscribe("tock", () => undefined, { subscriberId: "s", timeout: -1 }))).toMatchObject(
      MISUSE,
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(999);
    expect((await row(id)).status).toBe("processing");
    await host.advance(1);
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: the handler timed out after 1000 ms" });
  });

  test("[J62] [J70] times that no timer can be set for are refused when the bus is made", () => {
    const { host, store } = setup();
    for (const ms of [0, -1, Number.NaN, TIMER_DELAY_MS_MAX + 1]) {
      for (const times of [{ handlerTimeoutMs: ms }, { leaseMs: ms }])
        expect(thrownBy(() => new EventBus({ host, store, ...times }))).toMatchObject(MISUSE);
    }
    expect(thrownBy(() => new EventBus({ host, store, handlerTimeoutMs: TIMER_DELAY_MS_MAX }))).toBeUndefined();
  });

  test("[J74] a retention that is none is refused when the bus is made", () => {
    const { host, store } = setup();
    const bad = [{ maxAgeMs: -1 }, { maxAgeMs: Number.NaN }, { maxSettled: -1 }, { maxSettled: 1.5 }, { everyMs: 0 }];
    for (const retention of bad) expect(thrownBy(() => new EventBus({ host, store, retention }))).toMatchObject(MISUSE);
    expect(thrownBy(() => new EventBus({ host, store, retention: { maxAgeMs: 0, maxSettled: 0 } }))).toBeUndefined();
  });
});
