/** Handlers may throw or return any value, and a store may refuse an outcome: no other event is affected. */
import { describe, expect, test } from "#test";
import type { Settlement } from "../../src/store/journal.ts";
import { type Store, StoreError } from "../../src/store/store.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

/** Not even its class can be asked for. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const UNPRINTABLE = "an unprintable value was thrown";

/** The conduct of a handler, and the error of its event. */
const HOSTILE: readonly (readonly [string, () => unknown, string])[] = [
  ["throws a revoked proxy", () => Promise.reject(revoked()), UNPRINTABLE],
  [
    "throws one at once",
    () => {
      throw revoked();
    },
    UNPRINTABLE,
  ],
  ["returns one", () => revoked(), "Cannot perform 'has' on a proxy that has been revoked"],
  [
    "throws an error whose cause is one",
    () => Promise.reject(new Error("no", { cause: revoked() })),
    `no, because: ${UNPRINTABLE}`,
  ],
  [
    "returns what throws when it is waited for",
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what it is about
      then() {
        throw new Error("bad then");
      },
    }),
    "bad then",
  ],
  [
    "returns a promise whose then is another's",
    () =>
      Object.assign(Promise.resolve(1), {
        // biome-ignore lint/suspicious/noThenProperty: that is what it is about
        then() {
          throw revoked();
        },
      }),
    UNPRINTABLE,
  ],
];

describe("hostile handlers", () => {
  for (const [what, handler, error] of HOSTILE) {
    test(`[J50] [J52] the event of a handler that ${what} has failed, and no other event`, async () => {
      const all = setup();
      const { bus, act, host, row } = all;
      const space = await all.openSpace();
      const { ids, handler: next } = recorder();
      bus.subscribe("plain", handler, { subscriberId: "s" });
      bus.subscribe("plain", next, { subscriberId: "t" });
      bus.subscribe("transactional", handler, { subscriberId: "s", space });
      await act(() => bus.start());
      const plain = await act(() => bus.publish("plain", "clock", 1));
      const transactional = await act(() => bus.publish("transactional", "clock", 1));
      await host.advance(10);
      // Engines word it differently.
      const text = error.startsWith("Cannot") ? expect.stringMatching(/proxy/i) : `s: ${error}`;
      expect(await row(plain)).toMatchObject({ status: "failed", error: text });
      expect(await row(transactional)).toMatchObject({ status: "failed", error: text });
      expect(ids).toEqual([plain]);
      expect(bus.busy).toBe(false);
      await act(() => bus.stop());
      expect(host.pendingTimers).toBe(0);
    });
  }

  test("[J61] a retry policy gets a thrown value without a readable class, and may throw it too", async () => {
    const { bus, act, row } = setup();
    const when = (): never => {
      throw revoked();
    };
    bus.subscribe("tick", () => Promise.reject(revoked()), { subscriberId: "s", retry: { attempts: 2, when } });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const error = `s: ${UNPRINTABLE}; retry.when threw: ${UNPRINTABLE}`;
    expect(await row(id)).toMatchObject({ status: "failed", error });
  });
});

describe("settlements that the store refuses for their content", () => {
  /** Two events that fail and two that go well, settled together; of the first one the store takes only the failure. */
  async function settled(isRefused: (settlement: Settlement) => boolean) {
    const all = setup();
    const { act, host, another } = all;
    let calls = 0;
    const store: Store = withFaults(all.store, {
      settle: async (settlements, urgency) => {
        calls++;
        if (settlements.some((settlement) => settlement.id === 1 && isRefused(settlement)))
          throw new StoreError("STORE_MISUSE", "an outcome: is not JSON");
        return all.store.settle(settlements, urgency);
      },
    });
    const bus = another({ store });
    const gate = deferred();
    const work = ({ payload }: { payload: unknown }) =>
      gate.promise.then(() => (payload === "fails" ? Promise.reject(new Error("no")) : undefined));
    bus.subscribe("tick", work, { subscriberId: "s" });
    await act(() => bus.start());
    const payloads = ["fails", "fails", "works", "works"];
    await act(() => bus.publishMany(payloads.map((payload) => ({ topic: "tick", source: "clock", payload }))));
    await act(async () => gate.resolve());
    return { ...all, bus, host, calls: () => calls };
  }

  test("[J55] the others of their turn are settled, and the guilty one has failed with the reason", async () => {
    const { store, row, bus, host } = await settled(({ deliveries }) => deliveries !== undefined);
    await host.advance(10);
    expect(await store.count()).toEqual({ pending: 0, processing: 0, done: 2, failed: 2 });
    expect((await row(1)).error).toBe("its outcome cannot be settled: an outcome: is not JSON");
    expect((await row(2)).error).toBe("s: no");
    expect(bus.busy).toBe(false);
  });

  test("[J55] a settlement that is always refused is offered again alone, now and then", async () => {
    const { store, host, calls } = await settled(() => true);
    await host.advance(10);
    expect(await store.count()).toEqual({ pending: 0, processing: 1, done: 2, failed: 1 });
    const before = calls();
    await host.advance(10_000);
    expect(calls() - before).toBeLessThan(50);
  });
});
