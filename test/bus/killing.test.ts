/** Events in hand when their process dies: which of them are blamed for it. SPEC: J88. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { EVENT_DEATHS_MAX, EVENT_SUSPECT_DEATHS, LEASE_MS } from "../../src/limits.ts";
import type { Message } from "../../src/message/envelope.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type Setup, setup, withFaults } from "./bus-setup.ts";

const DIED = `its process died ${EVENT_DEATHS_MAX} times while handling it`;

async function append({ act, store }: Setup, topics: readonly string[]): Promise<readonly number[]> {
  const outcome = await act(() =>
    store.append(
      topics.map((topic, n) => {
        const metadata = { id: `${topic}-${n}`, timestamp: 0 };
        const message: Message = { kind: "event", type: "Test.Event", data: n, metadata };
        return { topic, source: "test", message, as: { status: "pending" } };
      }),
    ),
  );
  return outcome.kind === "appended" ? outcome.ids : [];
}

/**
 * A bus in a process that is killed when the store has answered so many times; it does not see the last answer. `begun`
 * are the events of which the journal was told that their handling begins: a death before the handler is called cannot
 * be told from one a moment later.
 */
function mortalBus({ host, disk, another }: Setup, answers: number) {
  const process = simulatedProcess(host);
  const inner = memoryStore({ host: process, disk });
  const begun = new Set<number>();
  let left = answers;
  const answered = <T>(result: T): T | Promise<T> => {
    if (--left > 0) return result;
    process.kill();
    return new Promise(() => {});
  };
  const faults: Partial<Store> = {
    claim: (request) => inner.claim(request).then(answered),
    settle: (settlements, urgency) => {
      for (const { id, outcome } of settlements) if (outcome.kind === "begun") begun.add(id);
      return inner.settle(settlements, urgency).then(answered);
    },
  };
  return { process, begun, bus: another({ host: process, store: withFaults(inner, faults) }) };
}

describe("events in hand when a process dies", () => {
  test("[J88] kills before its handler is called fail no event, however many", async () => {
    const all = setup();
    const [id] = await append(all, ["tick"]);
    let calls = 0;
    const live = async (answers: number) => {
      const { process, bus } = mortalBus(all, answers);
      bus.subscribe("tick", () => void calls++, { subscriberId: "s" });
      await all.act(() => bus.start());
      await all.host.advance(3 * LEASE_MS);
      process.kill();
    };
    for (let kill = 0; kill < 2 * EVENT_DEATHS_MAX; kill++) await live(1);
    const row = await all.row(id!);
    expect([calls, row]).toMatchObject([0, { status: "processing", deaths: EVENT_SUSPECT_DEATHS }]);
    await live(Number.POSITIVE_INFINITY);
    expect([calls, (await all.row(id!)).status]).toEqual([1, "done"]);
  });

  test("[J88] at any cause and time of death: only an event that had begun in three dead processes fails for it, and a poison message always does", async () => {
    const lives = fc.array(
      fc.record({ answers: fc.integer({ min: 1, max: 9 }), afterMs: fc.integer({ min: 0, max: 40 }) }),
      {
        maxLength: 30,
      },
    );
    const topics = fc.array(fc.constantFrom("quick", "slow", "slow", "deadly"), { minLength: 1, maxLength: 8 });
    const property = fc.asyncProperty(topics, lives, fc.nat(), async (topics, lives, seed) => {
      const all = setup({}, seed);
      const ids = await append(all, topics);
      /** How many processes died that had begun to handle it and not settled it. */
      const died = new Map<number, number>();
      const live = async (answers: number, afterMs: number) => {
        const { process, bus, begun } = mortalBus(all, answers);
        const handle = (topic: string, handler: () => unknown, options: { concurrency?: number } = {}) =>
          bus.subscribe(topic, ({ id }) => begun.add(id) && handler(), { subscriberId: topic, ...options });
        handle("quick", () => {});
        handle("slow", () => new Promise<void>((resolve) => process.timer(10, resolve)), { concurrency: 1 });
        handle("deadly", () => process.kill());
        await all.act(() => bus.start());
        await all.host.advance(afterMs);
        process.kill();
        for (const id of begun) {
          if ((await all.row(id)).status === "processing") died.set(id, (died.get(id) ?? 0) + 1);
        }
        await all.host.advance(3 * LEASE_MS);
      };
      for (const { answers, afterMs } of lives) await live(answers, afterMs);
      // From here on only poison messages kill: so many lives find all of them.
      for (let left = 0; left <= topics.length * EVENT_DEATHS_MAX; left++)
        await live(Number.POSITIVE_INFINITY, LEASE_MS);
      for (const [n, id] of ids.entries()) {
        const { status, error } = await all.row(id);
        const deaths = died.get(id) ?? 0;
        if (topics[n] === "deadly") expect({ status, error }).toEqual({ status: "failed", error: DIED });
        if (status === "failed") expect(deaths).toBeGreaterThanOrEqual(EVENT_DEATHS_MAX - EVENT_SUSPECT_DEATHS);
        else expect(status).toBe("done");
        if (topics[n] === "deadly") expect(deaths).toBeLessThanOrEqual(EVENT_DEATHS_MAX);
      }
    });
    await fc.assert(property, { numRuns: 60 });
  });
});
